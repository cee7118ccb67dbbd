"""Random numbers that depend on the seed and the step only.

A run has no hidden random state: the order of an epoch, the augmentation of a batch and the initial weights are drawn
from generators of their own, seeded by the run's seed and the place. To resume a run, its step is all that is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_at(seed: int, *place: str | int) -> int:
    """A seed for a place in a run, independent of those of other places."""
    digest = hashlib.sha256(repr((seed, *place)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # torch takes 63 bits


def generator_at(seed: int, *place: str | int) -> torch.Generator:
    """A generator for a place in a run."""
    return torch.Generator().manual_seed(seed_at(seed, *place))


@contextmanager
def drawing_at(seed: int, *place: str | int) -> Iterator[None]:
    """For code that draws from torch's global generators: they are seeded for a place in a run, and then as before."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_at(seed, *place))
        yield
