"""Evaluate the paper's claims: the effect of each measurement, its interval and a verdict. A positive effect agrees.

A claim says in which range its effect lies: above 0; for a claim of no difference, within a margin around 0. The
verdict follows from the 95 % interval of the effect:

    supported       the interval lies in the range
    contradicted    the interval lies outside
    inconclusive    one part of it does
    not measured    no effect, no interval, too few images, or networks that were not trained with the noise
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from cascaded.paper.statements import CLAIMS, EXPERIMENTS, STATEMENTS, Claim
from cascaded.paper.values import in_paper, load_values, readings
from cascaded.results.compare import CONDITION, SETTING, difference, estimates
from cascaded.results.metrics import METRICS, Metric
from cascaded.results.names import display_name
from cascaded.results.table import COLUMNS as TABLE

Verdict = Literal["supported", "contradicted", "inconclusive", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("supported", "contradicted", "inconclusive", "not measured")
FEWEST_IMAGES = 100
"""With fewer images a claim has no verdict."""
COLUMNS = [
    *("claim", "statement", "label", "metric", "data", "split", "time", "noise", "n_items", "a", "b", "claimed"),
    *("effect", "low", "high", "unit", "interval_over", "n_seeds", "paper", "paper_alternative", "paper_data"),
    *("verdict", "note", "runs", "command"),
]
TEXT = ["label", "metric", "data", "split", "time", "noise", "a", "b", "claimed", "unit", "interval_over"]
TEXT += ["paper_data", "note"]
NUMBERS = ["n_items", "effect", "low", "high", "n_seeds", "paper", "paper_alternative"]


def evaluate(df: pd.DataFrame) -> pd.DataFrame:
    """Every measurement behind every claim, one row each; one row that says so for a claim that was not measured."""
    rows, metrics = [], dict(iter(df.groupby("metric")))
    for claim, statement in STATEMENTS.items():
        about = [each for each in CLAIMS if each.claim == claim and each.metric in metrics]
        found = [row for each in about for row in _measurements(each, metrics[each.metric])]
        rows += [{"statement": statement, **_filled(row)} for row in found or [_not_measured(claim)]]
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """Text that is missing is empty, so that a column has one type."""
    return {**row, **{name: row[name] if isinstance(row.get(name), str) else "" for name in TEXT}}


def _measurements(claim: Claim, df: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The effects of a claim, in the rows of its metric: networks differ in what it compares, on the same images."""
    rows = _query(df[df["x"].notna() == claim.at_every_x], claim.where)
    if rows.empty:
        return
    rows = _preferred(rows, claim.prefer)
    alike = [name for name in dict.fromkeys([*SETTING, "config", "width", "train_noise"]) if name not in claim.across]
    setting = rows.groupby(alike, dropna=False).ngroup()
    first, second = _query(rows, claim.a), None if claim.b is None else _query(rows, claim.b)
    for number, group in first.groupby(setting):
        others = [None] if second is None else _conditions(claim, second[setting[second.index] == number])
        for a in _conditions(claim, group):
            for b in others:
                if row := _measurement(claim, a, b):
                    yield row


def _query(rows: pd.DataFrame, query: str) -> pd.DataFrame:
    used = [name for name in rows.columns if name in query]  # with all columns it takes three times as long
    return rows if rows.empty else rows[rows[used].eval(query, engine="python")]


def _preferred(rows: pd.DataFrame, prefer: Mapping[str, str]) -> pd.DataFrame:
    """The rows with these values; all rows of a data set that has none of them."""
    for column, value in prefer.items():
        matches = rows[column] == value
        rows = rows[matches | ~matches.groupby(rows["data"]).transform("any").astype(bool)]
    return rows


def _conditions(claim: Claim, rows: pd.DataFrame) -> list[pd.DataFrame]:
    by = [name for name in dict.fromkeys([*CONDITION, *claim.across]) if name != "config"]
    return [group for _, group in rows.groupby(by, dropna=False)]


def _measurement(claim: Claim, a: pd.DataFrame, b: pd.DataFrame | None) -> dict[str, Any] | None:
    """One effect with its interval and verdict; None if the two networks share no seed."""
    first, unit = a.iloc[0], _unit(claim)
    result = _effect(claim, a, b)
    if not result["n_seeds"]:
        return None
    factor = claim.sign * unit.scale
    low, high = sorted(factor * result[end] for end in ("low", "high"))
    missing = any(rows["value"].isna().any() for rows in (a, b) if rows is not None)
    note = _note(claim, first, low, missing)
    return {
        **{name: first[name] for name in ("metric", "data", "split", "time", "noise", "n_items")},
        "claim": claim.claim,
        "label": claim.label,
        "a": _name(first),
        "b": None
        if b is None or _name(b.iloc[0]) == _name(first)
        else _name(b.iloc[0]),  # the label has the difference
        "claimed": _claimed(claim, unit),
        "effect": float("nan") if missing else factor * result["effect"] + 0.0,  # adding 0: no zero is negative
        "low": low + 0.0,
        "high": high + 0.0,
        "unit": unit.unit,
        **{name: result[name] for name in ("interval_over", "n_seeds", "runs")},
        **_paper(claim, first, factor),
        "verdict": "not measured" if note else verdict(low, high, *(end * unit.scale for end in claim.within)),
        "note": note,
        "command": "",
    }


def _unit(claim: Claim) -> Metric:
    """In which unit, and with which factor, an effect is written down."""
    metric = METRICS[claim.metric]
    if claim.relative:
        return Metric(claim.metric, claim.label, "%", 100)
    return Metric(metric.name, metric.label, "points" if metric.unit == "%" else metric.unit, metric.scale)


def _effect(claim: Claim, a: pd.DataFrame, b: pd.DataFrame | None) -> dict[str, Any]:
    """Effect, interval, number of seeds and runs."""
    if b is None:
        (result,) = estimates(a).to_dict("records")
        return {**result, "effect": result["value"]}
    if claim.at_every_x:
        return _smallest(a, b)
    if claim.relative:  # a / b - 1; the logarithm makes it a difference, also of every draw
        found = difference(_logarithm(a), _logarithm(b))
        return {**found, **{name: math.expm1(found[name]) for name in ("effect", "low", "high")}}
    return difference(a, b)


def _smallest(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any]:
    """The smallest difference of two curves; each end of its interval is the smallest one over all points.

    So the lower end is above 0 only if a is reliably above b at every point, and the upper end is below 0 if there is a
    point at which a is reliably below b.
    """
    drawn = a[a["draws"].notna()]
    points = [difference(one, b[b["x"] == x]) for x, one in (a if drawn.empty else drawn).groupby("x")]
    return {**points[0], **{name: min(point[name] for point in points) for name in ("effect", "low", "high")}}


def _logarithm(rows: pd.DataFrame) -> pd.DataFrame:
    draws = [None if each is None else np.log(each) for each in rows["draws"]]
    return rows.assign(value=np.log(rows["value"]), draws=pd.Series(draws, rows.index, dtype=object))


def verdict(low: float, high: float, above: float = 0.0, below: float = math.inf) -> Verdict:
    """What an interval says about the claim that the effect lies above one number and below another."""
    if above < low and high < below:
        return "supported"
    return "contradicted" if high < above or low > below else "inconclusive"


def _claimed(claim: Claim, unit: Metric) -> str:
    """The range that is claimed, such as `-1 to +1`; empty if it is the usual one, above 0."""
    above, below = (end * unit.scale for end in claim.within)
    if (above, below) == (0.0, math.inf):
        return ""
    return (
        f"above {above:+g}"
        if below == math.inf
        else f"below {below:g}"
        if above == -math.inf
        else f"{above:+g} to {below:+g}"
    )


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
    name = display_name(row["method"], row["lam"], row["schedule"], row["noise"])
    return name if row["arch"] == "resnet18" else f"{name}, {row['arch']}"


def _paper(claim: Claim, first: pd.Series, factor: float) -> dict[str, Any]:
    """The paper's effect: the same queries on its own values. Its text can be ambiguous: then there are two."""
    nothing = {"paper": math.nan, "paper_alternative": math.nan, "paper_data": ""}
    one, other = _effects_in_paper(claim, first)
    if one.empty:
        return nothing
    same = one.index == in_paper(first["data"])
    data = one.index[same][0] if same.any() else one.index[0]
    found = {"paper": factor * one[data], "paper_data": data}
    return {**nothing, **found, **({} if one[data] == other[data] else {"paper_alternative": factor * other[data]})}


def _effects_in_paper(claim: Claim, first: pd.Series) -> list[pd.Series]:
    """The effect of networks with the same lambda by data, as we read the paper and with the other reading."""
    values = load_values()
    values = values.reindex(columns=[*dict.fromkeys([*values.columns, *TABLE])])  # it has fewer columns than a query
    values = _query(values[values["metric"] == (claim.paper_metric or claim.metric)], claim.where)
    a = _query(values, claim.a)
    a = a[a["lam"].eq(first["lam"]) | (a["lam"].isna() & pd.isna(first["lam"]))]
    if claim.b is None or claim.paper_metric:
        return [*readings(a.set_index("data"))]
    b = _query(values, claim.b)
    pairs = zip(*(readings(each.set_index("data")) for each in (a, b)), strict=True)
    return [(one / other - 1 if claim.relative else one - other).dropna() for one, other in pairs]


def _not_measured(claim: str) -> dict[str, Any]:
    command = f"cascaded reproduce {' '.join(EXPERIMENTS[claim])}"
    empty = dict.fromkeys(("effect", "low", "high", "paper", "paper_alternative"), float("nan"))
    return {**empty, "claim": claim, "verdict": "not measured", "note": "", "runs": (), "command": command}
