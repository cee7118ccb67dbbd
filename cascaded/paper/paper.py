"""The paper's own figures, to stand beside ours: by what is measured, of which data or noise, and of which model."""

from __future__ import annotations

from collections.abc import Iterable

from cascaded.exhibits.published import (
    AUROC,
    BASELINE_AUROC,
    BASELINE_FPR,
    CE_STEP,
    FINAL,
    FINAL_CE,
    FINAL_SHALLOW,
    FPR,
    PERSISTENT,
    RHO,
    TD_STEP,
    TRANSIENT,
)
from cascaded.paper.experiments import ACCURACY, BASELINE, FORMS, ITEMS, OUTSIDE

LAST, EVERY_FRAME = "CascadedCE", "CascadedCE, serial"
TD0 = "CascadedTD(0)"

Key = tuple[str, str, str]


def _told() -> Iterable[tuple[Key, float]]:
    for data, figures in FINAL.items():
        yield from (((ACCURACY.told, data, f"CascadedTD({lam})"), figure) for lam, figure in figures.items())
    for model, by_data in {LAST: FINAL_CE, "Shallow-Deep": FINAL_SHALLOW}.items():
        yield from (((ACCURACY.told, data, model), figure) for data, figure in by_data.items())
    for measure, values in RHO.items():
        for model, value in zip((LAST, TD0), values, strict=True):
            yield (f"rho with {measure}", "cifar10", model), value
    for model, step in {TD0: TD_STEP, LAST: CE_STEP}.items():
        yield (ITEMS["taxonomy"].measures[0].told, "cifar100", model), step
    for name, table in {"noise-persistent": PERSISTENT, "noise-transient": TRANSIENT}.items():
        for noise, values in table.items():
            for model, value in zip((EVERY_FRAME, LAST, TD0), values, strict=True):
                yield (ITEMS[name].measures[0].told, noise, model), value
    for told, table, baseline in zip(OUTSIDE.values(), (AUROC, FPR), (BASELINE_AUROC, BASELINE_FPR), strict=True):
        yield (f"{told}, {BASELINE}", "cifar10", TD0), baseline
        for form in FORMS:
            for steps, value in zip(("last step", "all steps"), table[form], strict=True):
                yield (f"{told}, {form}, {steps}", "cifar10", TD0), value


FIGURES: dict[Key, float] = dict(_told())


def paper_says(what: str, of: str, model: str) -> float | None:
    """The paper's figure, in the unit that ours has; None where it gives none.

    Args:
        what: What is measured, as an item's table calls it.
        of: Of which data, or under which noise.
        model: Of which model, as it is spoken of.
    """
    return FIGURES.get((what, of, model))
