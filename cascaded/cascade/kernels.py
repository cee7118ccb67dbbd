"""Delay kernels: how the output of a block reaches the next one.

    out[t] = sum_k kappa[k] x[t-k]          delay lines start empty

Every kernel is a lag (its leading zero: nothing arrives in the step in which it was computed) followed by a trail (the
remaining taps). The two are kept apart because a lag commutes with any memoryless layer: F(x) one step late is F of x
one step late. A block therefore remembers its input and computes its result only when that is due.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from cascaded.cascade.film import Film, moving
from cascaded.errors import InputError


class Line(NamedTuple):
    """The memory of a delay between steps; None if its kernel has none or nothing has arrived."""

    seen: Float[Tensor, "batch *rest"] | None = None  # last step's input, if the kernel lags
    trail: Float[Tensor, "taps batch *rest"] | None = None  # what the remaining taps still need, oldest first


class Kernel(ABC):
    """How an output spreads over time. Kernels have no state: it is in a `Line`."""

    @property
    @abstractmethod
    def lag(self) -> int:
        """1 if the first tap is zero, else 0."""

    @property
    @abstractmethod
    def memory(self) -> float:
        """How many steps after its first arrival, lag aside, a held input has arrived in full."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """How many frames its trail keeps."""

    @property
    def only_lags(self) -> bool:
        """Whether it changes nothing apart from its lag."""
        return False

    @abstractmethod
    def spread(self, film: Film, trail: Tensor | None) -> tuple[Film, Tensor | None]:
        """Filter a film with the kernel less its lag; also returns what the next film needs."""

    def filter(
        self, frames: Float[Tensor, "time batch *rest"], line: Line | None = None
    ) -> tuple[Float[Tensor, "time batch *rest"], Line]:
        """Filter frames along time, from an empty line or from where an earlier call stopped."""
        seen, trail = line or Line()
        if self.lag:
            before = torch.zeros_like(frames[:1]) if seen is None else seen[None]
            frames, seen = torch.cat([before, frames[:-1]]), frames[-1]
        film, trail = self.spread(moving(frames), trail)
        return film.unfold(), Line(seen, trail)

    def step(
        self, frame: Float[Tensor, "batch *rest"], line: Line | None = None
    ) -> tuple[Float[Tensor, "batch *rest"], Line]:
        """Filter one frame: `filter` for a film that arrives frame by frame."""
        frames, line = self.filter(frame[None], line)
        return frames[0], line

    def settles(self, stages: int) -> float:
        """The step at which the output of this many delayed stages, the stem included, is constant."""
        return 1 + stages * self.memory + (stages - 1) * self.lag


@dataclass(frozen=True)
class TappedDelay(Kernel):
    """Any finite kernel: `weights[k]` of what was computed k steps ago."""

    weights: Sequence[float]

    def __post_init__(self):
        weights = tuple(float(weight) for weight in self.weights)
        if not any(weights) or not all(map(math.isfinite, weights)):
            raise InputError(f"kernel weights are {list(self.weights)}: give finite numbers, at least one not zero")
        object.__setattr__(self, "weights", weights)

    @property
    def lag(self) -> int:
        return int(self.weights[0] == 0)

    @property
    def taps(self) -> Sequence[float]:
        """The weights less the lag."""
        return self.weights[self.lag :]

    @property
    def memory(self) -> int:
        return len(self.taps) - 1

    @property
    def kept(self) -> int:
        return self.memory

    @property
    def only_lags(self) -> bool:
        return self.taps == (1.0,)

    def spread(self, film: Film, trail: Tensor | None) -> tuple[Film, Tensor | None]:
        if self.only_lags:
            return film, None
        length, batch = min(film.steps, film.num_frames + self.memory), film.batch
        held = film.hold(length).frames
        empty = [torch.zeros_like(held[:batch])] * self.memory
        line = torch.cat([*empty, held] if trail is None else [trail.flatten(0, 1), held])
        # tap k starts k frames before the newest one
        terms = [
            weight * line[(self.memory - k) * batch :][: length * batch] for k, weight in enumerate(self.taps) if weight
        ]
        kept = line[length * batch :].unflatten(0, (self.memory, batch)) if self.memory else None
        return replace(film, frames=sum(terms[1:], start=terms[0])), kept


class NoDelay(TappedDelay):
    """[1 0 0 ...]: no delay at all, an ordinary network."""

    def __init__(self):
        super().__init__((1.0,))

    def __repr__(self) -> str:
        return "NoDelay()"


class OneStepDelay(TappedDelay):
    """[0 1 0 ...]: what a block computes in one step arrives in the next."""

    def __init__(self):
        super().__init__((0.0, 1.0))

    def __repr__(self) -> str:
        return "OneStepDelay()"


@dataclass(frozen=True)
class ExponentialSmoothing(Kernel):
    """(1-a) [1 a a^2 ...]: a leaky integrator, `s[t] = a s[t-1] + (1-a) x[t]`."""

    alpha: float

    def __post_init__(self):
        if not 0 <= self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}: exponential smoothing takes 0 <= alpha < 1, larger being slower")

    @property
    def lag(self) -> int:
        return 0

    @property
    def memory(self) -> float:
        return math.inf if self.alpha else 0

    @property
    def kept(self) -> int:
        return 1

    def spread(self, film: Film, trail: Tensor | None) -> tuple[Film, Tensor | None]:
        held = film.hold(film.steps).frames.split(film.batch)
        s = torch.zeros_like(held[0]) if trail is None else trail[0]
        out = []
        for x in held:
            s = torch.lerp(x, s, self.alpha)
            out.append(s)
        return replace(film, frames=torch.cat(out)), s[None]
