"""`cascaded report`: one page about some runs, and every figure as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.progress import counted
from cascaded.shell import help_default, program

FIGURES = "figures"
GENERATOR = b'<meta name="generator" content="cascaded">'


def report(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="DIR")] = Path("report"),
    title: Annotated[str, help_default("made from the names of the data")] = "",
) -> None:
    """Write one page about some runs, from what was recorded and analysed. Nothing is computed anew.

    DIR/index.html holds everything and needs no network; DIR/figures/ has every figure as SVG, PDF and PNG, and its
    numbers as CSV. What was not measured is said, with the command that would measure it.

    Example: cascaded report runs/td0 runs/ce -o report

    Args:
        runs: Folders of runs, or folders that hold some.
        out: Where the page goes. What an earlier report wrote there is replaced.
        title: The page's heading.
    """
    if not runs:
        raise InputError(f"no run is given: say which, as in {program()} report runs/td0/0 -o report")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out is {out}, which is a file: give a folder")
    _check_own(out / "index.html")
    page = write_report(runs, out, title)
    figures = counted(len(list((out / FIGURES).glob("*.csv"))), "figure")
    print(f"wrote {page}, and {figures} in {out / FIGURES}")
    print(f"open it: {page.resolve().as_uri()}")


def _check_own(page: Path) -> None:
    """A page that somebody else made is not written over."""
    if page.exists() and GENERATOR not in page.read_bytes():
        raise InputError(f"{page} was not made by cascaded report: choose another --out, or move it away")


def write_report(runs: tuple[Path, ...], out: Path, title: str = "") -> Path:
    """Write the page and its figures, with a progress bar; what is left of an earlier report goes."""
    from cascaded.exhibits.exhibition import exhibition
    from cascaded.exhibits.kinds import models_in
    from cascaded.progress import progress
    from cascaded.report.files import write_figure
    from cascaded.report.look import colours
    from cascaded.report.page import write_page

    shown = exhibition(runs, title)
    figures = {figure.key: figure for section in shown.sections for figure in section.figures}
    palette, drawn = colours([*shown.models, *models_in(figures.values())]), {}
    for watched in (each for explorer in shown.explorers for each in explorer.models if each.of in palette):
        palette[watched.model] = palette[watched.of]
    with progress("drawing", len(figures) + 1) as bar:
        for key, figure in figures.items():
            drawn[key] = write_figure(figure, out / FIGURES, palette)
            bar.advance(1, figure.title)
        page = write_page(shown, drawn, palette, out, FIGURES)
        bar.advance(1, "the page")
    _clear(out / FIGURES, sorted(name for each in drawn.values() for name in each.files.values()))
    return page


def _clear(folder: Path, names: list[str]) -> None:
    """Remove what an earlier report drew and this one did not; nothing else that may be there is touched."""
    from cascaded.files import read_json, write_json

    note = folder / ".drawn.json"
    before = read_json(note) if note.exists() else []
    for name in before if isinstance(before, list) else []:
        if isinstance(name, str) and name not in names and Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    write_json(note, names)
