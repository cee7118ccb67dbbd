"""The logits of a network at every step, for a set of images."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

from cascaded.errors import InputError
from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.training.run_file import protocol_version

Unit = Literal["steps", "updates", "operations"]


@dataclass(frozen=True)
class Trace:
    """The logits of a network at every step, for a set of images: arrays only, no network.

    Attributes:
        logits: Class scores, in single or half precision. A trace from a file is memory-mapped.
        labels: True class of every item; classes of other data if `provenance.in_distribution` is False.
        indices: Row of every item in its data set.
        config: Which images were presented, and how the network was run.
        provenance: The network and the images that it was recorded from.
        embeddings: Input of the output layer at the last step, if it was recorded.
        head: Weights of the output layer at the last step, one vector per class, if there are embeddings.
    """

    logits: Float[np.ndarray, "time items classes"]
    labels: Int64[np.ndarray, "items"]
    indices: Int64[np.ndarray, "items"] = None  # pyright: ignore[reportAssignmentType]
    config: RecordingConfig = field(default_factory=RecordingConfig)
    provenance: Provenance = field(default_factory=Provenance)
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
        """Number of time steps."""
        return self.logits.shape[0]

    @property
    def items(self) -> int:
        """Number of items: images times trials."""
        return self.logits.shape[1]

    @property
    def classes(self) -> int:
        """Number of classes of the network."""
        return self.logits.shape[2]

    @property
    def trials(self) -> int:
        """Number of times that every image was presented; items are ordered by trial."""
        return self.config.trials or 1

    @property
    def description(self) -> str:
        """Data, kernel, noise and run in a few words: `cifar10 test, ews:0.9, transient occlusion, runs/td0/0`."""
        config, noise = self.config, "no noise"
        if config.noise is not None:
            noise = f"{config.protocol} {config.noise}"
        data = f"{config.data} {config.split}" if config.data else "data without a name"
        return f"{data}, {config.kernel}, {noise}, {self.provenance.run or 'no run'}"

    def cost(self, unit: Unit = "steps") -> Float[np.ndarray, "time"]:
        """Cumulative cost of the prediction at every step.

        Args:
            unit: `steps` (cycles of parallel hardware that updates all blocks at once), `updates` of single blocks, or
                floating-point `operations` per image.
        """
        if unit == "steps":
            return np.arange(1.0, self.steps + 1)
        if unit not in ("updates", "operations"):
            raise InputError(f"unit is {unit!r}: use steps, updates or operations")
        each: tuple[int, ...] = getattr(self.provenance, unit)
        if len(each) != self.steps:
            raise InputError(
                f"the trace has {self.steps} steps and {unit} for {len(each)} of them: record it with cascaded record"
            )
        return np.cumsum(np.array(each, dtype=float))

    def select(self, items: Bool[np.ndarray, "items"] | Int[np.ndarray, "chosen"]) -> Trace:
        """Some items, by mask or by number, in the given order: a copy that counts as one trial."""
        return replace(
            self,
            config=replace(self.config, trials=None if self.config.trials is None else 1),
            logits=self.logits[:, items],
            labels=self.labels[items],
            indices=self.indices[items],
            embeddings=None if self.embeddings is None else self.embeddings[items],
        )

    def trial(self, number: int) -> Trace:
        """One of several trials, counted from 0: every image once."""
        each = self.items // self.trials
        if not 0 <= number < self.trials:
            raise InputError(f"trial {number} does not exist, the trace has {self.trials}: count from 0")
        return self.select(np.arange(number * each, (number + 1) * each))


def join(traces: Sequence[Trace]) -> Trace:
    """Join traces of different images of one data set, in the order of the data set: the folds of a cross-validation.

    The output layers differ between folds, so the joined trace has neither head nor embeddings.
    """
    if not traces:
        raise InputError("there are no traces to join: give at least one")
    first = traces[0]
    for other in traces[1:]:
        _check_joinable(first, other)
    indices = np.concatenate([trace.indices for trace in traces])
    order = np.argsort(indices, kind="stable")
    if (np.diff(indices[order]) == 0).any():
        raise InputError("two of the traces contain the same image: join traces of different ones, such as folds")
    logits = np.empty((first.steps, len(order), first.classes), first.logits.dtype)
    places, start = np.argsort(order), 0
    for trace in traces:  # one after the other into its place: all of them are in memory once
        logits[:, places[start : start + trace.items]] = trace.logits
        start += trace.items
    labels = np.concatenate([trace.labels for trace in traces])[order]
    provenance = join_provenance([trace.provenance for trace in traces])
    return Trace(logits, labels, indices[order], replace(first.config, embeddings=False), provenance)


def join_provenance(folds: Sequence[Provenance]) -> Provenance:
    """The provenance of joined folds: that of the first, the oldest protocol, digests of all items and weights."""
    digests = {name: join_digests([getattr(fold, name) for fold in folds]) for name in ("items", "weights")}
    made_with = min((fold.made_with for fold in folds), key=protocol_version)
    return replace(folds[0], fold=None, made_with=made_with, **digests)


def join_digests(digests: Sequence[str]) -> str:
    """One digest of several; a single one stays."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _check_joinable(first: Trace, other: Trace) -> None:
    check_same_images(first, other)
    names = ("schedule", "kernel", "noise", "protocol", "noise_frames", "trials")
    names = ("provenance.method", "provenance.lam", *(f"config.{name}" for name in names), "steps", "classes")
    check_equal(first, other, names, "join folds of one network that were recorded alike")


def check_same_images(mine: Trace, yours: Trace) -> None:
    """Refuse traces of different data, splits or images."""
    names = ("config.data", "config.split", "provenance.images")
    check_equal(mine, yours, names, "record both with the same --data and --split")


def check_same_items(mine: Trace, yours: Trace) -> None:
    """Refuse traces that do not contain the same items in the same order."""
    check_same_images(mine, yours)
    check_equal(mine, yours, ("items",), "record both with the same --max-images and --trials")
    if not np.array_equal(mine.indices, yours.indices):
        place = int(np.flatnonzero(mine.indices != yours.indices)[0])
        raise InputError(
            f"item {place} is image {mine.indices[place]} in one trace and {yours.indices[place]} in the other: sort "
            "both with trace.select(trace.indices.argsort())"
        )


def check_equal(mine: Trace, yours: Trace, names: Sequence[str], fix: str) -> None:
    """Refuse traces that differ in one of some attributes, such as `config.kernel`."""
    for name in names:
        a, b = attrgetter(name)(mine), attrgetter(name)(yours)
        if a != b:
            places = mine.provenance.run or "one trace", yours.provenance.run or "the other"
            what = name.rpartition(".")[2]
            raise InputError(f"{places[0]} and {places[1]} differ in {what}, {short(a)} and {short(b)}: {fix}")


def short(value: object) -> str:
    """A value as text, digests by their first characters."""
    text = str(value)
    return text if len(text) < 64 else f"{text[:12]}..."


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
            "one index per item"
        )
    if trace.items % trace.trials:
        raise InputError(f"{trace.items} items are not {trace.trials} trials of equal length: record the trace again")
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
    for step, logits in enumerate(trace.logits, start=1):  # one step at a time, so that a mapped trace stays on disk
        if not np.isfinite(logits).all():
            raise InputError(f"logits at step {step} are not all finite: the network has diverged, record another")
    wrong = trace.labels[(trace.labels < 0) | (trace.labels >= trace.classes)]
    if trace.provenance.in_distribution and len(wrong):
        raise InputError(
            f"label {wrong[0]} is none of the {trace.classes} classes, 0 to {trace.classes - 1}: give labels of the "
            "network's classes, or Provenance(in_distribution=False) for out-of-distribution images"
        )
