"""The paper's own figures, to stand beside ours: by what is measured, of which data or noise, and of which model."""

from __future__ import annotations

from collections.abc import Iterable

from cascaded.experiments.items import ACCURACY, FORMS, ITEMS

LAST, EVERY_FRAME = "CascadedCE", "CascadedCE, serial"
TD0 = "CascadedTD(0)"
MODELS = (*(f"CascadedTD({lam})" for lam in ("0", "0.25", "0.5", "0.83", "1")), LAST)
FINAL = {
    "cifar10": (91.22, 91.65, 91.45, 90.98, 88.75, 91.91),
    "cifar100": (67.48, 67.35, 67.00, 65.06, 63.20, 65.56),
    "tinyimagenet": (50.74, 52.03, 52.25, 51.39, 49.86, 52.46),
}
TERRIERS = {TD0: 67.2, "CascadedTD(0.55)": 69.1, "CascadedTD(1)": 59.8, "Shallow-Deep": 63.2}
RHO = {"centrality": (0.140, 0.352), "C-score": (0.326, 0.489), "human agreement": (0.153, 0.142)}
PERSISTENT = {  # every frame in full, CascadedCE, CascadedTD
    "focus": (84.27, 83.75, 87.31),
    "occlusion": (86.26, 82.73, 89.76),
    "perlin": (85.18, 84.56, 87.67),
    "resolution": (84.53, 85.40, 88.19),
    "rotation": (89.11, 73.79, 87.51),
    "translation": (87.55, 76.72, 83.42),
}
TRANSIENT = {
    "focus": (0.62, 0.66, 0.00),
    "occlusion": (7.70, 8.25, 0.93),
    "perlin": (0.86, 0.87, 0.00),
    "resolution": (0.81, 0.53, 0.18),
    "rotation": (0.24, 4.12, 0.00),
    "translation": (0.72, 4.17, 1.53),
}
AUROC = {"msp": (88.8, 90.2), "entropy": (90.5, 92.7), "softmax": (92.6, 95.7), "logits": (96.7, 97.3)}
FPR = {"msp": (63.0, 46.4), "entropy": (51.2, 38.9), "softmax": (31.7, 20.5), "logits": (17.5, 13.7)}
HOURS = {LAST: 1.48, TD0: 1.81}
"""Training on CIFAR-10 with eight V100s."""

Key = tuple[str, str, str]


def _told() -> Iterable[tuple[Key, float]]:
    for data, values in FINAL.items():
        yield from (((ACCURACY.told, data, model), value) for model, value in zip(MODELS, values, strict=True))
    yield from (((ACCURACY.told, "terriers", model), value) for model, value in TERRIERS.items())
    for measure, values in RHO.items():
        for model, value in zip((LAST, TD0), values, strict=True):
            yield (f"rho with {measure}", "cifar10", model), value
    for model, step in {TD0: 2.0, LAST: 8.0}.items():
        yield (ITEMS["taxonomy"].measures[0].told, "cifar100", model), step
    for name, table in {"noise-persistent": PERSISTENT, "noise-transient": TRANSIENT}.items():
        for noise, values in table.items():
            for model, value in zip((EVERY_FRAME, LAST, TD0), values, strict=True):
                yield (ITEMS[name].measures[0].told, noise, model), value
    for told, table in {"AUROC": AUROC, "FPR at 95 % TPR": FPR}.items():
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
