"""The paper's claims: a metric and two queries each. A positive effect agrees with the paper.

The verdict follows from the 95 % interval of the effect:

    supported       low > 0
    contradicted    high < 0
    inconclusive    low <= 0 <= high
    not measured    no effect, no interval, too few images, or networks that were not trained with the noise

A claim of no difference is tested for equivalence: supported if the interval lies within -margin..margin, contradicted
if it lies outside, inconclusive otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from cascaded.paper.values import in_paper, load_values
from cascaded.results.compare import CONDITION, SETTING, difference, estimates
from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name

Verdict = Literal["supported", "contradicted", "inconclusive", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("supported", "contradicted", "inconclusive", "not measured")
MARGINS = {"accuracy": 0.01, "rho": 0.05}
"""Differences that count as none, by metric; fixed before results were seen."""
FEWEST_IMAGES = 100
"""With fewer images a claim has no verdict."""

STATEMENTS = {
    "C1": "A lambda below 1 ends more accurate than lambda 1.",
    "C2": "CascadedTD lies above the Shallow-Deep network in speed and accuracy; one head beats many for cascaded "
    "networks, many beat one for serial ones.",
    "C3": "TD stratifies latency by prototypicality more than CE does.",
    "C4": "The coarse class is predicted before the fine one, and sooner with TD.",
    "C5": "TD suppresses noise that removes information, persistent and transient.",
    "C6": "All steps detect out-of-distribution images better than the last step.",
    "C7": "The learned stopper and the confidence threshold beat the deadline.",
}
EXPERIMENTS = {
    "C1": ("table-lambda",),
    "C2": ("speed-accuracy",),
    "C3": ("prototypicality",),
    "C4": ("taxonomy",),
    "C5": ("noise-persistent", "noise-transient"),
    "C6": ("ood",),
    "C7": ("stopping",),
}
"""The experiments that measure a claim, by the names that `cascaded reproduce` accepts."""


@dataclass(frozen=True)
class Claim:
    """One measurement behind a claim.

    Attributes:
        claim: `C1` to `C7`.
        label: What is measured.
        metric: Which metric of the results table.
        where: A pandas query that selects the rows: analysis, rule, measure, noise.
        a: A query that selects the networks that the claim is about.
        b: A query that selects those they are compared with; None if the metric itself is the effect.
        sign: -1 if less is better.
        no_difference: Whether the paper finds no difference.
        prefer: Values of columns that are used where the data have them, such as the time that the paper measures in.
    """

    claim: str
    label: str
    metric: str
    where: str
    a: str
    b: str | None = None
    sign: int = 1
    no_difference: bool = False
    prefer: Mapping[str, str] = field(default_factory=dict)


def _td(lam: float, method: str = "cascaded-td") -> str:
    return f"method == '{method}' and lam == {lam} and schedule == '{method.partition('-')[0]}'"


TD0, TD1, BELOW_1 = _td(0), _td(1), "method == 'cascaded-td' and lam < 1 and schedule == 'cascaded'"
CE = "method == 'cascaded-ce' and schedule == 'cascaded'"
SERIAL_CE = "method in ('cascaded-ce', 'serial-ce') and schedule == 'serial'"
MANY_HEADS = _td(1, "serial-td-multihead")
SHALLOW_DEEP = "method in ('serial-td-multihead', 'shallow-deep') and lam == 1 and schedule == 'serial'"
LOSSY = ("focus", "occlusion", "perlin", "resolution")
"""The noises that remove information; rotation and translation only move it."""
MEASURES = {"centrality": "validation", "C-score": "validation", "human agreement": "test", "typicality": "test"}
"""Measures of prototypicality, with the split that the paper reads each from; typicality is of embedded data only."""
TEST = {"split": "test"}
COARSE, AREA = {"time": "coarse", **TEST}, "area under the speed-accuracy curve, confidence threshold"
SPEED, TAXONOMY = "analysis == 'speed_accuracy'", "analysis == 'taxonomic_compliance'"

CLAIMS: tuple[Claim, ...] = (
    Claim("C1", "accuracy at the last step", "accuracy", SPEED, BELOW_1, TD1, prefer=COARSE),
    *(
        Claim("C2", AREA, "area", f"{SPEED} and rule == 'threshold'", a, b, prefer=COARSE)
        for a, b in ((TD0, SHALLOW_DEEP), (TD0, _td(0, "cascaded-td-multihead")), (MANY_HEADS, _td(1, "serial-td")))
    ),
    *(
        Claim(
            "C3",
            f"Spearman's rho of {measure} with negative latency",
            "rho",
            f"measure == '{measure}'",
            TD0,
            CE,
            no_difference=measure == "human agreement",
            prefer={"time": "fine", "split": split},
        )
        for measure, split in MEASURES.items()
    ),
    Claim("C4", "mean compliance above chance", "compliance_above_chance", TAXONOMY, TD0, prefer=COARSE),
    Claim("C4", "first step with a compliance of .35", "first_step_at_0.35", TAXONOMY, TD0, CE, -1, prefer=COARSE),
    Claim("C4", "mean compliance over steps", "compliance_mean", TAXONOMY, TD0, CE, prefer=COARSE),
    *(
        Claim("C5", label, metric, f"analysis == '{analysis}' and noise == '{noise}'", TD0, b, sign, prefer=TEST)
        for analysis, metric, sign, label in (
            ("persistent_noise", "accuracy", 1, "accuracy under persistent noise"),
            ("transient_noise", "dip", -1, "dip of confidence under transient noise"),
        )
        for noise in LOSSY
        for b in (CE, SERIAL_CE)
    ),
    *(
        Claim("C6", f"AUROC gain, {detector}", "auroc_gain", f"detector == '{detector}' and ood_data == 'mean'", TD0)
        for detector in ("msp", "entropy", "softmax", "logits")
    ),
    *(
        Claim("C7", f"area above deadline, {label}", "area_above_deadline", query, TD0, prefer=TEST)
        for label, query in (
            ("confidence threshold", f"{SPEED} and rule == 'threshold'"),
            ("learned stopper", "analysis == 'learned_stopper' and rule == 'stopper'"),
        )
    ),
)
COLUMNS = [
    *("claim", "statement", "label", "metric", "data", "split", "time", "noise", "n_items", "a", "b"),
    *("effect", "low", "high", "unit", "interval_over", "n_seeds", "paper", "paper_data", "verdict", "note", "runs"),
    "command",
]
TEXT = ["label", "metric", "data", "split", "time", "noise", "a", "b", "unit", "interval_over", "paper_data", "note"]


def evaluate(df: pd.DataFrame) -> pd.DataFrame:
    """Every measurement behind every claim, one row each; one row that says so for a claim that was not measured."""
    numbers = df[df["x"].isna()]
    rows = []
    for claim, statement in STATEMENTS.items():
        found = [row for each in CLAIMS if each.claim == claim for row in _measurements(each, numbers)]
        rows += [{"statement": statement, **_filled(row)} for row in found or [_not_measured(claim)]]
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """Text that is missing is empty, so that a column has one type."""
    return {**row, **{name: row[name] if isinstance(row.get(name), str) else "" for name in TEXT}}


def _measurements(claim: Claim, numbers: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The effects of a claim: networks that differ in their method only, on the same images."""
    rows = _query(numbers[numbers["metric"] == claim.metric], claim.where)
    alike = list(dict.fromkeys([*SETTING, "config"]))
    for _, group in _preferred(rows, claim.prefer).groupby(alike, dropna=False):
        others = [None] if claim.b is None else _conditions(_query(group, claim.b))
        for a in _conditions(_query(group, claim.a)):
            for b in others:
                if row := _measurement(claim, a, b):
                    yield row


def _query(rows: pd.DataFrame, query: str) -> pd.DataFrame:
    return rows if rows.empty else rows.query(query, engine="python")


def _preferred(rows: pd.DataFrame, prefer: Mapping[str, str]) -> pd.DataFrame:
    """The rows with these values; all rows of a data set that has none of them."""
    for column, value in prefer.items():
        matches = rows[column] == value
        rows = rows[matches | ~matches.groupby(rows["data"]).transform("any").astype(bool)]
    return rows


def _conditions(rows: pd.DataFrame) -> list[pd.DataFrame]:
    by = [name for name in CONDITION if name != "config"]
    return [group for _, group in rows.groupby(by, dropna=False)]


def _measurement(claim: Claim, a: pd.DataFrame, b: pd.DataFrame | None) -> dict[str, Any] | None:
    """One effect with its interval and verdict; None if the two networks share no seed."""
    first, metric = a.iloc[0], METRICS[claim.metric]
    if b is None:
        (result,) = estimates(a).to_dict("records")
        result["effect"] = result["value"]
    else:
        result = difference(a, b)
        if not result["n_seeds"]:
            return None
    factor = claim.sign * metric.scale
    low, high = sorted(factor * result[end] for end in ("low", "high"))
    missing = any(rows["value"].isna().any() for rows in (a, b) if rows is not None)
    note = _note(claim, first, low, missing)
    paper, paper_data = _paper(claim, first)
    return {
        **{name: first[name] for name in ("metric", "data", "split", "time", "noise", "n_items")},
        "claim": claim.claim,
        "label": claim.label,
        "a": _name(first),
        "b": None if b is None else _name(b.iloc[0]),
        "effect": float("nan") if missing else factor * result["effect"] + 0.0,  # adding 0: no zero is negative
        "low": low + 0.0,
        "high": high + 0.0,
        "unit": "points" if metric.unit == "%" else metric.unit,
        **{name: result[name] for name in ("interval_over", "n_seeds", "runs")},
        "paper": factor * paper,
        "paper_data": paper_data,
        "verdict": "not measured" if note else verdict(low, high, _margin(claim) * metric.scale),
        "note": note,
        "command": "",
    }


def verdict(low: float, high: float, margin: float = 0.0) -> Verdict:
    """What an interval says about a claim; a margin above 0 is that of a claim of no difference."""
    if margin:
        if -margin < low and high < margin:
            return "supported"
        return "contradicted" if low > margin or high < -margin else "inconclusive"
    return "supported" if low > 0 else "contradicted" if high < 0 else "inconclusive"


def _margin(claim: Claim) -> float:
    return MARGINS[claim.metric] if claim.no_difference else 0.0


def _note(claim: Claim, first: pd.Series, low: float, missing: bool) -> str:
    """Why there is no verdict; empty if there is one."""
    if missing:
        return f"not every network has a value of {claim.metric}"
    if first["n_items"] < FEWEST_IMAGES:
        return f"too few images for a verdict ({first['n_items']:.0f}; at least {FEWEST_IMAGES})"
    if pd.notna(first["noise"]) and first["train_noise"] != first["noise"]:
        return f"the networks were not trained with {first['noise']} noise, as those of the paper were"
    return "no interval: one seed, and this metric is not resampled over images" if pd.isna(low) else ""


def _name(row: pd.Series) -> str:
    return display_name(row["method"], row["lam"], row["schedule"], row["noise"])


def _paper(claim: Claim, first: pd.Series) -> tuple[float, str]:
    """The paper's effect: the same query on its own values, and the data it is of."""
    values = load_values()
    values = _query(_query(values[values["metric"] == claim.metric], claim.where), "value == value")
    about = _query(values, claim.a)
    about = about[about["lam"].eq(first["lam"]) | (about["lam"].isna() & pd.isna(first["lam"]))]
    if claim.b is not None:
        against = _query(values, claim.b)
        about = about.merge(against, on="data", suffixes=("", "_b"))
        about = about.assign(value=about["value"] - about["value_b"])
    if about.empty:
        return float("nan"), ""
    same = about[about["data"] == in_paper(first["data"])]
    row = (about if same.empty else same).iloc[0]
    return float(row["value"]), str(row["data"])


def _not_measured(claim: str) -> dict[str, Any]:
    command = f"cascaded reproduce {' '.join(EXPERIMENTS[claim])}"
    empty = dict.fromkeys(("effect", "low", "high", "paper"), float("nan"))
    return {**empty, "claim": claim, "verdict": "not measured", "note": "", "runs": (), "command": command}
