"""The page of results: the claims ledger and every table, beside the paper's figures, from the kept JSON alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from cascaded.errors import InputError
from cascaded.exhibits.page import ClaimLine
from cascaded.files import fits, read_json
from cascaded.paper.experiments import ITEMS
from cascaded.paper.ledger import FILE, read_ledger, told_effect, told_interval
from cascaded.paper.outcome import FIGURES, Outcome, read_outcome
from cascaded.paper.rows import Row
from cascaded.paper.scales import SCALES
from cascaded.paper.tried import Trial, read_trials
from cascaded.shell import program

NOTES = "notes.json"
"""Written by hand: about the whole, and about claims that do not hold what was tried and why it may be so."""
MOST_FIGURES = 4


def results_page(folder: Path, figures: str) -> str:
    """The page, in Markdown.

    Args:
        folder: What `cascaded reproduce` wrote: claims.json and a file an item; notes.json and tried.json if there are
            any.
        figures: Where the page finds the figures, relative to itself.
    """
    if not (folder / FILE).exists():
        raise InputError(f"{folder} has no {FILE}: {program()} reproduce claims writes it")
    scale, lines = read_ledger(folder / FILE)
    notes = read_json(folder / NOTES) if (folder / NOTES).exists() else {}
    if not fits(notes, dict[str, str]):
        raise InputError(f"{folder / NOTES} does not have a text under every name: write it so")
    found = [read_outcome(folder / f"{name}.json") for name in ITEMS if (folder / f"{name}.json").exists()]
    missing = [item for name, item in ITEMS.items() if not (folder / f"{name}.json").exists()]
    parts = [_head(scale, notes), _ledger(lines, notes)]
    parts += [_tried(trials)] if (trials := read_trials(folder)) else []
    parts += [_item(outcome, figures, folder) for outcome in found]
    if missing:
        told = "\n".join(f"- `{item.name}`: {item.title.lower()} ({item.place})" for item in missing)
        parts.append(f"## Not reproduced here\n\n{told}")
    return "\n\n".join(parts) + "\n"


def _head(scale: str, notes: Mapping[str, str]) -> str:
    about = SCALES[scale].about
    return "\n\n".join(
        [
            "# Results",
            f"*Made from `results/{scale}` by `scripts/results.py`; every figure names the runs it came from.*",
            f"What the paper found, and what `cascaded reproduce all --scale {scale}` finds: {about}.",
            *([notes["about"]] if "about" in notes else []),
        ]
    )


def _ledger(lines: Sequence[ClaimLine], notes: Mapping[str, str]) -> str:
    """Claim by claim."""
    parts = [
        "## The claims",
        "A claim holds where the 95 % interval of its effect is above 0; effects are counted so that above 0 is the "
        "paper's way. Where the paper finds no difference, an interval that holds 0 is as it says. "
        "`cascaded reproduce claims` prints the same.",
    ]
    for claim, group in groupby(lines, key=lambda line: line.claim):
        own = list(group)
        parts.append(f"### {claim}: {own[0].says.rstrip('.')}")
        parts.append(f"Not measured: `{own[0].command}`." if own[0].command else _claim_table(own))
        parts += [notes[claim]] if claim in notes else []
    return "\n\n".join(parts)


def _claim_table(lines: Sequence[ClaimLine]) -> str:
    rows = [
        [
            line.what,
            told_effect(line),
            told_interval(line),
            line.how,
            line.paper,
            f"**{line.verdict}**",
            _runs(line.runs),
        ]
        for line in lines
    ]
    return _table(["measured", "effect", "95 % interval", "over", "the paper's", "holds", "runs"], rows)


def _tried(trials: Sequence[Trial]) -> str:
    """What differs from the scale, and what that changed."""
    parts = ["## What else was tried", "Each network against the one of this scale that it differs from; one seed."]
    for trial in trials:
        rows = [[each.of, each.what, _number(each.before), _number(each.after)] for each in trial.changes]
        parts.append(f"### {trial.what[0].upper()}{trial.what[1:]}")
        parts.append(f"```bash\n{trial.command}\n```")
        parts.append(_table(["on", "what", f"`{trial.against}`", f"`{trial.run}`"], rows))
    return "\n\n".join(parts)


def _item(outcome: Outcome, figures: str, folder: Path) -> str:
    parts = [f"## {outcome.title}", f"`cascaded reproduce {outcome.item}`: {outcome.place} of the paper."]
    there = [each for each in outcome.figures if (folder / FIGURES / f"{each[0]}.svg").exists()]
    for key, title, caption in there[:MOST_FIGURES]:
        parts.append(f"![{title}]({figures}/{key}.svg)\n\n*{title}.* {caption}")
    rows = []
    for row in outcome.rows:
        figures_of = [_value(row), _between(row), _number(row.paper), row.how, row.of]
        rows.append([_of(row), row.what, *figures_of, _runs(row.runs)])
    if outcome.lacking:
        parts.append(f"Not trained when this was made: {_runs(outcome.lacking)}.")
    parts.append(
        _table(["of", "what", "here", "95 % interval", "the paper's", "interval over", "measured on", "runs"], rows)
    )
    return "\n\n".join(parts)


def _of(row: Row) -> str:
    return ", ".join(word for word in (row.model, row.data, row.noise) if word)


def _value(row: Row) -> str:
    return f"{_number(row.value)} {row.unit}".strip()


def _between(row: Row) -> str:
    return "" if row.low is None or row.high is None else f"{_number(row.low)} to {_number(row.high)}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def _runs(runs: Sequence[str]) -> str:
    """`cifar10/cascaded-td-lam0/0 1`: seeds of one network together."""
    by_network: dict[str, list[str]] = {}
    for run in runs:
        network, _, seed = run.rpartition("/")
        by_network.setdefault(network, []).append(seed)
    return ", ".join(f"`{network}/{' '.join(seeds)}`" for network, seeds in by_network.items())


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
