"""What a network said about a set of images, at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

from cascaded.errors import InputError
from cascaded.traces.config import Origin, check_same_images

Unit = Literal["steps", "updates", "operations"]


@dataclass(frozen=True)
class Trace:
    """What a network said about a set of images, at every step: arrays alone, no network.

    Attributes:
        logits: Class scores. Single or half precision; a trace that was loaded is mapped from its file.
        labels: The true class of every item; numbers of other classes where `origin.known` is False.
        indices: The row of every item in its source's own order.
        origin: Where all this came from.
        embeddings: What the head read at the last step, if that was recorded.
        head: The weights of the head at the last step, one vector a class, where there are embeddings.
    """

    logits: Float[np.ndarray, "time items classes"]
    labels: Int64[np.ndarray, "items"]
    indices: Int64[np.ndarray, "items"] = None  # pyright: ignore[reportAssignmentType]
    origin: Origin = field(default_factory=Origin)
    embeddings: Float[np.ndarray, "items features"] | None = None
    head: Float[np.ndarray, "classes features"] | None = None

    def __post_init__(self):
        _check_kinds(self)
        if self.indices is None:
            object.__setattr__(self, "indices", np.arange(len(self.labels)))
        _check_shapes(self)
        _check_values(self)

    @property
    def steps(self) -> int:
        """How many read-outs there are."""
        return self.logits.shape[0]

    @property
    def items(self) -> int:
        """How many images, counted once a trial."""
        return self.logits.shape[1]

    @property
    def classes(self) -> int:
        """How many classes the network knows."""
        return self.logits.shape[2]

    def cost(self, unit: Unit = "steps") -> Float[np.ndarray, "time"]:
        """What it costs to answer at every step, from the beginning on.

        Args:
            unit: `steps`, cycles of parallel hardware in which all blocks work at once; `updates` of blocks, one after
                the other; floating-point `operations` an image.
        """
        if unit == "steps":
            return np.arange(1.0, self.steps + 1)
        if unit not in ("updates", "operations"):
            raise InputError(f"unit is {unit!r}: say steps, updates or operations")
        each: tuple[int, ...] = getattr(self.origin, unit)
        if len(each) != self.steps:
            raise InputError(
                f"the trace has {self.steps} steps and tells the {unit} of {len(each)}: record it with cascaded record"
            )
        return np.cumsum(np.array(each, dtype=float))

    def select(self, items: Bool[np.ndarray, "items"] | Int[np.ndarray, "chosen"]) -> Trace:
        """Some items, by mask or by number, in the order given. They are copied; trials are not counted."""
        noise = None if self.origin.noise is None else replace(self.origin.noise, trials=1)
        return replace(
            self,
            origin=replace(self.origin, noise=noise),
            logits=self.logits[:, items],
            labels=self.labels[items],
            indices=self.indices[items],
            embeddings=None if self.embeddings is None else self.embeddings[items],
        )

    def trial(self, number: int) -> Trace:
        """One of several trials, from 0: every image once."""
        each = self.items // self.origin.trials
        if not 0 <= number < self.origin.trials:
            raise InputError(f"trial {number} is asked for, there are {self.origin.trials}: count from 0")
        return self.select(np.arange(number * each, (number + 1) * each))


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of different images of one source as one, in the order of the source: the folds of a cross-validation.

    The head differs from trace to trace, so the joined one has neither head nor embeddings.
    """
    if not traces:
        raise InputError("there are no traces to join: give at least one")
    first = traces[0]
    for other in traces[1:]:
        check_same_images(first.origin, other.origin)
        for what in ("model", "lam", "schedule", "kernel", "noise"):
            mine, yours = getattr(first.origin, what), getattr(other.origin, what)
            if mine != yours:
                raise InputError(f"{what} is {mine} in one trace and {yours} in another: join folds of one model")
        if other.logits.shape[::2] != first.logits.shape[::2]:
            raise InputError(
                f"one trace has {first.steps} steps and {first.classes} classes, another {other.steps} and "
                f"{other.classes}: record both alike"
            )
    indices = np.concatenate([trace.indices for trace in traces])
    order = np.argsort(indices, kind="stable")
    if (np.diff(indices[order]) == 0).any():
        raise InputError("two of the traces hold the same image: join traces of different ones, such as folds")
    logits = np.empty((first.steps, len(order), first.classes), first.logits.dtype)
    places, start = np.argsort(order), 0
    for trace in traces:  # one after the other into its place: all of them are in memory once
        logits[:, places[start : start + trace.items]] = trace.logits
        start += trace.items
    labels = np.concatenate([trace.labels for trace in traces])[order]
    return Trace(logits, labels, indices[order], replace(first.origin, fold=None))


def check_same_items(mine: Trace, yours: Trace) -> None:
    """Two traces are of the same items in the same order, so that they can be compared item by item."""
    check_same_images(mine.origin, yours.origin)
    if mine.items != yours.items:
        raise InputError(
            f"one trace has {mine.items} items, the other {yours.items}: record both with the same --limit and trials"
        )
    if not np.array_equal(mine.indices, yours.indices):
        place = int(np.flatnonzero(mine.indices != yours.indices)[0])
        raise InputError(
            f"item {place} is image {mine.indices[place]} in one trace and {yours.indices[place]} in the other: bring "
            "them into one order with trace.select(trace.indices.argsort())"
        )


def _check_kinds(trace: Trace) -> None:
    for name in ("logits", "labels", "indices", "embeddings", "head"):
        values = getattr(trace, name)
        if values is not None and not isinstance(values, np.ndarray):
            raise InputError(f"{name} are of type {type(values).__name__}: give NumPy arrays, such as tensor.numpy()")
    if trace.labels.dtype.kind not in "iu":
        raise InputError(f"labels are {trace.labels.dtype}: give whole numbers")


def _check_shapes(trace: Trace) -> None:
    logits, labels, indices = trace.logits, trace.labels, trace.indices
    if logits.ndim != 3 or 0 in logits.shape:
        raise InputError(f"logits have shape {logits.shape}: give (time, items, classes), none zero")
    if not (logits.shape[1:2] == labels.shape == indices.shape):
        raise InputError(
            f"logits have shape {logits.shape}, labels {labels.shape} and indices {indices.shape}: give one label and "
            "one index an item"
        )
    if trace.items % trace.origin.trials:
        raise InputError(
            f"{trace.items} items are not {trace.origin.trials} trials of equal length: record the trace again"
        )
    if trace.embeddings is not None:
        features = None if trace.head is None else (trace.classes, trace.embeddings.shape[-1])
        if trace.embeddings.shape[:1] != labels.shape or (trace.head is not None and trace.head.shape != features):
            raise InputError(
                f"embeddings have shape {trace.embeddings.shape} and the head {getattr(trace.head, 'shape', None)} "
                f"for {trace.items} items and {trace.classes} classes: give (items, features) and (classes, features)"
            )


def _check_values(trace: Trace) -> None:
    if trace.logits.dtype not in (np.float16, np.float32, np.float64):
        raise InputError(f"logits are {trace.logits.dtype}: give floating point")
    for step, said in enumerate(trace.logits, start=1):  # a step at a time: a mapped trace stays on the disk
        if not np.isfinite(said).all():
            raise InputError(f"logits at step {step} are not all finite: the network has diverged, record another")
    wrong = trace.labels[(trace.labels < 0) | (trace.labels >= trace.classes)]
    if trace.origin.known and len(wrong):
        raise InputError(
            f"label {wrong[0]} is none of the {trace.classes} classes, 0 to {trace.classes - 1}: give labels of the "
            "network's classes, or an origin with known=False for images it was not meant for"
        )
