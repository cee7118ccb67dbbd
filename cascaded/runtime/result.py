"""When a prediction stops, and the result of early exit, with torch or without."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Generic, TypeVar

import numpy as np

from cascaded.errors import InputError, between

Array = TypeVar("Array")
FEW = 20
"""So few logits are computed without numpy."""


@dataclass
class EarlyExitResult(Generic[Array]):
    """The result of early exit for a batch: tensors from `cascaded.early_exit`, arrays from a `Runner`.

    Attributes:
        predictions: Predicted class of each item.
        steps: Step of each prediction, from 1.
        seconds: Seconds from the start of the batch to each prediction.
        total: Seconds for the whole batch.
    """

    predictions: Array
    steps: Array
    seconds: Array
    total: float = 0.0


def check_limits(threshold: float | None, deadline_ms: float | None) -> None:
    """Check when a prediction stops."""
    if threshold is not None:
        between(0, 1, threshold=threshold)
    if deadline_ms is not None and not deadline_ms > 0:
        raise InputError(f"deadline_ms is {deadline_ms}: give a positive number of milliseconds")


def confidence(logits: np.ndarray) -> np.ndarray:
    """The highest class probability of each item."""
    if logits.size <= FEW and logits.ndim == 2 and len(logits) == 1:  # a call of numpy takes longer than ten of these
        row = logits[0].tolist()
        top = max(row)
        return np.array([1 / sum([exp(each - top) for each in row])])
    with np.errstate(invalid="ignore"):  # logits that are not finite have no confidence, and never exit early
        return 1 / np.exp(logits - logits.max(axis=-1, keepdims=True)).sum(axis=-1)
