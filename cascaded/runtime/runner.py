"""Run an exported network with numpy and ONNX Runtime. Importing this module imports neither torch nor ONNX Runtime."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from cascaded.errors import InputError, at_least, first_line, unknown
from cascaded.runtime.exported import BATCH, FULL_PASS, NEXT, StepFile, read_export
from cascaded.runtime.result import EarlyExitResult, check_limits, confidence
from cascaded.runtime.sessions import import_runtime, open_session
from cascaded.training.inputs import check_span, describe_shape, shape_fix

if TYPE_CHECKING:  # importing jaxtyping takes a third of the time that importing this module may take
    from jaxtyping import Float32, Shaped

    Images: TypeAlias = Shaped[np.ndarray, "batch channels height width"]
    Logits: TypeAlias = Float32[np.ndarray, "batch classes"]

STACKED = ("trail.", "stack.")  # names of tensors whose second axis is the batch begin like this


class RunnerState(NamedTuple):
    """A stream between two steps: plain arrays, nothing hidden in the runner.

    Attributes:
        network: The exported network and its schedule.
        step: Number of the last step.
        held: For how many steps the frame has been the same.
        frame: The last frame, normalized.
        tensors: Outputs of the last step that later ones read, by name, as in `config.json`.
    """

    network: str
    step: int
    held: int
    frame: np.ndarray
    tensors: dict[str, np.ndarray]

    @property
    def batch(self) -> int:
        """Number of items."""
        return len(self.frame)

    def select(self, items: np.ndarray | slice) -> RunnerState:
        """Keep some items, by mask, by indices or by slice."""
        tensors = {name: x[:, items] if name.startswith(STACKED) else x[items] for name, x in self.tensors.items()}
        return self._replace(frame=self.frame[items], tensors=tensors)

    def join(self, other: RunnerState) -> RunnerState:
        """The items of both, which one file computes from now on: `Runner.can_join` checks that."""
        axes = {name: int(name.startswith(STACKED)) for name in self.tensors}
        tensors = {name: np.concatenate([self.tensors[name], other.tensors[name]], axes[name]) for name in axes}
        return self._replace(frame=np.concatenate([self.frame, other.frame]), tensors=tensors)


class _Opened(NamedTuple):
    """A file in ONNX Runtime, its outputs, and what they are called in the state."""

    session: Any
    outputs: list[str]
    names: list[str]


class Runner:
    """An exported network: steps, early exit, deadlines and streams, without torch.

    It keeps nothing between calls: the state of a stream is an argument and a result.

    Args:
        folder: A folder that `cascaded.export` wrote.
        schedule: `cascaded` or `serial`; by default the one that the network was trained with.
        threads: Threads per operation. Small networks are fastest with one.
        clock: Returns the time in seconds.

    Attributes:
        config: What the folder contains: input shape, normalization, class names, steps and files.
        schedule: The schedule that it runs.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        schedule: Literal["cascaded", "serial"] | None = None,
        threads: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ):
        at_least(1, threads=threads)
        self.folder = Path(os.path.expanduser(folder))
        self._threads, self._clock = threads, clock
        import_runtime()
        self.config = read_export(self.folder)
        self.schedule = schedule or self.config.schedule
        if self.schedule not in self.config.schedules:
            raise unknown("schedule of this network", self.schedule, self.config.schedules)
        self._steps = self.config.schedules[self.schedule]
        self._network = f"{self.config.digest} {self.schedule}"
        shape, classes = self.config.inputs.shape, len(self.config.inputs.classes)
        logits = next((each.writes["logits"] for each in self._steps.files if "logits" in each.writes), ())
        ends = {"frame": (BATCH, *shape)}, {"logits": (BATCH, classes, *logits[2:])}  # maps have an output per pixel
        self._full = StepFile(FULL_PASS, 1, None, *ends)
        self._sessions: dict[str, _Opened] = {}
        for file in (self._full, *(self._steps.find(each.first, same=True) for each in self._steps.files)):
            if file is not None:
                self._session(file)  # what still images need is opened now, so that no prediction waits for it

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the logits."""
        return self.config.inputs.classes

    # --- steps

    def step(
        self, images: Images | None, state: RunnerState | None = None, *, normalized: bool = False
    ) -> tuple[Logits, RunnerState]:
        """Logits after one more step, and the state for the next one: `Cascade.step` without torch.

        Args:
            images: The next frame: bytes, or floats from 0 to 1; None to repeat the last one, in which case blocks
                whose output is final are not computed again.
            state: The state that the step before returned; None at the start.
            normalized: The images are floats that are normalized already, with `config.inputs`.
        """
        frame = self._frame(images, state, normalized)
        number, held = (1, 0) if state is None else (state.step + 1, state.held)
        held = held + 1 if images is None else 1
        file = self._steps.find(number, same=held == number)
        if file is None:
            raise InputError(
                f"{self.folder} has no file for a new frame at step {number} of the {self.schedule} schedule: give "
                "images at the first step and None later, or use schedule='cascaded' for a stream"
            )
        before = {} if state is None else state.tensors
        logits, changed = self._run(file, {"frame": frame, **before})
        return logits, RunnerState(self._network, number, held, frame, {**before, **changed})

    def stream(
        self, frames: Iterable[Images | None], state: RunnerState | None = None, *, normalized: bool = False
    ) -> Iterator[tuple[Logits, RunnerState]]:
        """Logits and state after every frame of a video.

        Args:
            frames: Frames as in `step`, each of one item per stream.
            state: Where an earlier stream stopped.
            normalized: As in `step`.
        """
        for frame in frames:
            logits, state = self.step(frame, state, normalized=normalized)
            yield logits, state

    def full_pass(self, images: Images, *, normalized: bool = False) -> Logits:
        """The final logits, by one ordinary pass through the network, without steps."""
        return self._run(self._full, {"frame": self._frame(images, None, normalized)})[0]

    # --- predictions

    def predict(
        self,
        images: Images,
        threshold: float | None = None,
        deadline_ms: float | None = None,
        *,
        steps: int | None = None,
        normalized: bool = False,
    ) -> EarlyExitResult[np.ndarray]:
        """Predict each item at the first step at which its confidence is above a threshold, or when time is up.

        Items with a prediction are removed from the batch. At least one step is computed; another one is started only
        if, at the pace of the one before, it ends before the deadline. A prediction is therefore at most one step late.
        Without a threshold and a deadline, one full pass is computed; its step is that of the final output, 0 for a
        kernel that converges only in the limit.

        Args:
            images: Bytes, or floats from 0 to 1.
            threshold: Confidence (highest class probability) above which an item exits.
            deadline_ms: Milliseconds after which all items have their prediction: that of the last finished step.
            steps: Last step, at which all remaining items exit; by default the step at which the output is final.
            normalized: As in `step`.
        """
        self.check_classifies()
        start = now = self._clock()
        if threshold is None and deadline_ms is None and steps is None:
            predictions = self.full_pass(images, normalized=normalized).argmax(axis=-1)
            total, number = self._clock() - start, self._steps.steps or 0
            return EarlyExitResult(predictions, np.full(len(images), number), np.full(len(images), total), total)
        check_limits(threshold, deadline_ms)
        last = self.last_step(steps)
        deadline = np.inf if deadline_ms is None else start + deadline_ms / 1000
        zeros = np.zeros(len(images), np.int64)
        result = EarlyExitResult(zeros, zeros.copy(), zeros.astype(np.float64))
        remaining, state = np.arange(len(images)), None
        for step in range(1, last + 1):
            logits, state = self.step(images if step == 1 else None, state, normalized=normalized)
            before, now = now, self._clock()
            over = step == last or now + (now - before) > deadline
            exits = None if over else confidence(logits) > (1 if threshold is None else threshold)
            count = len(logits) if exits is None else np.count_nonzero(exits)
            if count == len(logits):
                result.predictions[remaining], result.steps[remaining] = logits.argmax(axis=-1), step
                result.seconds[remaining] = now - start
                break
            if exits is not None and count:
                done = remaining[exits]
                result.predictions[done], result.steps[done] = logits[exits].argmax(axis=-1), step
                result.seconds[done] = now - start
                remaining, state = remaining[~exits], state.select(~exits)
        result.total = self._clock() - start
        return result

    def check_classifies(self) -> None:
        """Refuse a network with more than one prediction per image, such as one per pixel."""
        if len(self._full.writes["logits"]) != 2:
            raise InputError(
                f"{self.folder} computes logits of shape {self._full.writes['logits']}, and a prediction is one class "
                "per image: use Runner.step or Runner.full_pass"
            )

    def last_step(self, steps: int | None = None) -> int:
        """The step at which all items exit: the given one, or that of the final output."""
        at_least(1, steps=steps)
        last = steps or self._steps.steps
        if last is None:
            raise InputError(
                f"{self.config.kernel} converges only in the limit: give steps, e.g. steps=70 for alpha 0.9"
            )
        return last

    def can_join(self, one: RunnerState, other: RunnerState) -> bool:
        """Whether one file computes the next step of both, and all later ones: the same step, or no file is left."""
        if one.step == other.step:
            return True
        first, files = min(one.step, other.step) + 1, self._steps.files
        ends = {each.first for each in files} | {each.last + 1 for each in files if each.last is not None}
        later = [self._steps.find(step, same=True) for step in {first, *(end for end in ends if end > first)}]
        return len({each.file for each in later if each is not None}) == 1

    # --- arrays in, arrays out

    def _frame(self, images: Any, state: RunnerState | None, normalized: bool) -> np.ndarray:
        """The frame of a step: new images, checked and normalized, or those of the step before."""
        if state is not None and (not isinstance(state, RunnerState) or state.network != self._network):
            raise InputError("state was made by another network or schedule: give the one that this runner returned")
        if images is None:
            if state is None:
                raise InputError("the first step has no images to repeat: give some, and None in later steps")
            return state.frame
        shape = self.config.inputs.shape
        if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[1:] != shape or not len(images):
            found, fix = f"type {type(images).__name__}", "give an array, np.asarray(images)"
            if isinstance(images, np.ndarray):
                found, fix = f"shape {images.shape}", shape_fix(images.shape, shape)
            raise InputError(
                f"images have {found}, this network takes an array of images of {describe_shape(shape)}, (batch, "
                f"channels, height, width): {fix}"
            )
        if state is not None and state.batch != len(images):
            raise InputError(
                f"there are {len(images)} images, state has {state.batch} items: keep the same items of both, with "
                "images[mask] and state.select(mask)"
            )
        return self._normalized(images, normalized)

    def _normalized(self, images: np.ndarray, normalized: bool) -> np.ndarray:
        floats = np.issubdtype(images.dtype, np.floating)
        if not floats and (normalized or images.dtype != np.uint8):
            raise InputError(f"images are {images.dtype}: give bytes (uint8), or floats from 0 to 1")
        if normalized:
            return np.ascontiguousarray(images, np.float32)
        white = np.float32(1 if floats else 255)
        if floats:
            check_span(float(images.min()), float(images.max()), "uint8", "pass normalized=True")
        mean, std = (
            np.array(each, np.float32)[:, None, None] for each in (self.config.inputs.mean, self.config.inputs.std)
        )
        return ((images - white * mean) / (white * std)).astype(np.float32)

    def _run(self, file: StepFile, values: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Logits, and the tensors of the state that a file changes."""
        if missing := [name for name in file.reads if name not in values]:
            raise InputError(f"state does not have the tensors {', '.join(missing)}: give the one that a step returned")
        opened = self._session(file)
        try:
            outputs = opened.session.run(opened.outputs, {name: values[name] for name in file.reads})
        except Exception as error:  # ONNX Runtime raises many types
            raise InputError(
                f"{self.folder / file.file} could not compute a step ({first_line(error)}): export the network again"
            ) from error
        named = dict(zip(opened.names, outputs, strict=True))
        return named.pop("logits"), named

    def _session(self, file: StepFile) -> _Opened:
        """A file, opened and checked against the configuration."""
        if file.file in self._sessions:
            return self._sessions[file.file]
        path = self.folder / file.file
        session = open_session(path, self._threads)
        ends = (session.get_inputs(), file.reads), (session.get_outputs(), file.writes)
        if any({each.name: tuple(each.shape) for each in found} != named for found, named in ends):
            raise InputError(f"{path} has other inputs or outputs than config.json: export the network again")
        names = [each.removeprefix(NEXT) for each in file.writes]
        self._sessions[file.file] = opened = _Opened(session, list(file.writes), names)
        return opened
