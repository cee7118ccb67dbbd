"""Runs with their recordings, and the key columns that follow from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cascaded import PROTOCOL_VERSION, __version__
from cascaded.results.table import DIGITS
from cascaded.traces.store import TraceFile, group_folds, scan_traces
from cascaded.traces.trace import join_digests
from cascaded.training.config import RunConfig, config_hash
from cascaded.training.method import TD
from cascaded.training.rounded import rounded_from, trained_weights
from cascaded.training.run_file import protocol_version
from cascaded.training.runs import find_runs, read_config, read_run_file


@dataclass(frozen=True)
class Analyzed:
    """A run whose traces are analyzed: one folder, or those of all folds of a cross-validation.

    Attributes:
        runs: The folder of the run, or of every fold.
        config: The configuration; of folds, what they have in common.
        traces: Recordings of the current weights.
        skipped: For each trace file that cannot be used, by its name, the reason.
    """

    runs: tuple[Path, ...]
    config: RunConfig
    traces: tuple[TraceFile, ...]
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder whose `results` are written: that of the run, or one beside the folds."""
        first = self.runs[0]
        return first if len(self.runs) == 1 else first.parent.parent / f"folds-{self.config.seed}"

    @property
    def name(self) -> str:
        """The folder as results name it: without the path of this machine."""
        folder = self.folder
        if folder.is_absolute() and folder.is_relative_to(Path.cwd()):
            folder = folder.relative_to(Path.cwd())
        return folder.as_posix() if not folder.is_absolute() else "/".join(folder.parts[-2:])

    def keys(self, trace: TraceFile | None = None) -> dict[str, Any]:
        """The key columns that follow from the configuration and, for a trace, from its recording."""
        config, method = self.config, self.config.get_method()
        lam = method.loss.lam if isinstance(method.loss, TD) else None
        keys = {
            **{name: getattr(config, name) for name in ("data", "method", "arch", "width", "seed")},
            "run": self.name,
            "config": config_hash(config),
            "lam": lam[-1] if isinstance(lam, tuple) else lam,
            "fold": config.fold[0] if config.fold else None,
            "train_noise": config.noise,
            "schedule": method.schedule,
            "version": __version__,
            "protocol_version": self._protocol_version(trace),
        }
        if trace is not None:
            keys |= {"weights": trace.provenance.weights[:DIGITS], "rounded_from": self.rounded_from}
            names = ("data", "split", "schedule", "kernel", "time", "steps", "noise", "protocol")
            keys |= {name: getattr(trace.config, name) for name in names}
            keys |= {"items": trace.provenance.items[:DIGITS], "n_items": trace.images}
        return keys

    @property
    def rounded_from(self) -> str | None:
        """Of a rounded copy of the weights, the digest of the weights themselves; of folds, of those of all."""
        if not any(map(rounded_from, self.runs)):
            return None
        return join_digests([trained_weights(run) or "" for run in self.runs])[:DIGITS]

    def _protocol_version(self, trace: TraceFile | None) -> int:
        """The oldest of the protocols that were used for training, for the recording and here."""
        made_with = [read_run_file(run).made_with for run in self.runs]
        made_with += [trace.provenance.made_with] if trace is not None else []
        return min(PROTOCOL_VERSION, *map(protocol_version, made_with))


def find_analyzed(places: Sequence[Path]) -> list[Analyzed]:
    """Everything in or below some folders that can be analyzed; folds that are all there are joined."""
    analyzed = []
    for runs in group_folds(find_runs(places)):
        config = read_config(runs[0])
        if len(runs) > 1:
            config = replace(config, fold=None)
        traces, skipped = scan_traces(runs)
        analyzed.append(Analyzed(runs, config, tuple(traces), skipped))
    return analyzed
