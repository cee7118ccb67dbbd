"""What an item gave, on disk: its table as JSON and CSV, its figures, and the commands that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.exhibits.kinds import Figure, models_in
from cascaded.files import check_types, parsing, read_json, write_json, write_whole
from cascaded.paper.experiments import Item
from cascaded.paper.rows import Row, table_of
from cascaded.paper.scales import Scale

FORMAT = 1
FIGURES = "figures"
KINDS = ("svg", "png")
"""A report of the same runs draws PDF as well."""


@dataclass(frozen=True)
class Outcome:
    """An item's results.

    Attributes:
        item: Its name.
        title: What it shows.
        place: Where it is in the paper.
        scale: At which scale.
        rows: Its table.
        figures: Key, title and caption of its figures.
        commands: What makes all of it.
        lacking: Runs of this scale that were not trained when it was made.
        made_with: Versions.
    """

    item: str
    title: str
    place: str
    scale: str
    rows: tuple[Row, ...]
    figures: tuple[tuple[str, str, str], ...]
    commands: tuple[str, ...]
    lacking: tuple[str, ...]
    made_with: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in ("item", "title", "place", "scale")},
            "rows": [row.to_json() for row in self.rows],
            "figures": [dict(zip(("key", "title", "caption"), each, strict=True)) for each in self.figures],
            "commands": list(self.commands),
            "lacking": list(self.lacking),
            "made_with": self.made_with,
        }


def read_outcome(file: Path) -> Outcome:
    """What `write_outcome` wrote."""
    told = read_json(file)
    if not isinstance(told, dict) or told.get("format") != FORMAT or "rows" not in told:
        raise InputError(f"{file} is no result of cascaded reproduce that this version reads: reproduce it again")
    with parsing(file, "reproduce it again"):
        for each in told["rows"]:
            check_types(each, Row)
        rows = tuple(Row.from_json(each) for each in told["rows"])
        figures = tuple((each["key"], each["title"], each["caption"]) for each in told["figures"])
        words = {name: told[name] for name in ("item", "title", "place", "scale", "made_with")}
        words |= {"commands": tuple(told["commands"]), "lacking": tuple(told["lacking"])}
        check_types({**words, "figures": figures}, Outcome)
        return Outcome(rows=rows, figures=figures, **words)


def write_outcome(
    item: Item,
    scale: Scale,
    rows: Sequence[Row],
    figures: Sequence[Figure],
    commands: Sequence[str],
    lacking: Sequence[str],
    folder: Path,
) -> Outcome:
    """Write FOLDER/ITEM.json, ITEM.csv, and figures as SVG and PNG, each with its numbers; earlier figures go."""
    from cascaded.progress import progress
    from cascaded.report.files import csv_of, write_figure
    from cascaded.report.look import colours
    from cascaded.training.run_file import made_with

    told = tuple((figure.key, figure.title, figure.caption) for figure in figures)
    names = (item.name, item.title, item.place, scale.name)
    outcome = Outcome(*names, tuple(rows), told, tuple(commands), tuple(lacking), made_with())
    palette = colours([*(row.model for row in rows), *models_in(figures)])
    with progress("drawing", len(figures)) as bar:
        for figure in figures:
            write_figure(figure, folder / FIGURES, palette, KINDS)
            bar.advance(1, figure.title)
    write_whole(folder / f"{item.name}.csv", lambda part: part.write_bytes(csv_of(table_of(rows))))
    file = folder / f"{item.name}.json"
    before = _drawn_before(file)
    write_json(file, outcome.to_json())
    for key in before - {figure.key for figure in figures}:
        for kind in (*KINDS, "csv"):
            (folder / FIGURES / f"{key}.{kind}").unlink(missing_ok=True)
    return outcome


def _drawn_before(file: Path) -> set[str]:
    """The keys of an earlier outcome's figures; none where there is no such outcome that can be read."""
    try:
        return {key for key, _, _ in read_outcome(file).figures}
    except InputError:
        return set()
