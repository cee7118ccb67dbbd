"""Networks of the page, each exported once and run by a `Runner`; what they compute, one step or frame at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Literal, NamedTuple

import numpy as np
import torch

from cascaded.data.noise import NOISES
from cascaded.errors import InputError
from cascaded.hub.pretrained import load
from cascaded.runtime.export import export
from cascaded.runtime.exported import CONFIG, FORMAT, read_export
from cascaded.runtime.images import read_image
from cascaded.runtime.predict import FINE_STEPS
from cascaded.runtime.result import check_limits
from cascaded.runtime.runner import Runner, RunnerState

NO_NOISE = "none"


class StepRow(NamedTuple):
    """One step of a network.

    Attributes:
        step: Number of the step, from 1.
        probabilities: Class probabilities.
        milliseconds: Time of this step.
        total: Time of all steps so far.
    """

    step: int
    probabilities: np.ndarray
    milliseconds: float
    total: float


class Stop(NamedTuple):
    """Where a prediction is final, and why."""

    step: int
    reason: Literal["threshold", "deadline", "last step"]


class FrameRow(NamedTuple):
    """One frame of a stream.

    Attributes:
        pixels: The frame that both networks received, bytes, (height, width, channels).
        cascade: Class probabilities of the cascade after this frame: one step, from the state after the frame before.
        serial: Class probabilities of one full pass over this frame alone.
    """

    pixels: np.ndarray
    cascade: np.ndarray
    serial: np.ndarray


@dataclass
class Networks:
    """The networks that the page offers; each is exported and opened when it is chosen.

    Attributes:
        names: Trained networks, as for `cascaded.load`, or exported folders.
        folder: An empty folder for exported files.
    """

    names: Sequence[str]
    folder: Path
    _folders: dict[str, Path] = field(default_factory=dict)
    _runners: dict[tuple[str, str], Runner] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def runner(self, name: str) -> Runner:
        """A network with its own schedule, ready to run; a name that was not offered is refused."""
        with self._lock:
            return self._open(name, read_export(self._folder(name)).schedule)

    def stream(self, name: str) -> Runner:
        """A network that takes a new frame at every step."""
        with self._lock:
            if "cascaded" not in read_export(self._folder(name)).schedules:
                raise InputError(f"{name} computes one block per step and takes no new frames: choose another network")
            return self._open(name, "cascaded")

    def _folder(self, name: str) -> Path:
        """The exported files of a network."""
        if name not in self.names:
            raise InputError(f"there is no network {name!r} on this page: choose one of {', '.join(self.names)}")
        if name not in self._folders:
            folder = Path(name).expanduser()
            if not is_exported(folder):
                folder = self.folder / f"exported-{len(self._folders)}"
                export(load(name), folder)
            self._folders[name] = folder
        return self._folders[name]

    def _open(self, name: str, schedule: Literal["cascaded", "serial"]) -> Runner:
        if (name, schedule) not in self._runners:
            runner = Runner(self._folder(name), schedule=schedule)
            runner.check_classifies()
            channels, *size = runner.config.inputs.shape
            for _ in run_steps(runner, np.zeros((*size, channels), np.uint8)):
                pass  # the first run of a file takes longer
            self._runners[name, schedule] = runner
        return self._runners[name, schedule]


def is_exported(folder: Path) -> bool:
    """Whether a folder is an exported network, and not a run or a saved one."""
    try:
        return FORMAT in (folder / CONFIG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def read_pixels(file: str, runner: Runner) -> np.ndarray:
    """An image file in a network's input size, bytes, (height, width, channels)."""
    return read_image(Path(file)).resize(runner.config.inputs.shape)


def run_steps(runner: Runner, pixels: np.ndarray) -> Iterator[StepRow]:
    """All steps of one image."""
    images, state, total = np.ascontiguousarray(pixels.transpose(2, 0, 1))[None], None, 0.0
    for step in range(1, last_step(runner) + 1):
        start = time.perf_counter()
        logits, state = runner.step(None if state else images, state)
        milliseconds = 1000 * (time.perf_counter() - start)
        total += milliseconds
        yield StepRow(step, softmax(logits[0]), milliseconds, total)


def last_step(runner: Runner) -> int:
    """The step of the final output; 70 under exponential smoothing, which converges only in the limit."""
    return runner.config.schedules[runner.schedule].steps or FINE_STEPS


def find_stop(rows: Sequence[StepRow], last: int, threshold: float | None, deadline_ms: float | None) -> Stop | None:
    """Where the prediction is final, by the rules of `Runner.predict`; None if no step has been the last one yet."""
    check_limits(threshold, deadline_ms)
    for row in rows:
        if threshold is not None and row.probabilities.max() > threshold:
            return Stop(row.step, "threshold")
        if row.step == last:
            return Stop(row.step, "last step")
        if deadline_ms is not None and row.total + row.milliseconds > deadline_ms:
            return Stop(row.step, "deadline")
    return None


def softmax(logits: np.ndarray) -> np.ndarray:
    """Class probabilities."""
    exponents = np.exp(logits - logits.max())
    return exponents / exponents.sum()


def noisy_frame(runner: Runner, pixels: np.ndarray, noise: str, generator: torch.Generator) -> np.ndarray:
    """One frame of an image under one of the paper's noises: normalized, (1, channels, height, width)."""
    inputs = runner.config.inputs
    mean, std = (torch.tensor(each)[:, None, None] for each in (inputs.mean, inputs.std))
    images = ((torch.from_numpy(pixels).permute(2, 0, 1) / 255 - mean) / std)[None].float()
    return (images if noise == NO_NOISE else NOISES[noise](images, generator)).numpy()


def run_frame(
    runner: Runner, pixels: np.ndarray, noise: str, generator: torch.Generator, state: RunnerState | None
) -> tuple[FrameRow, RunnerState]:
    """One frame of a stream, and the state for the next one.

    Args:
        runner: The network.
        pixels: The image without noise, bytes, (height, width, channels).
        noise: One of the paper's noises, or "none".
        generator: Draws the noise of every frame anew.
        state: The state after the frame before; None at the start.
    """
    frame, inputs = noisy_frame(runner, pixels, noise, generator), runner.config.inputs
    logits, state = runner.step(frame, state, normalized=True)
    serial = runner.full_pass(frame, normalized=True)
    shown = frame[0].transpose(1, 2, 0) * np.array(inputs.std) + np.array(inputs.mean)
    received = (255 * shown.clip(0, 1)).round().astype(np.uint8)
    return FrameRow(received, softmax(logits[0]), softmax(serial[0])), state
