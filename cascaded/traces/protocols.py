"""Presentation protocols: still images, clean or noisy, persistent noise, and transient noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Generator, Tensor

from cascaded.cascade.inputs import chosen_schedule
from cascaded.cascade.kernels import ExponentialSmoothing, Kernel
from cascaded.cascade.named import make_kernel
from cascaded.data.augment import pixels
from cascaded.data.noise import make_noise
from cascaded.errors import InputError, at_least
from cascaded.models.classifier import Classifier
from cascaded.models.networks import Network
from cascaded.traces.config import RecordingConfig, fine_steps
from cascaded.training.load import Trained

Logits = Float[Tensor, "time batch classes"]
MAX_NOISE_FRAMES = 6
"""Longest transient noise in the paper."""
CLEAN_STEPS = 10
"""Clean steps before and after transient noise, as in the paper."""
TRIALS = 5


class SerialKernelError(InputError):
    """A delay kernel for a network that is run serially; such a network can be skipped among several."""


def check_config(config: RecordingConfig) -> None:
    """Refuse a configuration that no network can be recorded with."""
    make_kernel(config.kernel)
    counts = {"--steps": config.steps, "--max-images": config.max_images, "--activations": config.activations}
    at_least(1, **counts, **{"--trials": config.trials})
    at_least(0, **{"--seed": config.seed})
    if config.noise is None:
        for name in ("protocol", "trials", "noise_frames"):
            if value := getattr(config, name):
                raise InputError(f"--{name.replace('_', '-')} is {value} without --noise: add one, such as occlusion")
        return
    make_noise(config.noise)
    frames = config.noise_frames
    if frames and config.protocol != "transient":
        raise InputError(f"--noise-frames is {list(frames)}, which is for transient noise: add --protocol transient")
    if frames and (min(frames) < 1 or len(set(frames)) < len(frames)):
        raise InputError(f"--noise-frames is {list(frames)}: give different numbers of at least 1")
    for name in ("embeddings", "activations"):
        if getattr(config, name):
            raise InputError(f"--{name} needs images without noise, --noise is {config.noise}: leave one out")


def resolve(run: Trained, config: RecordingConfig) -> RecordingConfig:
    """The configuration with schedule, kernel, steps and noise filled in for a network."""
    check_config(config)
    net, stages = run.net, run.net.serial_steps
    schedule = chosen_schedule(config.schedule or run.config.get_method().schedule, net.heads)
    if schedule == "serial" and config.kernel not in ("osd", "none"):
        raise SerialKernelError(
            f"--kernel is {config.kernel}, {run.folder} is run serially, without delays: leave it out"
            + ("" if net.heads == "shallow_deep" else ", or add --schedule cascaded")
        )
    if schedule == "serial" and is_still(config) and (config.steps or 1) > stages:
        raise InputError(f"--steps is {config.steps}, {run.folder} has {stages} serial steps: give at most {stages}")
    kernel = "none" if schedule == "serial" else config.kernel
    steps = CLEAN_STEPS if config.protocol == "transient" else max(stages, _final_step(net, make_kernel(kernel)))
    if config.activations and isinstance(net, Classifier):
        raise InputError(
            f"--activations stores maps of blocks, which {run.folder}, a converted {run.config.arch}, does not have: "
            "leave it out"
        )
    config = replace(config, schedule=schedule, kernel=kernel, steps=config.steps or steps)
    if config.noise is None:
        return config
    trials = config.trials or (1 if config.protocol == "still" else TRIALS)
    config = replace(config, protocol=config.protocol or "persistent", trials=trials)
    every = tuple(range(1, MAX_NOISE_FRAMES + 1))
    return config if config.protocol != "transient" else replace(config, noise_frames=config.noise_frames or every)


def is_still(config: RecordingConfig) -> bool:
    """Whether the same image is presented at every step, clean or noisy."""
    return config.noise is None or config.protocol == "still"


def _final_step(net: Network, kernel: Kernel) -> int:
    """The step at which the output is final, or close to it under a kernel that converges only in the limit."""
    if isinstance(kernel, ExponentialSmoothing) and kernel.alpha:
        return fine_steps(kernel.alpha)
    return net.steps_to_settle(kernel)


def make_protocol(run: Trained, config: RecordingConfig) -> Protocol:
    """The protocol of a configuration, for a network."""
    return Protocol(run, resolve(run, config))


@dataclass(frozen=True)
class Protocol:
    """Presents images to a network and yields its logits.

    Without noise, the same clean image is presented at every step, with still noise the same noisy one. Persistent
    noise is new at every step. Transient noise is clean steps, some noisy frames, and as many clean steps again, with
    one variant per number of noisy frames.

    Attributes:
        run: The network.
        config: Its configuration, resolved; `make_protocol` does that.
    """

    run: Trained
    config: RecordingConfig

    @cached_property
    def kernel(self) -> Kernel | None:
        """The delay kernel; None under the serial schedule."""
        return None if self.config.schedule == "serial" else make_kernel(self.config.kernel)

    @property
    def steps(self) -> int:
        """Number of steps; under transient noise, of clean steps before and after the noise."""
        assert self.config.steps is not None
        return self.config.steps

    @property
    def variants(self) -> list[RecordingConfig]:
        """The configuration of every trace that one presentation gives."""
        return [replace(self.config, noise_frames=(each,)) for each in self.config.noise_frames] or [self.config]

    @property
    def drawn(self) -> int:
        """Noisy frames per image. Transient: at least the paper's maximum, so that any choice has the same noise."""
        if is_still(self.config):
            return int(self.config.noise is not None)
        return self.steps if self.config.protocol == "persistent" else max(MAX_NOISE_FRAMES, *self.config.noise_frames)

    @property
    def frames_in_memory(self) -> int:
        """Frames per image that are in memory at a time: the noisy ones, and the clean one if it is presented."""
        return self.drawn + (self.config.protocol not in ("persistent", "still"))

    def cost(self, steps: int) -> tuple[list[int], list[int]]:
        """Block updates per step, and operations per image and step (for still images only)."""
        net, schedule, (_, height, width) = self.run.net, self.config.schedule or "cascaded", self.run.inputs.shape
        if is_still(self.config):
            updates = net.cycles(schedule, kernel=self.kernel, steps=steps)
            return updates, net.operations(height, width, schedule, kernel=self.kernel, steps=steps)
        if schedule == "serial":
            return [sum(net.cycles(schedule))] * steps, []
        return net.cycles("cascaded", kernel=self.kernel, steps=steps, moving=True), []

    def present(
        self, images: UInt8[Tensor, "batch channels height width"], generators: Sequence[Generator]
    ) -> Iterator[Logits]:
        """The logits of every variant. Noise is drawn from one generator per image."""
        net, serial = self.run.net, self.config.schedule == "serial"
        if is_still(self.config):
            frame = self.run.normalized(images) if self.config.noise is None else self._noisy(images, generators)[0]
            yield net(frame, kernel=self.kernel, steps=self.steps, schedule=self.config.schedule)
        elif self.config.protocol == "transient":
            yield from (self._serial_transient if serial else self._cascaded_transient)(images, generators)
        else:
            noisy = self._noisy(images, generators)
            yield self._final(noisy) if serial else net(noisy, kernel=self.kernel)

    def _noisy(self, images: Tensor, generators: Sequence[Generator]) -> Tensor:
        """Noisy frames of normalized images. The noise on an image does not depend on the other images."""
        assert self.config.noise is not None
        noise = make_noise(self.config.noise)
        pairs = zip(
            (pixels(images) if noise.of_pixels else self.run.normalized(images)).split(1), generators, strict=True
        )
        frames = torch.cat([noise.film(image, self.drawn, generator) for image, generator in pairs], dim=1)
        frames = self.run.normalized(frames) if noise.of_pixels else frames
        return frames[: max(self.config.noise_frames, default=self.drawn)]

    def _final(self, frames: Tensor) -> Logits:
        """The final logits of every frame, each processed in full."""
        return torch.stack([self.run.net.final_logits(frame) for frame in frames])

    def _serial_transient(self, images: Tensor, generators: Sequence[Generator]) -> Iterator[Logits]:
        clean = self._final(self.run.normalized(images)[None]).expand(self.steps, -1, -1)
        during = self._final(self._noisy(images, generators))
        for frames in self.config.noise_frames:
            yield torch.cat([clean, during[:frames], clean])

    def _cascaded_transient(self, images: Tensor, generators: Sequence[Generator]) -> Iterator[Logits]:
        """Variants share their noise: clean beginning and noise are computed once, only what follows once per variant.

        Three noisy frames begin with the two of the variant before.
        """
        clean = self.run.normalized(images)
        before, state = self._repeat(clean, None)
        states, during = [state], []
        for frame in self._noisy(images, generators):
            logits, state = self.run.net.step(frame, states[-1], kernel=self.kernel)
            during.append(logits)
            states.append(state)
        for frames in self.config.noise_frames:
            after, _ = self._repeat(clean, states[frames])
            yield torch.stack([*before, *during[:frames], *after])

    def _repeat(self, frame: Tensor, state: Any) -> tuple[list[Tensor], Any]:
        """Present a frame and keep it for all clean steps."""
        outputs = []
        for step in range(self.steps):
            logits, state = self.run.net.step(frame if step == 0 else None, state, kernel=self.kernel)
            outputs.append(logits)
        return outputs, state
