"""Robustness against noise that changes at every step, all the time or for some frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from cascaded.analysis import outputs
from cascaded.analysis.statistics import plain, sem
from cascaded.errors import InputError
from cascaded.traces.config import NoiseProtocol, RecordingConfig
from cascaded.traces.trace import Trace, check_same_items

SAME_NETWORK = ("method", "weights")
SAME_CONFIG = ("schedule", "kernel", "noise", "onset", "trials")


@dataclass(frozen=True)
class PersistentNoise:
    """Accuracy while every frame is spoilt.

    Attributes:
        noise: Which noise.
        by_trial: Accuracy at every step, in each trial: the same images, other noise.
    """

    noise: str
    by_trial: Float64[np.ndarray, "trials time"]

    @property
    def accuracy(self) -> Float64[np.ndarray, "time"]:
        """At every step, over all trials."""
        return self.by_trial.mean(axis=0)

    @property
    def sem(self) -> float:
        """Standard error of the final accuracy over trials: what the noise's draws make of it; nan with one trial."""
        return sem(self.by_trial[:, -1])

    @property
    def headline(self) -> dict[str, float]:
        """Final accuracy."""
        return {"accuracy": float(self.accuracy[-1])}

    def to_json(self) -> dict[str, Any]:
        """Accuracy at every step, and of each trial at the last."""
        trials = {"final accuracy by trial": self.by_trial[:, -1], "sem over trials": self.sem}
        return plain({"headline": self.headline, "noise": self.noise, "accuracy": self.accuracy, **trials})


@dataclass(frozen=True)
class TransientNoise:
    """What some noisy frames between clean ones leave of the confidence in the true class.

    Attributes:
        noise: Which noise.
        onset: Number of the first noisy step, from 1.
        frames: How many noisy frames there were in each condition, ascending.
        dip: Drop in integrated performance of each condition, as a fraction; the paper prints per cent.
        confidence: Mean confidence in the true class at every step, of each condition; more frames take more steps.
    """

    noise: str
    onset: int
    frames: Int64[np.ndarray, "conditions"]
    dip: Float64[np.ndarray, "conditions"]
    confidence: tuple[Float64[np.ndarray, "_"], ...]

    @property
    def headline(self) -> dict[str, float]:
        """The mean over conditions, each counted alike: drop, and confidence in the true class at the end."""
        final = [each[-1] for each in self.confidence]
        return {"dip": float(self.dip.mean()), "final target confidence": float(np.mean(final))}

    def to_json(self) -> dict[str, Any]:
        """Everything, by number of noisy frames."""
        told = {
            str(n): {"dip": dip, "confidence": confidence}
            for n, dip, confidence in zip(self.frames.tolist(), self.dip, self.confidence, strict=True)
        }
        return plain({"headline": self.headline, "noise": self.noise, "onset": self.onset, "frames": told})


def persistent_noise(trace: Trace) -> PersistentNoise:
    """Measure accuracy under noise on every frame, trial by trial.

    Args:
        trace: Recorded under persistent noise; items stand trial by trial.
    """
    noise = _noise(trace, "persistent")
    right = outputs.right(trace).reshape(trace.steps, trace.trials, -1)
    return PersistentNoise(str(noise.noise), right.mean(axis=2).T)


def transient_noise(traces: Sequence[Trace]) -> TransientNoise:
    """Measure how far noisy frames pull the confidence in the true class down, and for how long.

        DIP = y_T - mean over t = B..T of y_t

    y is the confidence in the true class, averaged over items and trials; B the first noisy step, T the last step.

    Args:
        traces: One for each number of noisy frames, in any order: the same network, images and noise.
    """
    if not traces:
        raise InputError("there are no traces under transient noise: give one for each number of noisy frames")
    noise = _noise(traces[0], "transient")
    for other in traces[1:]:
        _check_alike(traces[0], noise, other)
    order = sorted(traces, key=lambda trace: _noise(trace, "transient").noise_frames[0])
    frames = np.array([_noise(trace, "transient").noise_frames[0] for trace in order], dtype=np.int64)
    if (twice := frames[1:][np.diff(frames) == 0]).size:
        raise InputError(f"two traces have {twice[0]} noisy frames: give one for each number of them")
    confidence = tuple(outputs.target_confidence(trace).mean(axis=1) for trace in order)
    dip = np.array([y[-1] - y[(noise.onset or 1) - 1 :].mean() for y in confidence])
    return TransientNoise(str(noise.noise), noise.onset or 1, frames, dip, confidence)


def _noise(trace: Trace, protocol: NoiseProtocol) -> RecordingConfig:
    noise = trace.config
    if noise.noise is None or noise.protocol != protocol or noise.onset is None:
        told = "no noise" if noise.noise is None else f"{noise.protocol} noise"
        raise InputError(f"{trace.description} has {told}, {protocol} noise is measured here: record a trace under it")
    if not 1 <= noise.onset <= trace.steps:
        raise InputError(
            f"noise sets in at step {noise.onset} of {trace.steps}: it must be one of them, counted from 1; record the "
            "trace again"
        )
    return noise


def _check_alike(first: Trace, noise: RecordingConfig, other: Trace) -> None:
    """Two traces differ in the number of noisy frames, and so of steps, alone."""
    check_same_items(first, other)
    pairs = [(what, getattr(first.provenance, what), getattr(other.provenance, what)) for what in SAME_NETWORK]
    yours = _noise(other, "transient")
    pairs += [(what, getattr(noise, what), getattr(yours, what)) for what in SAME_CONFIG]
    for what, a, b in pairs:
        if a != b:
            raise InputError(
                f"{what} is {a} in one trace and {b} in another: record all with the same network and noise, only the "
                "number of noisy frames may differ"
            )
