"""What the scores of a trace say: probabilities, answers, and how sure of them it is.

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


def answers(trace: Trace) -> Int64[np.ndarray, "time items"]:
    """The class with the highest score, at every step."""
    return np.stack([said.argmax(axis=-1) for said in trace.logits])


def right(trace: Trace) -> Bool[np.ndarray, "time items"]:
    """Whether that is the true class."""
    check_known(trace)
    return answers(trace) == trace.labels


def confidence(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """The probability of the likeliest class (MSP)."""
    return _each_step(trace, lambda p: p.max(axis=-1))


def target_confidence(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """The probability of the true class."""
    check_known(trace)
    return _each_step(trace, lambda p: np.take_along_axis(p, trace.labels[:, None], axis=-1)[:, 0])


def entropy(trace: Trace) -> Float64[np.ndarray, "time items"]:
    """How undecided it is: - sum_j p_j log p_j, in nats; 0 log 0 is 0."""
    return _each_step(trace, lambda p: -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1))


def check_known(trace: Trace) -> None:
    """The labels are numbers of the network's classes."""
    if not trace.provenance.in_distribution:
        raise InputError(
            f"{trace.config.data} {trace.config.split} shows other classes than "
            f"{trace.provenance.run or 'the network'} "
            "knows, so that no answer is right: record the data it was trained for"
        )


def _each_step(trace: Trace, read: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.stack([read(softmax(said)) for said in trace.logits])
