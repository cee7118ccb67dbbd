"""A film: a batch of frame sequences, of which the last frame is repeated.

A still image is a film of one frame. Only distinct frames are stored, and only what is stored is computed: under a
one-step delay and a still image, block i has i different inputs, the last of which is repeated forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Shaped
from torch import Tensor

REST = 0  # the step before the first output, in which nothing has arrived yet
SETTLED = -1  # the step after which nothing changes: the last one that there are norm statistics for


@dataclass(frozen=True)
class Film:
    """Frames with time folded into the batch, so that a memoryless layer is one call for all steps.

    Attributes:
        frames: Stored frames, time first: step t of item b is row `t * batch + b`. Time-major because slices and
            concatenations in time are then contiguous in both memory formats, channels first and channels last.
        batch: Items in a frame.
        steps: Length of the film. The last stored frame is repeated up to it.
        start: Number of its first step, which chooses the batch statistics: `REST`, 1, 2, ... or `SETTLED`.
        copies: How many equal items each item represents. The initial state is the same for every image and is computed
            once.
    """

    frames: Shaped[Tensor, "time_batch *rest"]
    batch: int
    steps: int
    start: int = 1
    copies: int = 1

    @property
    def num_frames(self) -> int:
        """Number of stored frames."""
        return self.frames.shape[0] // self.batch

    def map(self, layer: Callable[[Tensor], Tensor]) -> Film:
        """Run a memoryless layer on all frames at once."""
        return replace(self, frames=layer(self.frames))

    def first(self, steps: int) -> Film:
        """The film up to and including its first `steps` steps."""
        # no slice where nothing is cut: its gradient would be copied
        frames = self.frames if steps >= self.num_frames else self.frames[: steps * self.batch]
        return replace(self, frames=frames, steps=steps)

    def last(self) -> Shaped[Tensor, "batch *rest"]:
        """The last frame, which is repeated."""
        return self.frames[-self.batch :]

    def hold(self, num_frames: int) -> Film:
        """The same film with at least `num_frames` frames stored."""
        missing = num_frames - self.num_frames
        if missing <= 0:
            return self
        return replace(self, frames=torch.cat([self.frames, *[self.last()] * missing]))

    def pieces(self, steps: int) -> Iterator[Film]:
        """The film in pieces of `steps` steps; the last one may be shorter."""
        for first in range(0, self.steps, steps):
            frames = self.frames[first * self.batch : (first + steps) * self.batch]
            length = min(steps, self.steps - first)
            yield replace(self, frames=frames if len(frames) else self.last(), steps=length, start=self.start + first)

    def unfold(self) -> Shaped[Tensor, "time batch *rest"]:
        """All steps, time as an axis of its own."""
        return self.hold(self.steps).frames.unflatten(0, (self.steps, self.batch))


def layout(frames: Tensor) -> torch.memory_format:
    """Channels first or channels last: how frames lie in memory."""
    last = frames.dim() == 4 and frames.is_contiguous(memory_format=torch.channels_last) and not frames.is_contiguous()
    return torch.channels_last if last else torch.contiguous_format


def still(images: Shaped[Tensor, "batch *rest"], steps: int, start: int = 1) -> Film:
    """One frame, repeated for `steps` steps."""
    return Film(images, batch=images.shape[0], steps=steps, start=start)


def moving(frames: Shaped[Tensor, "time batch *rest"], steps: int | None = None, start: int = 1) -> Film:
    """One frame per step. With more steps than frames the last frame is repeated, with fewer the film is cut."""
    time, batch = frames.shape[:2]
    steps = time if steps is None else steps
    return Film(frames[:steps].flatten(0, 1), batch=batch, steps=steps, start=start)


def join(a: Film, b: Film, how: Callable[[Tensor, Tensor], Tensor]) -> Film:
    """Combine two films frame by frame; the shorter one repeats its last frame."""
    longer = max(a.num_frames, b.num_frames)
    return replace(a, frames=how(a.hold(longer).frames, b.hold(longer).frames))
