"""The paper's seven claims: what each says, what would be measured for it, and what the paper found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from cascaded.exhibits.material import OTHER

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
    null: bool = False


PERSISTENT = {  # against CascadedCE, and against SerialCE x 9
    "focus": ("+3.56", "+3.04"),
    "occlusion": ("+7.03", "+3.50"),
    "perlin": ("+3.11", "+2.49"),
    "resolution": ("+2.79", "+3.66"),
}
TRANSIENT = {
    "focus": ("+0.66", "+0.62"),
    "occlusion": ("+7.32", "+6.77"),
    "perlin": ("+0.87", "+0.86"),
    "resolution": ("+0.35", "+0.63"),
}
GAINS = {"msp": "+1.4", "entropy": "+2.2", "softmax": "+3.1", "logits": "+0.6"}
RHOS = {"centrality": "+.212", "C-score": "+.163", "human agreement": "-.011, no difference", "typicality": ""}
FINAL = {  # by data and lambda
    "cifar10": {"0": "+2.47", "0.25": "+2.90", "0.5": "+2.70", "0.83": "+2.23"},
    "cifar100": {"0": "+4.28", "0.25": "+4.15", "0.5": "+3.80", "0.83": "+1.86"},
    "tinyimagenet": {"0": "+0.88", "0.25": "+2.17", "0.5": "+2.39", "0.83": "+1.53"},
    "terriers": {"0.55": "+9.3"},
}
AREA = "area under the curve of stopping by confidence, in steps"
FIGURE = "a figure, no number"

TESTS: tuple[Test, ...] = (
    Test("C1", "speed_accuracy", "accuracy", _below_one, TD1, "accuracy at the last step", FINAL, time="whole"),
    *(
        Test("C2", "speed_accuracy", "area threshold", a, b, AREA, FIGURE, time="whole")
        for a, b in ((TD0, SHALLOW), (TD0, HEADS), (MANY, ONE))
    ),
    *(
        Test(
            "C3",
            "prototypicality",
            f"rho {name}",
            TD0,
            CE,
            f"rho of negative latency with {name}",
            paper,
            scale=1,
            unit="rho",
            time="fine",
            null=name == "human agreement",
        )
        for name, paper in RHOS.items()
    ),
    Test("C4", "taxonomic_compliance", "compliance above chance", TD0, None, "mean compliance above chance", FIGURE),
    Test(
        "C4",
        "taxonomic_compliance",
        "first step at 0.35",
        TD0,
        CE,
        "steps sooner at a compliance of .35",
        "6 (step 2 against 8)",
        -1,
        1,
        "steps",
        time="whole",
    ),
    Test("C4", "taxonomic_compliance", "mean compliance", TD0, CE, "mean compliance over steps", FIGURE),
    *(
        Test("C5", "persistent_noise", "accuracy", TD0, who, f"accuracy under lasting {name}", paper, noise=name)
        for name, papers in PERSISTENT.items()
        for who, paper in zip((CE, EVERY_FRAME), papers, strict=True)
    ),
    *(
        Test("C5", "transient_noise", "dip", TD0, who, f"drop saved under passing {name}", paper, -1, noise=name)
        for name, papers in TRANSIENT.items()
        for who, paper in zip((CE, EVERY_FRAME), papers, strict=True)
    ),
    *(
        Test("C6", "out_of_distribution", f"auroc gain {name}", TD0, None, f"AUROC won, read as {name}", paper)
        for name, paper in GAINS.items()
    ),
    Test("C7", "speed_accuracy", "threshold above deadline", TD0, None, "area, threshold above deadline", FIGURE),
    Test("C7", "learned_stopper", "stopper above deadline", TD0, None, "area, stopper above deadline", FIGURE),
)
