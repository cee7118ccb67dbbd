"""The paper's seven claims: what each says, what would be measured for it, and what the paper found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cascaded.exhibits.material import OTHER
from cascaded.exhibits.published import AUROC, CE_STEP, FINAL, PERSISTENT, RHO, SPLITS, TD_STEP, TRANSIENT

CLAIMS = {
    "C1": "A lambda below 1 ends more accurate than lambda 1.",
    "C2": "CascadedTD lies above the Shallow-Deep network in speed and accuracy; one head beats many for cascaded "
    "networks, many beat one for serial ones.",
    "C3": "TD stratifies latency by prototypicality more than CE does.",
    "C4": "The coarse class comes before the fine one, and sooner with TD.",
    "C5": "TD suppresses noise that takes information away, while it lasts and when it passes.",
    "C6": "All steps tell images of another kind better than the last step does.",
    "C7": "The learned stopper and the confidence threshold beat the deadline.",
}
Is = Callable[[str, str], bool]
"""Whether a model of this name and lambda is meant."""


def _is(model: str, lam: str = "") -> Is:
    return lambda name, its: (name, its) == (model, lam)


def _any(*which: Is) -> Is:
    return lambda name, its: any(each(name, its) for each in which)


def _below_one(model: str, lam: str) -> bool:
    return model == "cascaded-td" and ":" not in lam and float(lam) < 1


TD0, TD1, CE = _is("cascaded-td", "0"), _is("cascaded-td", "1"), _is("cascaded-ce")
MANY, ONE = _is("serial-td-multihead", "1"), _is("serial-td", "1")
SHALLOW, HEADS = _any(MANY, _is("shallow-deep", "1")), _is("cascaded-td-multihead", "0")
EVERY_FRAME = _any(_is("serial-ce"), _is(f"cascaded-ce{OTHER}"))  # SerialCE x 9: every frame processed in full


@dataclass(frozen=True)
class Test:
    """One measurement behind a claim.

    Attributes:
        claim: Which.
        analysis: What it is read from.
        metric: Which figure.
        a: Whose figure.
        b: From whose figure it is taken away; None where the figure itself is the effect.
        told: What is measured, in words.
        paper: The paper's effect; by data and lambda where it differs.
        sign: -1 where less is better.
        scale: 100 for shares, which are told in points.
        unit: What the effect is in.
        noise: Under which noise; empty for any.
        time: Where a model was run in whole steps and in finer ones, which to look at; empty for both.
        split: Of which images, where there are such; empty for all that there are.
        null: Whether the paper finds no difference here, so that an interval that holds 0 is as it says.
    """

    claim: str
    analysis: str
    metric: str
    a: Is
    b: Is | None
    told: str
    paper: str | Mapping[str, Mapping[str, str]] = ""
    sign: int = 1
    scale: float = 100
    unit: str = "points"
    noise: str = ""
    time: Literal["", "whole", "fine"] = ""
    split: str = ""
    null: bool = False


INFORMATION_LOST = ("focus", "occlusion", "perlin", "resolution")
"""The noises that take information away; rotation and translation only move it."""
NO_DIFFERENCE = "human agreement"
PROTOTYPICALITY = (*RHO, "typicality")  # the last is known of embedded data alone, which the paper has not


def _above(model: float, other: float) -> str:
    return f"{model - other:+.2f}"


def _by_lambda(figures: Mapping[str, float]) -> dict[str, str]:
    return {lam: _above(figure, figures["1"]) for lam, figure in figures.items() if lam != "1"}


def _rho(measure: str) -> str:
    if measure not in RHO:
        return ""
    ce, td = RHO[measure]
    return f"{td - ce:+.3f}" + (", no difference" if measure == NO_DIFFERENCE else "")


def _noisy(
    analysis: str, metric: str, told: str, table: Mapping[str, tuple[float, float, float]], sign: int
) -> Iterator[Test]:
    """TD against CascadedCE, and against SerialCE, under each noise that takes information away."""
    for noise in INFORMATION_LOST:
        serial, ce, td = table[noise]
        for who, other in ((CE, ce), (EVERY_FRAME, serial)):
            paper = _above(sign * td, sign * other)
            yield Test("C5", analysis, metric, TD0, who, f"{told} {noise}", paper, sign, noise=noise)


FINAL_EFFECTS = {data: _by_lambda(figures) for data, figures in FINAL.items()}
AREA = "area under the curve of stopping by confidence, in steps"
FIGURE = "a figure, no number"
COMPLIANCE = "taxonomic_compliance"

TESTS: tuple[Test, ...] = (
    Test("C1", "speed_accuracy", "accuracy", _below_one, TD1, "accuracy at the last step", FINAL_EFFECTS, time="whole"),
    *(
        Test("C2", "speed_accuracy", "area threshold", a, b, AREA, FIGURE, time="whole")
        for a, b in ((TD0, SHALLOW), (TD0, HEADS), (MANY, ONE))
    ),
    *(
        Test(
            "C3",
            "prototypicality",
            f"rho {measure}",
            TD0,
            CE,
            f"rho of negative latency with {measure}",
            _rho(measure),
            scale=1,
            unit="rho",
            time="fine",
            split=SPLITS.get(measure, ""),
            null=measure == NO_DIFFERENCE,
        )
        for measure in PROTOTYPICALITY
    ),
    Test("C4", COMPLIANCE, "compliance above chance", TD0, None, "mean compliance above chance", FIGURE, time="whole"),
    Test(
        "C4",
        COMPLIANCE,
        "first step at 0.35",
        TD0,
        CE,
        "steps sooner at a compliance of .35",
        f"{CE_STEP - TD_STEP} (step {TD_STEP} against {CE_STEP})",
        -1,
        1,
        "steps",
        time="whole",
    ),
    Test("C4", COMPLIANCE, "mean compliance", TD0, CE, "mean compliance over steps", FIGURE, time="whole"),
    *_noisy("persistent_noise", "accuracy", "accuracy under lasting", PERSISTENT, 1),
    *_noisy("transient_noise", "dip", "drop saved under passing", TRANSIENT, -1),
    *(
        Test(
            "C6",
            "out_of_distribution",
            f"auroc gain {form}",
            TD0,
            None,
            f"AUROC won, read as {form}",
            f"{every - last:+.1f}",
        )
        for form, (last, every) in AUROC.items()
    ),
    Test("C7", "speed_accuracy", "threshold above deadline", TD0, None, "area, threshold above deadline", FIGURE),
    Test("C7", "learned_stopper", "stopper above deadline", TD0, None, "area, stopper above deadline", FIGURE),
)
