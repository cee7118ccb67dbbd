"""Missing analyses, each with the command that fills the gap."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cascaded.report.page import Missing
from cascaded.results.analyzed import Analyzed
from cascaded.results.registry import ANALYSES, missing_recordings
from cascaded.results.table import results_file
from cascaded.shell import to_args
from cascaded.traces.config import RecordingConfig

EXPLORER_IMAGES = 40


def missing_analyses(runs: Sequence[Analyzed], places: Sequence[Path], names: Sequence[str]) -> tuple[Missing, ...]:
    """What is missing of some analyses: one entry per analysis and set of recordings that it needs.

    Args:
        runs: All runs of the report.
        places: The folders that the user gave: they stand for all runs in a command.
        names: The analyses.
    """
    found = []
    for name in names:
        lacking: dict[tuple[RecordingConfig, ...] | str, list[Analyzed]] = {}
        for run in runs:
            if not results_file(run.folder, name).exists():
                lacking.setdefault(missing_recordings(run.runs[0], name), []).append(run)
        for needs, own in lacking.items():
            some = "" if len(own) == len(runs) else f" ({len(own)} of {len(runs)} runs)"
            what = f"{ANALYSES[name].label}{some}"
            if isinstance(needs, str):  # why no recording of this run can fill it
                found.append(Missing(f"{what}: {needs}"))
            else:
                folders = places if len(own) == len(runs) else [folder for each in own for folder in each.runs]
                found.append(Missing(what, fill_command(name, needs, folders)))
    return tuple(found)


def fill_command(name: str, needs: Sequence[RecordingConfig], folders: Sequence[Path]) -> str:
    """Record what an analysis needs, then analyze it."""
    words = [folder.as_posix() for folder in folders]
    if name == "human" and needs:  # one option for all of them; finished recordings are skipped
        how = to_args(replace(needs[0], noise=None, protocol=None), RecordingConfig())
        commands = [["cascaded", "record", *words, "--human", *how], ["cascaded", "analyze", *words, "--only", name]]
        return " && ".join(map(shlex.join, commands))
    commands = [["cascaded", "record", *words, *to_args(need, RecordingConfig())] for need in needs]
    for command, need in zip(commands, needs, strict=True):
        command += ["--overwrite"] if need.embeddings else []  # the same recording may be there without them
    return " && ".join(map(shlex.join, [*commands, ["cascaded", "analyze", *words, "--only", name]]))


def missing_activations(places: Sequence[Path]) -> Missing:
    """What the explorer needs."""
    command = ["cascaded", "record", *map(Path.as_posix, places), "--activations", str(EXPLORER_IMAGES)]
    return Missing("activations of the networks, for the explorer", shlex.join(command))
