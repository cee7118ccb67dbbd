"""Seeds that follow from one another: what is drawn at a place is known from the place.

A run has no hidden random state. The order of an epoch, the augmentation of a batch and the initial weights are each
drawn from a generator of their own, seeded by the run's seed and where they stand. To resume is to know the step.
"""

from __future__ import annotations

import hashlib

import torch


def seed_at(seed: int, *place: str | int) -> int:
    """A seed for a place in a run, as good as unrelated to those of other places."""
    told = repr((seed, *place)).encode()
    return int.from_bytes(hashlib.sha256(told).digest()[:8], "big") >> 1  # torch takes 63 bits


def generator_at(seed: int, *place: str | int) -> torch.Generator:
    """A generator for a place in a run."""
    return torch.Generator().manual_seed(seed_at(seed, *place))
