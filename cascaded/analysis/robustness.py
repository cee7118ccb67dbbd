"""Robustness against noise that changes at every step, on all frames or on some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cascaded.analysis import outputs
from cascaded.analysis.rows import DRAWS, Rows
from cascaded.analysis.statistics import mean_of
from cascaded.errors import InputError
from cascaded.traces.config import NoiseProtocol
from cascaded.traces.trace import Trace, check_same_items


def persistent_noise(trace: Trace, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Measure accuracy per step under noise on every frame, over all trials.

    Args:
        trace: Recorded under persistent noise; its items stand trial by trial.
        draws: How often images are drawn, each with all of its trials, for intervals.
        seed: Seed of the draws.
    """
    _check(trace, "persistent")
    correct = outputs.correct(trace)
    by_image = correct[-1].reshape(trace.trials, -1).mean(axis=0)
    rows = Rows(len(by_image), draws, seed)
    rows.number("accuracy", mean_of(by_image))
    rows.curve("accuracy_per_step", trace.cost("steps"), correct.mean(axis=1))
    return rows.table()


def transient_noise(traces: Sequence[Trace], *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Measure how far noisy frames lower the confidence in the true class, and for how long.

        DIP = y_T - mean over t = B..T of y_t

    y is the confidence in the true class, averaged over images and trials; B the first noisy step, T the last step.
    `dip` and `final_confidence` are means over the numbers of noisy frames, each counted alike.

    Args:
        traces: One for each number of noisy frames, in any order: the same network, images and noise.
        draws: How often images are drawn, each with all of its trials, for intervals.
        seed: Seed of the draws.
    """
    _check_alike(traces)
    order = sorted(traces, key=lambda trace: trace.config.noise_frames[0])
    frames = [trace.config.noise_frames[0] for trace in order]
    onset = order[0].config.onset or 1
    by_image = [outputs.target_confidence(t).reshape(t.steps, t.trials, -1).mean(axis=1) for t in order]
    dips = [y[-1] - y[onset - 1 :].mean(axis=0) for y in by_image]
    rows = Rows(len(dips[0]), draws, seed)
    rows.number("dip", mean_of(np.mean(dips, axis=0)))
    rows.number("final_confidence", mean_of(np.mean([y[-1] for y in by_image], axis=0)))
    rows.value("onset", onset)
    rows.curve("dip_by_frames", frames, [dip.mean() for dip in dips])
    for n, y in zip(frames, by_image, strict=True):
        rows.curve("target_confidence", np.arange(1, len(y) + 1), y.mean(axis=1), noise_frames=n)
    return rows.table()


def _check(trace: Trace, protocol: NoiseProtocol) -> None:
    config = trace.config
    if config.noise is None or config.protocol != protocol:
        there = "no noise" if config.noise is None else f"{config.protocol} noise"
        raise InputError(f"{trace.description} has {there}, {protocol} noise is measured here: record a trace under it")
    if not 1 <= (config.onset or 0) <= trace.steps:
        raise InputError(f"noise begins at step {config.onset} of {trace.steps}: record the trace again")


def _check_alike(traces: Sequence[Trace]) -> None:
    """The traces differ in the number of noisy frames, and so of steps, alone."""
    if not traces:
        raise InputError("there are no traces under transient noise: give one for each number of noisy frames")
    first = traces[0]
    for other in traces:
        _check(other, "transient")
        check_same_items(first, other)
        for (name, a), b in zip(_facts(first).items(), _facts(other).values(), strict=True):
            if a != b:
                differ = f"{name} is {a} in one trace and {b} in another"
                raise InputError(f"{differ}: only the number of noisy frames may differ, record all in the same way")
    frames, n = Counter(trace.config.noise_frames[0] for trace in traces).most_common(1)[0]
    if n > 1:
        raise InputError(f"two traces have {frames} noisy frames: give one for each number of them")


def _facts(trace: Trace) -> dict[str, object]:
    """What all traces under transient noise have in common."""
    of_network = {name: getattr(trace.provenance, name) for name in ("method", "weights")}
    names = ("schedule", "kernel", "noise", "onset", "trials")
    return of_network | {name: getattr(trace.config, name) for name in names}
