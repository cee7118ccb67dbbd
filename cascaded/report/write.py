"""Write a report: read the results of runs, draw the figures, render the page."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cascaded import __version__
from cascaded.errors import InputError
from cascaded.figures.activations import schedules
from cascaded.figures.base import named
from cascaded.files import read_json, write_json
from cascaded.progress import minutes
from cascaded.report.explorer import explorers, find_activations, last_lam
from cascaded.report.findings import context, findings, main_rows
from cascaded.report.galleries import gallery_figures
from cascaded.report.missing import missing_activations, missing_analyses
from cascaded.report.page import FIGURES, PageFigure, Report, Section, effect, write_page
from cascaded.report.sections import CONTENT, DRAW, draw, interval_over, page_figure
from cascaded.results.analyzed import Analyzed, find_analyzed
from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name
from cascaded.results.registry import ANALYSES
from cascaded.results.table import empty, find_files, load
from cascaded.traces.activations import Activations
from cascaded.training.runs import is_done, read_metrics, read_run_file


def read_table(places: Sequence[Path]) -> pd.DataFrame:
    """The results of runs, coarse time first; without rows where nothing was analyzed yet.

    Validation images are left out where there are others of the same data, except for prototypicality, whose measures
    are of either.
    """
    table = load(places) if find_files(places) else empty()
    validation = table["split"] == "validation"
    tested = (~validation).groupby([table["data"], table["analysis"]]).transform("any").astype(bool)
    kept = table[~validation | ~tested | (table["analysis"] == "prototypicality")]
    return kept.sort_values("time", kind="stable")


def write_report(
    places: Sequence[Path],
    out: Path,
    title: str = "",
    claims: pd.DataFrame | None = None,
    on_progress: Callable[[str], None] = lambda title: None,
) -> Path:
    """Write OUT/index.html and OUT/figures; figures of an earlier report that are not drawn again are removed.

    Args:
        places: Folders of runs, or folders above them.
        out: Where the page goes.
        title: Its heading; made from the names of the data by default.
        claims: From `paper.claims.evaluate`; None leaves the comparison with the paper out.
        on_progress: Called with the title of every section before it is drawn.
    """
    analyzed, table = find_analyzed(places), read_table(places)
    runs = [run for each in analyzed for run in each.runs]
    recorded, notes = find_activations(runs)
    notes += [f"{each.name}: {why}" for each in analyzed for why in each.skipped.values()]
    folder = out / FIGURES
    sections = _sections(table, analyzed, folder, on_progress)
    sections += [*_schedules(recorded, folder), *_not_measured(analyzed, places, notes)]
    report = Report(
        title=title or _title(runs),
        findings=findings(table),
        context=context(table),
        colors=_colors(table, runs),
        first=_first(table, folder),
        sections=tuple(each for each in sections if each.figures or each.missing or each.notes),
        claims=() if claims is None else tuple(_claim(row) for row in claims.to_dict("records")),
        runs=_runs(runs),
        explorers=explorers(recorded),
        explorer_missing=() if recorded else (missing_activations(places),),
        made_with={**read_run_file(runs[0]).made_with, "cascaded": __version__},
    )
    on_progress("the page")
    file = write_page(report, out)
    drawn = [figure for each in report.sections for figure in each.figures] + ([report.first] if report.first else [])
    remove_others(folder, sorted(name for each in drawn for name in _files(each)))
    return file


def _first(table: pd.DataFrame, folder: Path) -> PageFigure | None:
    """Accuracy per step on the data set of the first finding; other data sets are folded away below it."""
    main, *others = main_rows(table).values() or [table.head(0)]
    spec = CONTENT.first
    first = draw([spec], main, folder)
    if not first or not others:
        return first[0] if first else None
    more = replace(spec, key=f"{spec.key}-other-data", title="Other data sets")
    return replace(first[0], more=(page_figure(DRAW[spec.key](pd.concat(others)), more, folder),))


def _sections(
    table: pd.DataFrame, runs: Sequence[Analyzed], folder: Path, on_progress: Callable[[str], None]
) -> list[Section]:
    made = []
    for spec in CONTENT.sections:
        on_progress(spec.title)
        galleries = gallery_figures([run.folder for run in runs], folder) if spec.key == "latency" else []
        made.append(Section(spec.key, spec.title, spec.lead, (*galleries, *draw(spec.figures, table, folder))))
    return made


def _schedules(recorded: Sequence[Activations], folder: Path) -> list[Section]:
    for own in (each for each in recorded if len(each.cascaded)):
        figure = schedules({"serial": own.serial, "cascaded": own.cascaded})
        name = display_name(own.provenance.method, last_lam(own.provenance.lam))
        spec = replace(CONTENT.schedules, title=f"Blocks of {name} per step")
        return [Section(spec.key, "Two schedules", "", (page_figure(figure, spec, folder),))]
    return []


def _not_measured(runs: Sequence[Analyzed], places: Sequence[Path], notes: Sequence[str]) -> list[Section]:
    names = [name for name, analysis in ANALYSES.items() if analysis.needs]
    lead = "These analyses were not made for all runs. Each command fills one gap; write the report again afterwards."
    missing = missing_analyses(runs, places, names)
    return [Section("missing", "Not measured", lead, (), missing, tuple(notes))] if missing or notes else []


def _title(runs: Sequence[Path]) -> str:
    data = list(dict.fromkeys(Path(read_run_file(run).config.data).name for run in runs))
    return f"Anytime prediction on {', '.join(data[:3])}{' and more' if len(data) > 3 else ''}"


def _colors(table: pd.DataFrame, runs: Sequence[Path]) -> dict[str, str]:
    """Names and colors of all networks, as figures have them."""
    configs = [read_run_file(run).config for run in runs]
    keys = pd.DataFrame([{"method": config.method, "lam": last_lam(config.lam)} for config in configs])
    networks = named(pd.concat([keys, table[["method", "lam", "schedule"]].drop_duplicates()]).assign(noise=None))
    return dict(zip(networks["name"], networks["color"], strict=True))


def _claim(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the claims as the page writes it."""
    where = f"{row['data']} {row['split']}{', fine time' if row['time'] == 'fine' else ''}".strip()
    claimed = f"claimed: {row['claimed']} {row['unit']}".strip() if row["claimed"] else ""
    words = [row["label"], " against ".join(filter(None, (row["a"], row["b"]))), where, claimed, row["note"]]
    paper = effect(row["paper"], float("nan"), float("nan"), row["unit"])
    return {
        **row,
        "what": ", ".join(filter(None, words)) or "not measured by these runs",
        "effect": effect(row["effect"], row["low"], row["high"], row["unit"]),
        "interval_over": interval_over(row),
        "paper": f"{paper['value']} ({row['paper_data']})" if paper else "",
    }


def _runs(runs: Sequence[Path]) -> tuple[dict[str, str], ...]:
    """The table of networks, without columns that are empty."""
    table = pd.DataFrame([_run(run) for run in runs])
    return tuple(table.loc[:, table.ne("").any()].to_dict("records"))


def _run(run: Path) -> dict[str, str]:
    content, metrics = read_run_file(run), read_metrics(run)
    config, last = content.config, metrics[-1] if metrics else {}
    accuracy = last.get("test") or last.get("accuracy") or content.accuracy
    return {
        "network": display_name(config.method, last_lam(config.lam)),
        "run": run.as_posix(),
        "accuracy": METRICS["accuracy"].format(accuracy[-1]) if accuracy else "",
        "data": Path(config.data).name,
        "architecture": config.network,
        "seed": str(config.seed),
        "epochs": f"{last['epoch']} of {config.epochs}" if last and not is_done(run) else str(config.epochs),
        "training time": minutes(last["seconds"]) if "seconds" in last else "",
    }


def _files(figure: PageFigure) -> list[str]:
    return [*figure.files.values(), *itertools.chain.from_iterable(map(_files, figure.more))]


def remove_others(folder: Path, names: list[str]) -> None:
    """Remove what an earlier report drew and this one did not; other files stay."""
    note = folder / ".drawn.json"
    before = read_json(note) if note.exists() else []
    if not isinstance(before, list) or not all(isinstance(name, str) for name in before):
        raise InputError(f"{note} is not a list of file names: remove it")
    for file in [each for each in folder.iterdir() if each.name in set(before) - set(names) and not each.is_dir()]:
        file.unlink()
    write_json(note, names)
