"""Answers of people to images at deadlines: trial by trial, and as accuracy per deadline.

In each trial an image is shown, and a beep at a deadline asks for the answer. The data that comes with this package are
43,488 trials of 33 observers with images of CIFAR-10 (`human_sat/README.md` has the source, license and columns). The
functions take other data in the same columns too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from cascaded.errors import InputError, at_least, first_line

OWN = Path(__file__).with_name("human_sat") / "trials.csv.gz"
MANIPULATIONS = ("noise", "blur", "color")
COLUMNS = ("manipulation", "observer", "deadline_ms", "level", "category", "answer", "rt_ms")
"""Columns that a file must have; `trial` and `stimulus` are kept where they are there."""
LOWEST = {"deadline_ms": 1, "level": 0, "rt_ms": -np.inf}
"""Columns of numbers, and the lowest value of each; a key that is pressed too early has a time below 0."""
TOLERANCE = 100.0
"""Answers count if they are given within so many milliseconds of the deadline: the authors' rule."""


def trials(path: str | PathLike[str] | None = None) -> pd.DataFrame:
    """The answers of people, one row per trial.

    Args:
        path: A CSV file with the same columns (manipulation, observer, deadline_ms, level, category, answer, rt_ms),
            also compressed; the data of this package by default.
    """
    file = OWN if path is None else Path(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a line with more fields than the header would lose some
            table = pd.read_csv(file, dtype=str, keep_default_na=False, skip_blank_lines=False, index_col=False)
    except Exception as error:  # damaged archives fail in many ways: zlib.error, EOFError, UnicodeDecodeError ...
        raise InputError(f"{file} cannot be read as CSV ({first_line(error)}): save it as CSV in UTF-8") from error
    return _checked(table[(table != "").any(axis=1)], file)


def kept_trials(table: pd.DataFrame) -> pd.DataFrame:
    """The trials that count: answered, and within 100 ms of the deadline.

    Args:
        table: From `trials`.
    """
    return table[table["answer"].notna() & ((table["rt_ms"] - table["deadline_ms"]).abs() <= TOLERANCE)]


def curves(table: pd.DataFrame | None = None, *, draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Accuracy of people per manipulation, level and deadline, with 95 % intervals over observers.

    Trials that count (`kept_trials`) are pooled over observers. For an interval, observers are drawn with replacement
    within each manipulation, each with all their trials.

    Args:
        table: From `trials`; the data of this package by default.
        draws: How often observers are drawn.
        seed: Seed of the draws.
    """
    answers = count_answers(trials() if table is None else table)
    counts = answers.counts.sum(axis=0)
    drawn = answers.drawn(draws, seed)
    low, high = np.quantile(accuracy(drawn), [0.025, 0.975], axis=0)
    number = (answers.counts.sum(axis=(-2, -1)) > 0).sum(axis=0)
    columns = {"accuracy": accuracy(counts), "low": low, "high": high}
    columns |= {"trials": counts.sum(axis=(-2, -1)), "observers": number}
    rows = [
        {"manipulation": manipulation, "level": level, "deadline_ms": deadline}
        | {name: values[c, d] for name, values in columns.items()}
        for c, (manipulation, level) in enumerate(answers.conditions)
        for d, deadline in enumerate(answers.deadlines)
    ]
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Answers:
    """How often each observer gave each answer.

    Attributes:
        conditions: Manipulation and level.
        deadlines: In milliseconds, shortest first.
        categories: Classes of the images, which are the possible answers too.
        observers: Manipulation and name.
        counts: Trials that count, by true category and answer.
    """

    conditions: tuple[tuple[str, float], ...]
    deadlines: tuple[float, ...]
    categories: tuple[str, ...]
    observers: tuple[tuple[str, str], ...]
    counts: Int64[np.ndarray, "observers conditions deadlines categories categories"]

    def drawn(self, draws: int, seed: int) -> Int64[np.ndarray, "draws conditions deadlines categories categories"]:
        """The counts of observers drawn with replacement within each manipulation, summed over observers."""
        at_least(2, draws=draws)
        generator, times = np.random.default_rng(seed), np.zeros((draws, len(self.observers)), np.int64)
        for own in self.by_manipulation():
            chosen = own[generator.integers(len(own), size=(draws, len(own)))]
            np.add.at(times, (np.arange(draws)[:, None], chosen), 1)
        return np.tensordot(times, self.counts, axes=1)

    def by_manipulation(self) -> list[Int64[np.ndarray, "own"]]:
        """Numbers of the observers of each manipulation."""
        names = np.array([manipulation for manipulation, _ in self.observers])
        return [np.flatnonzero(names == each) for each in dict.fromkeys(names)]


def count_answers(table: pd.DataFrame) -> Answers:
    """Count the trials that count, by observer, condition, deadline, category and answer.

    Args:
        table: From `trials`.
    """
    kept = kept_trials(table)
    if kept.empty:
        raise InputError(
            f"none of {len(table)} trials was answered within {TOLERANCE:g} ms of its deadline: check rt_ms"
        )
    kept = kept.assign(order=kept["manipulation"].map(MANIPULATIONS.index)).sort_values(["order", "level", "observer"])
    conditions = list(zip(kept["manipulation"], kept["level"].astype(float), strict=True))
    observers = list(zip(kept["manipulation"], kept["observer"], strict=True))
    deadlines, categories = sorted(set(kept["deadline_ms"])), sorted(set(table["category"]))
    keys = [list(dict.fromkeys(observers)), list(dict.fromkeys(conditions)), deadlines, categories, categories]
    columns = [observers, conditions, *(kept[name] for name in ("deadline_ms", "category", "answer"))]
    counts = np.zeros([len(each) for each in keys], np.int64)
    np.add.at(counts, tuple(_places(column, each) for column, each in zip(columns, keys, strict=True)), 1)
    return Answers(tuple(keys[1]), tuple(map(float, deadlines)), tuple(categories), tuple(keys[0]), counts)


def _places(values: Iterable[Any], known: Sequence[Any]) -> list[int]:
    """The place of every value in a list of all."""
    place = {value: number for number, value in enumerate(known)}
    return [place[value] for value in values]


def accuracy(counts: Int64[np.ndarray, "*rest categories categories"]) -> Float64[np.ndarray, "*rest"]:
    """The fraction of correct answers; nan where there are no trials."""
    correct, total = np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1))
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def _checked(table: pd.DataFrame, file: Path) -> pd.DataFrame:
    """A table of texts as trials; the first wrong cell is named by its line, the header being line 1."""
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        there = ", ".join(map(str, table.columns)) or "none"
        raise InputError(f"{file} has no column {missing[0]}, its columns are {there}: give {', '.join(COLUMNS)}")
    if table.empty:
        raise InputError(f"{file} has columns and no trials: give one line per trial")
    table = table.assign(manipulation=table["manipulation"].replace("colour", "color"))
    numbers = {name: pd.to_numeric(table[name], errors="coerce") for name in LOWEST}
    for name, least in LOWEST.items():
        fix = "give a number" if np.isinf(least) else f"give a number of at least {least}"
        _refuse(table, name, ~(np.isfinite(numbers[name]) & (numbers[name] >= least)), file, fix)
    _refuse(table, "manipulation", ~table["manipulation"].isin(MANIPULATIONS), file, f"give {', '.join(MANIPULATIONS)}")
    for name in ("observer", "category"):
        _refuse(table, name, table[name] == "", file, "fill it in")
    possible = table["answer"].isin({"", *table["category"]})
    _refuse(table, "answer", ~possible, file, "give one of the categories, or nothing where there was no answer")
    if "trial" in table:
        numbers["trial"] = pd.to_numeric(table["trial"], errors="coerce")
    answer = table["answer"].mask(table["answer"] == "")
    return table.assign(**numbers, answer=answer).reset_index(drop=True)


def _refuse(table: pd.DataFrame, column: str, wrong: pd.Series, file: Path, fix: str) -> None:
    """The error for the first wrong cell of a column, if there is one."""
    if wrong.any():
        line = wrong.index[wrong][0]
        raise InputError(f"{file} has {column} {table[column][line]!r} in line {line + 2}: {fix}")
