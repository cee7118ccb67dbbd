"""Outputs of a trace at every step: probabilities, predictions and confidences.

All are computed a step at a time and in double precision, so that a trace on the disk need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from cascaded.errors import InputError
from cascaded.traces.trace import Trace


def softmax(logits: Float[np.ndarray, "*rest classes"]) -> Float64[np.ndarray, "*rest classes"]:
    """Probabilities: exp(z_j) / sum_k exp(z_k)."""
    z = logits.astype(np.float64)
    z -= z.max(axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return z


def predictions(trace: Trace) -> Int64[np.ndarray, "time items"]:
    """The class with the highest logit, at every step."""
    return np.stack([logits.argmax(axis=-1) for logits in trace.logits])


def correct(trace: Trace) -> Bool[np.ndarray, "time items"]:
    """Whether the prediction is the true class, at every step."""
    check_in_distribution(trace)
    return predictions(trace) == trace.labels


def confidence(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """The probability of the likeliest class (MSP)."""
    return _each_step(trace, lambda p: p.max(axis=-1))


def target_confidence(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """The probability of the true class."""
    check_in_distribution(trace)
    return _each_step(trace, lambda p: np.take_along_axis(p, trace.labels[:, None], axis=-1)[:, 0])


def entropy(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """Entropy of the probabilities: - sum_j p_j log p_j, in nats; 0 log 0 is 0."""
    return _each_step(trace, lambda p: -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1))


def check_in_distribution(trace: Trace) -> None:
    """The labels are classes of the network."""
    if not trace.provenance.in_distribution:
        images, network = f"{trace.config.data} {trace.config.split}", trace.provenance.run or "the network"
        raise InputError(f"{images} has other classes than {network}: record the data it was trained on")


def _each_step(trace: Trace, read: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.stack([read(softmax(logits)) for logits in trace.logits])
