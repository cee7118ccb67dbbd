"""How images are shown to a network: still, under noise that lasts, or under noise that passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, UInt8
from torch import Generator, Tensor

from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel
from cascaded.data.noise import make_noise
from cascaded.errors import InputError
from cascaded.traces.config import Noising, Protocol
from cascaded.training.load import Trained

if TYPE_CHECKING:
    from cascaded.cascade.state import State

Said = Float[Tensor, "time batch classes"]
LONGEST = 6  # noisy frames in the paper's transient noise


@dataclass(frozen=True)
class Take:
    """One of the traces that a view makes."""

    ending: str  # of its name
    steps: int
    noise: Noising | None = None


@dataclass(frozen=True)
class View(ABC):
    """How a network is run, and on what.

    Attributes:
        kernel: How results are delayed.
        schedule: Under the serial schedule a still image is answered block by block, and of a film every frame is
            processed in full before the next (the paper's SerialCE x 9).
    """

    kernel: Kernel
    schedule: Schedule

    @property
    @abstractmethod
    def takes(self) -> list[Take]:
        """The traces this makes, all at once."""

    @property
    def trials(self) -> int:
        """How often every image is shown."""
        return 1

    @property
    def draws(self) -> int:
        """The seed of all noise."""
        return 0

    @property
    def held(self) -> int:
        """Frames of an image that are in memory at a time."""
        return 1

    @abstractmethod
    def show(
        self, run: Trained, images: UInt8[Tensor, "batch channels height width"], generators: Sequence[Generator]
    ) -> Iterator[Said]:
        """What the network says in each take; noise is drawn from a generator an image."""

    def updates(self, run: Trained, steps: int) -> list[int]:
        """Block updates at every step; here of a film whose every frame is new."""
        blocks = len(run.net.blocks)
        if self.schedule == "serial":
            return [blocks] * steps
        return run.net.cycles("cascaded", kernel=self.kernel, steps=steps, moving=True)

    def operations(self, run: Trained, steps: int) -> list[int]:
        """Operations an image at every step; counted for still images alone."""
        return []


@dataclass(frozen=True)
class Still(View):
    """An image that holds.

    Attributes:
        steps: How many read-outs.
    """

    steps: int

    @property
    def takes(self) -> list[Take]:
        return [Take("", self.steps)]

    def show(self, run: Trained, images: Tensor, generators: Sequence[Generator]) -> Iterator[Said]:
        yield run.net(run.normalised(images), kernel=self.kernel, steps=self.steps, schedule=self.schedule)

    def updates(self, run: Trained, steps: int) -> list[int]:
        return run.net.cycles(self.schedule, kernel=self.kernel, steps=steps)

    def operations(self, run: Trained, steps: int) -> list[int]:
        _, height, width = run.inputs.shape
        return run.net.operations(height, width, self.schedule, kernel=self.kernel, steps=steps)


@dataclass(frozen=True)
class Noisy(View):
    """Noise that is drawn anew at every step.

    Attributes:
        noise: Which one, by name.
        trials_each: How often every image is shown, each time with other draws.
        seed: Another seed draws other noise.
    """

    noise: str
    trials_each: int = 5
    seed: int = 0

    def __post_init__(self):
        make_noise(self.noise)
        if self.trials_each < 1:
            raise InputError(f"--trials is {self.trials_each}: give at least 1")

    @property
    def trials(self) -> int:
        return self.trials_each

    @property
    def draws(self) -> int:
        return self.seed

    def film(self, run: Trained, images: Tensor, frames: int, generators: Sequence[Generator]) -> Tensor:
        """Noisy frames, as the network takes them; those of an image do not depend on what else is shown."""
        noise, shown = make_noise(self.noise), (images / 255).split(1)
        films = [noise.film(image, frames, drawn) for image, drawn in zip(shown, generators, strict=True)]
        return run.normalised(torch.cat(films, dim=1))

    def noising(self, protocol: Protocol, onset: int, frames: int, drawn: int) -> Noising:
        """As a trace tells it."""
        return Noising(self.noise, protocol, onset, frames, self.trials_each, self.seed, drawn)


@dataclass(frozen=True)
class Persistent(Noisy):
    """Every frame is spoilt, each in its own way.

    Attributes:
        steps: How many frames, and read-outs.
    """

    steps: int = 9

    @property
    def takes(self) -> list[Take]:
        return [Take(f"-{self.noise}-persistent", self.steps, self.noising("persistent", 1, self.steps, self.steps))]

    @property
    def held(self) -> int:
        return self.steps

    def show(self, run: Trained, images: Tensor, generators: Sequence[Generator]) -> Iterator[Said]:
        film = self.film(run, images, self.steps, generators)
        if self.schedule == "serial":
            yield torch.stack([run.net.answer(frame) for frame in film])
        else:
            yield run.net(film, kernel=self.kernel)


@dataclass(frozen=True)
class Transient(Noisy):
    """A clean image, some noisy frames, and the clean image again; a take for every number of noisy frames.

    The takes of a trial share their draws: the noise of three frames begins with the two of the take before. So in
    every trial the clean beginning and the noise are run once, and only the endings one by one.

    Attributes:
        lengths: Numbers of noisy frames.
        before: Clean steps before them.
        after: Clean steps after them.
    """

    lengths: Sequence[int] = (1, 2, 3, 4, 5, 6)
    before: int = 10
    after: int = 10

    def __post_init__(self):
        super().__post_init__()
        if not self.lengths or min(self.lengths) < 1 or len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"--noisy is {list(self.lengths)}: give different numbers of frames of at least 1")

    @property
    def takes(self) -> list[Take]:
        takes = []
        for frames in self.lengths:
            noise = self.noising("transient", self.before + 1, frames, self.drawn)
            takes.append(Take(f"-{self.noise}-transient-{frames}", self.before + frames + self.after, noise))
        return takes

    @property
    def held(self) -> int:
        return self.drawn + 1

    @property
    def drawn(self) -> int:
        """Frames that are drawn: as many as the paper's longest, so that other lengths see the same noise."""
        return max(LONGEST, *self.lengths)

    def show(self, run: Trained, images: Tensor, generators: Sequence[Generator]) -> Iterator[Said]:
        clean = run.normalised(images)
        film = self.film(run, images, self.drawn, generators)[: max(self.lengths)]
        shown = self._in_full if self.schedule == "serial" else self._cascaded
        return shown(run, clean, film)

    def _in_full(self, run: Trained, clean: Tensor, film: Tensor) -> Iterator[Said]:
        once = run.net.answer(clean)[None]
        noisy = torch.stack([run.net.answer(frame) for frame in film])
        for frames in self.lengths:
            yield torch.cat([once.expand(self.before, -1, -1), noisy[:frames], once.expand(self.after, -1, -1)])

    def _cascaded(self, run: Trained, clean: Tensor, film: Tensor) -> Iterator[Said]:
        said, state = self._held(run, clean, None, self.before)
        states, noisy = [state], []
        for frame in film:
            logits, state = run.net.step(frame, states[-1], kernel=self.kernel, schedule=self.schedule)
            noisy.append(logits)
            states.append(state)
        for frames in self.lengths:
            ending, _ = self._held(run, clean, states[frames], self.after)
            yield torch.stack([*said, *noisy[:frames], *ending])

    def _held(self, run: Trained, frame: Tensor, state: State | None, steps: int) -> tuple[list[Tensor], State | None]:
        """Show a frame, and hold it."""
        said, now = [], frame
        for _ in range(steps):
            logits, state = run.net.step(now, state, kernel=self.kernel, schedule=self.schedule)
            said.append(logits)
            now = None
        return said, state
