"""The paper's seven claims, held against what was measured here.

A claim holds where the 95 % interval of its effect is above 0: effects are counted so that above 0 is the paper's way.
Intervals are over seeds where there are at least three, else over images, of these very networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cascaded.exhibits.material import Material, role, row_of
from cascaded.exhibits.over_seeds import estimates, interval_of
from cascaded.exhibits.page import ClaimLine, Verdict
from cascaded.results.asked import Asked

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
LOSSY = ("focus", "occlusion", "perlin", "resolution")
Is = Callable[[str, str], bool]
"""Whether a model of this name and lambda is meant."""


def _named(*names: str) -> Is:
    return lambda model, lam: model in names


def _below_one(model: str, lam: str) -> bool:
    return model == "cascaded-td" and lam != "1"


TD0: Is = lambda model, lam: (model, lam) == ("cascaded-td", "0")  # noqa: E731
TD1: Is = lambda model, lam: (model, lam) == ("cascaded-td", "1")  # noqa: E731
CE, MANY, SHALLOW = _named("cascaded-ce"), _named("serial-td-multihead"), _named("serial-td-multihead", "shallow-deep")


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
        paper: The paper's effect; by data where it differs.
        sign: -1 where less is better.
        scale: 100 for shares, which are told in points.
        unit: What the effect is in.
        noise: Under which noise; empty for any.
        time: Where a model was run in whole steps and in finer ones, which to look at; empty for both.
    """

    claim: str
    analysis: str
    metric: str
    a: Is
    b: Is | None
    told: str
    paper: str | Mapping[str, str] = ""
    sign: int = 1
    scale: float = 100
    unit: str = "points"
    noise: str = ""
    time: Literal["", "whole", "fine"] = ""


PERSISTENT = {"focus": "+3.56", "occlusion": "+7.03", "perlin": "+3.11", "resolution": "+2.79"}
TRANSIENT = {"focus": "+0.66", "occlusion": "+7.32", "perlin": "+0.87", "resolution": "+0.35"}
GAINS = {"msp": "+1.4", "entropy": "+2.2", "softmax": "+3.1", "logits": "+0.6"}
RHOS = {"centrality": "+.212", "C-score": "+.163", "human agreement": "-.011", "typicality": ""}
FINAL = {"cifar10": "+2.47", "cifar100": "+4.28", "tinyimagenet": "+0.88"}  # lambda 0
AREA = "area under the curve of stopping by confidence"
ABOVE = "a figure, no number"
NOT_YET = "not compared yet, or the models share no seed or no images"

TESTS: tuple[Test, ...] = (
    Test("C1", "speed_accuracy", "accuracy", _below_one, TD1, "accuracy at the last step", FINAL, time="whole"),
    *(
        Test("C2", "speed_accuracy", "area threshold", a, b, AREA, ABOVE, time="whole")
        for a, b in ((TD0, SHALLOW), (TD0, _named("cascaded-td-multihead")), (MANY, _named("serial-td")))
    ),
    *(
        Test(
            "C3",
            "prototypicality",
            f"rho {name}",
            TD0,
            CE,
            f"rho of latency with {name}",
            paper,
            scale=1,
            unit="rho",
            time="fine",
        )
        for name, paper in RHOS.items()
    ),
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
    ),
    Test("C4", "taxonomic_compliance", "mean compliance", TD0, CE, "mean compliance over steps", ABOVE),
    *(
        Test("C5", "persistent_noise", "accuracy", TD0, CE, f"accuracy under lasting {name}", paper, noise=name)
        for name, paper in PERSISTENT.items()
    ),
    *(
        Test("C5", "transient_noise", "dip", TD0, CE, f"drop saved under passing {name}", paper, -1, noise=name)
        for name, paper in TRANSIENT.items()
    ),
    *(
        Test("C6", "out_of_distribution", f"auroc gain {name}", TD0, None, f"AUROC won, read as {name}", paper)
        for name, paper in GAINS.items()
    ),
    Test(
        "C7", "speed_accuracy", "threshold above deadline", TD0, None, "area of the threshold above the deadline", ABOVE
    ),
    Test("C7", "learned_stopper", "stopper above deadline", TD0, None, "area of the stopper above the deadline", ABOVE),
)


def claim_lines(material: Material) -> tuple[ClaimLine, ...]:
    """Every measurement behind every claim; a line that says so where nothing was measured."""
    found = []
    for claim, says in CLAIMS.items():
        tests = [test for test in TESTS if test.claim == claim]
        lines = [line for test in tests for line in _lines(material, test, says)]
        found += lines or [_unmeasured(material, claim, says, tests)]
    return tuple(found)


def _lines(material: Material, test: Test, says: str) -> Iterator[ClaimLine]:
    """What a measurement gave, for every set of images it was made on."""
    models = {each.label: role(each) for each in material.conditions}
    if test.b is None:  # a figure of one model: compared or not, it is there
        for asked in _asked(material, test):
            for label, told in estimates(material, asked, test.metric).items():
                if test.a(*models[label]):
                    yield _line(test, says, asked, material.names[label], told["value"], told)
        return
    for table, asked in _tables(material, test):
        for told in table["differences"]:
            if told["a"] not in models or told["b"] not in models:
                continue
            for one, other, sign in ((told["a"], told["b"], 1), (told["b"], told["a"], -1)):
                if test.a(*models[one]) and test.b(*models[other]):
                    pair = f"{material.names[one]} against {material.names[other]}"
                    yield _line(test, says, asked, pair, told["difference"], told, sign)


def _tables(material: Material, test: Test) -> Iterator[tuple[dict[str, Any], Asked]]:
    """The comparisons that a measurement is read from, each with what it is of."""
    shown = {asked.row: asked for asked in _asked(material, test)}
    for table in material.tables(test.analysis, test.metric):
        if (asked := shown.get(row_of(table))) is not None:
            yield table, asked


def _asked(material: Material, test: Test) -> list[Asked]:
    """What a measurement is read from, in the time that it asks for where there is such."""
    rows = material.rows(test.analysis, test.noise or None)
    return [asked for asked in rows if not test.time or asked.is_fine == (test.time == "fine")] or rows


def _line(
    test: Test, says: str, asked: Asked, who: str, effect: float, told: Mapping[str, Any], sign: int = 1
) -> ClaimLine:
    factor = sign * test.sign * test.scale
    low, high, how = interval_of(told)
    effect = factor * effect + 0.0  # nothing has no sign
    ends = sorted(factor * each + 0.0 for each in (low, high) if each is not None)
    paper = test.paper if isinstance(test.paper, str) else test.paper.get(asked.data, _elsewhere(test.paper))
    bounds = (ends[0], ends[1]) if len(ends) == 2 else (None, None)
    verdict: Verdict = "not measured" if bounds[0] is None else "yes" if bounds[0] > 0 else "no"
    if verdict == "no" and effect > 0:
        how += "; as the paper says, but the interval holds 0"
    what = f"{test.told}, {who}: {asked.what}"
    return ClaimLine(test.claim, says, what, effect, *bounds, test.unit, how, paper or "none given", verdict)


def _elsewhere(papers: Mapping[str, str]) -> str:
    """The paper's effects on its own data."""
    return ", ".join(f"{effect} on {data}" for data, effect in papers.items())


def _unmeasured(material: Material, claim: str, says: str, tests: list[Test]) -> ClaimLine:
    """A claim that nothing here speaks to, and what would."""
    papers = [test.paper if isinstance(test.paper, str) else _elsewhere(test.paper) for test in tests]
    paper = "; ".join(dict.fromkeys(each for each in papers if each))
    why, command = _way(material, tests)
    return ClaimLine(claim, says, why, None, None, None, "", "", paper, "not measured", command)


def _way(material: Material, tests: list[Test]) -> tuple[str, str]:
    """Why a claim was not measured, and the command that comes next."""
    roles = [role(each) for each in material.conditions]
    lacking = next((test for test in tests if test.b and not any(test.b(*each) for each in roles)), None)
    models = "cascaded-td cascaded-ce serial-td-multihead"
    needed = f"cascaded sweep --data {material.data} --models {models} --lam 0 1 --out runs/models"
    if not any(tests[0].a(*each) for each in roles):
        return "the model that the claim is about is not among these runs", needed
    if lacking is not None and lacking is tests[0]:
        return "the model that it is compared with is not among these runs", needed
    if any(material.rows(test.analysis) for test in tests):
        return material.uncompared or NOT_YET, f"cascaded analyse {material.words}"
    return f"{tests[0].analysis.replace('_', ' ')} has not been analysed", _recording(tests[0], material)


def _recording(test: Test, material: Material) -> str:
    from cascaded.exhibits.gaps import gaps

    missing = gaps(material, test.analysis)
    return missing[0].command if missing else f"cascaded analyse {material.words}"
