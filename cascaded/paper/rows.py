"""The table of an item: every figure with its interval, the runs that it came from, and the paper's beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cascaded.exhibits.kinds import Cell, Dot, Dots, Figure, Table
from cascaded.exhibits.material import Material
from cascaded.exhibits.over_seeds import estimates, interval_of, whiskers
from cascaded.exhibits.speed import key
from cascaded.paper.experiments import Item, Measure, Shows
from cascaded.paper.paper import paper_says
from cascaded.results.asked import Asked
from cascaded.results.groups import Condition

SERIAL: set[Shows] = {"serial", "persistent", "transient"}
"""What networks may be shown frame by frame as well."""
WHOLE: set[Shows] = {"whole", *SERIAL}
"""What they are shown in whole steps; all else in fine time."""


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        data: What the network has learned.
        noise: With which noise, and under which it was tested; empty for none.
        model: Which model, as it is spoken of.
        what: What was measured.
        value: The figure, a mean over seeds.
        low: Lower end of its 95 % interval; None where there is none.
        high: Upper end.
        unit: What it is in.
        how: What the interval is over.
        of: On which images, in which time.
        runs: The runs it came from.
        paper: The paper's figure; None where it gives none.
    """

    data: str
    noise: str
    model: str
    what: str
    value: float
    low: float | None
    high: float | None
    unit: str
    how: str
    of: str
    runs: tuple[str, ...]
    paper: float | None

    def to_json(self) -> dict[str, Any]:
        """As results keep it."""
        return {**asdict(self), "runs": list(self.runs)}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Row:
        """What `to_json` gave."""
        return cls(**{**told, "runs": tuple(told["runs"])})


def shown_by(item: Item, material: Material) -> Material:
    """What an item has shown its networks, without what others have shown the same ones."""
    shows = set(item.shows)
    folded = any(len(each.group.first.runs) > 1 for each in material.conditions)

    def own(condition: Condition[Asked], asked: Asked) -> bool:
        if folded and asked.split == "validation" and len(condition.group.first.runs) == 1:
            return False  # the folds have judged these images, and all others
        return bool(shows - WHOLE if asked.is_fine else shows & WHOLE)

    def kept(condition: Condition[Asked]) -> Condition[Asked]:
        of_seeds = {
            seed: {row: answer for row, answer in by_row.items() if own(condition, answer[0])}
            for seed, by_row in condition.by_seed.items()
        }
        return replace(condition, by_seed={seed: by_row for seed, by_row in of_seeds.items() if by_row})

    schedules = [each for each in material.conditions if shows & SERIAL or each.label == each.group.label]
    return replace(material, conditions=tuple(map(kept, schedules)))


def rows_of(item: Item, material: Material, data: str, noise: str = "") -> list[Row]:
    """The figures of an item that some runs of the same data and noise have."""
    return [row for measure in item.measures for row in _rows(measure, material, data, noise)]


def _rows(measure: Measure, material: Material, data: str, noise: str) -> Iterator[Row]:
    for asked in material.rows(measure.analysis, noise or None):
        if measure.time and asked.is_fine != (measure.time == "fine"):
            continue
        if measure.split not in ("", asked.split):
            continue
        shown = material.answers(asked.row)
        for label, told in estimates(material, asked, measure.metric).items():
            if label in shown:
                yield _row(measure, material, asked, label, told, data, noise)


def _row(
    measure: Measure, material: Material, asked: Asked, label: str, told: dict[str, Any], data: str, noise: str
) -> Row:
    factor, model = 100 if measure.unit == "%" else 1, material.names[label]
    low, high, how = interval_of(told)
    return Row(
        data,
        noise,
        model,
        measure.told,
        factor * told["value"],
        None if low is None else factor * low,
        None if high is None else factor * high,
        measure.unit,
        how,
        asked.what,
        material.runs_of(label, asked.row),
        paper_says(measure.told, noise or data, model),
    )


def table_of(rows: Sequence[Row]) -> Table:
    """Rows for a spreadsheet."""
    heads = ["data", "noise", "model", "what", "value", "low", "high", "unit", "paper", "interval over", "of", "runs"]
    cells: list[list[Cell]] = [
        [
            *(each.data, each.noise, each.model, each.what, each.value, each.low, each.high, each.unit, each.paper),
            *(each.how, each.of, " ".join(each.runs)),
        ]
        for each in rows
    ]
    return heads, cells


def drawn(item: Item, rows: Sequence[Row]) -> list[Figure]:
    """The table as dots, ours filled and the paper's hollow; a figure for each thing that is measured."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.what.partition(",")[0], []).append(row)
    return [_figure(item, kind, own) for kind, own in kinds.items()]


def _figure(item: Item, kind: str, rows: Sequence[Row]) -> Figure:
    factor = 0.01 if rows[0].unit == "%" else 1.0
    dots = [dot for row in rows for dot in _dots(row, kind, factor)]
    groups = tuple(dict.fromkeys(dot.group for dot in dots))
    body = Dots(kind, groups, tuple(dots), shares=rows[0].unit == "%")
    caption = f"Filled: measured here. Hollow: the paper's figures.{whiskers(dots)}"
    return Figure(key(item.name, kind), f"{item.title}: {kind}", caption, body)


def _dots(row: Row, kind: str, factor: float) -> list[Dot]:
    """A figure of ours, and the paper's beside it."""
    rest = row.what.removeprefix(kind).strip(", ")
    group = row.noise or rest or row.data
    low, high = (None if each is None else factor * each for each in (row.low, row.high))
    own = Dot(row.model, group, factor * row.value, low, high, how=row.how)
    return [own] if row.paper is None else [own, Dot(row.model, group, factor * row.paper, way="in the paper")]
