"""The result of early exit, with torch or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Array = TypeVar("Array")


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
