"""Say in plain words which rule to use, from measured times."""

from __future__ import annotations

from collections.abc import Sequence

from cascaded.runtime.latency import Timing

CLOSE, POINTS = 0.01, "1 point"
"""An early exit whose accuracy is lower than that of a full pass by more than this is not recommended."""


def recommend(timings: Sequence[Timing]) -> list[str]:
    """Sentences per batch size: which rule to use on this machine, and how each baseline compares."""
    sentences = []
    for batch_size in dict.fromkeys(each.batch_size for each in timings):
        own = [each for each in timings if each.batch_size == batch_size and not each.network]
        full = min((each for each in own if each.threshold is None), key=_typical)
        early = [each for each in own if each.threshold is not None and each.accuracy >= full.accuracy - CLOSE]
        sentences.append(f"Batch size {batch_size}: {_choice(full, min(early, key=_typical, default=None))}")
        best = min([full, *early], key=_typical)
        others = [each for each in timings if each.batch_size == batch_size and each.network]
        for name in dict.fromkeys(each.network for each in others):
            baseline = min((each for each in others if each.network == name), key=_typical)
            sentences.append(f"Batch size {batch_size}: {_comparison(baseline, best, full, own)}")
    return sentences


def _typical(timing: Timing) -> float:
    return timing.typical


def _cost(timing: Timing) -> str:
    return f"{1000 * timing.typical:.2f} ms, accuracy {timing.accuracy:.1%}"


def _choice(full: Timing, early: Timing | None) -> str:
    if early is None:
        return f"use the {full.name} ({_cost(full)}): no early exit is within {POINTS} of its accuracy."
    ratio = early.typical / full.typical
    if ratio < 1:
        return (
            f"use the {early.name} ({_cost(early)}): it takes {ratio:.2f} of the time of the {full.name} "
            f"({_cost(full)})."
        )
    return (
        f"use the {full.name} ({_cost(full)}): the fastest early exit within {POINTS} of its accuracy, {early.name}, "
        f"takes {ratio:.2f} times as long."
    )


def _comparison(baseline: Timing, best: Timing, full: Timing, own: Sequence[Timing]) -> str:
    """A baseline beside the recommended rule, or beside the most accurate rule that takes no longer.

    Args:
        baseline: Full pass of another network.
        best: The rule of the network that is recommended.
        full: Full pass of the network.
        own: All rules of the network.
    """
    what = f"the {baseline.name} ({_cost(baseline)})"
    if baseline.accuracy >= full.accuracy - CLOSE and baseline.typical < best.typical:
        return f"better, use {what}: it takes {baseline.typical / best.typical:.2f} of the time of the {best.name}."
    affordable = [each for each in own if each.typical <= baseline.typical]
    if not affordable:
        return f"{what} is faster than every rule of this network, and less accurate than its full pass."
    rival = max(affordable, key=lambda each: (each.accuracy, -each.typical))
    gain = baseline.accuracy - rival.accuracy
    word = "more accurate than" if gain > CLOSE else "less accurate than" if gain < -CLOSE else f"within {POINTS} of"
    return f"{what} is {word} the best of this network in that time, the {rival.name} ({_cost(rival)})."
