"""Run a converted model: all steps at once, and from rest.

The values of a node at all steps are a `Film`: frames one after another along the batch, of which the last one is
repeated. A segment runs on all its frames in one call (`fold`) where that is known to be right, otherwise on one frame
after another (`loop`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.code import Delay, Take
from cascaded.cascade.convert.graph import batch_axis, zeros
from cascaded.cascade.convert.segments import Plan, Segment
from cascaded.cascade.convert.statistics import Clock, StepStatistics
from cascaded.cascade.film import Film
from cascaded.cascade.kernels import Kernel


def to_film(frames: list[Tensor], axis: int | None, steps: int) -> Film:
    """Frames as a film: the batch comes first, and a value without a batch is one item."""
    rows = [frame.unsqueeze(0) if axis is None else frame.movedim(axis, 0) for frame in frames]
    return Film(torch.cat(rows) if len(rows) > 1 else rows[0], batch=rows[0].shape[0], steps=steps)


def frame_at(film: Film, step: int, axis: int | None) -> Tensor:
    """The value at a step, from 1, as the model computes it."""
    position = min(step, film.num_frames) - 1
    rows = film.frames[position * film.batch : (position + 1) * film.batch]
    return rows[0] if axis is None else rows.movedim(0, axis)


@dataclass
class Run:
    """One run over all steps.

    Attributes:
        plan: The graph and its segments.
        values: Parameters, buffers, constants, and what does not depend on the inputs.
        films: What depends on the inputs; the inputs themselves at the beginning.
        batch: Number of items.
        steps: Number of steps.
        shown: Number of different input frames.
        kernel: Delay kernel.
        statistics: Rows of the batch norms.
        folded: Indices of the segments that run on all frames in one call.
        rest: What delay lines contain before the first step; nothing if they start empty.
    """

    plan: Plan
    values: dict[fx.Node, Any]
    films: dict[fx.Node, Film]
    batch: int
    steps: int
    shown: int
    kernel: Kernel
    statistics: StepStatistics
    folded: set[int]
    rest: dict[fx.Node, Tensor] | None = None

    def output(self) -> Tensor:
        """The output at every step: `(time, ...)`."""
        for position, segment in enumerate(self.plan.moving):
            if segment.key.behind_stem and self.rest is None:
                self.rest = self.at_rest()
            frames = self.frames(segment)
            if frames > 0:
                self.run_segment(segment, frames, position in self.folded)
        return self.result()

    def result(self) -> Tensor:
        """The output at every step, once all segments have run."""
        node = self.plan.captured.output
        axis, film = batch_axis(node), replace(self.films[node], steps=self.steps)
        return film.unfold().squeeze(1) if axis is None else film.unfold().movedim(1, axis + 1)

    def frames(self, segment: Segment) -> int:
        """How many frames of a segment are different and reach the output within the given steps."""
        different = segment.distinct(self.kernel) + self.shown - 1
        return int(min(different, self.steps - segment.lead(self.kernel)))

    def run_segment(self, segment: Segment, frames: int, fold: bool) -> None:
        """Compute the films that a segment gives."""
        taken = self.taken(segment, frames)
        results = self.fold(segment, taken, frames) if fold or frames == 1 else self.loop(segment, taken, frames)
        self.films.update(zip(segment.gives, results, strict=True))

    # --- what a segment gets

    def taken(self, segment: Segment, frames: int) -> list[Any]:
        """Films of at most this many frames, and plain values that are the same at every step."""
        return [
            self.values[take.source] if take.source in self.values else self._film(take, frames)
            for take in segment.takes
        ]

    def _film(self, take: Take, frames: int) -> Film:
        film = self.films.get(take.source)
        if take.delay is Delay.BRANCH:
            film, _ = self.kernel.spread(self._lagged(take.source, film, frames), None)
        assert film is not None
        if take.delay is Delay.STEM:
            film, _ = self.kernel.spread(film.first(frames), None)
        return film.first(frames)

    def _lagged(self, source: fx.Node, film: Film | None, frames: int) -> Film:
        """A film one step late, if the kernel lags: what the line contains at the start comes first."""
        if not self.kernel.lag:
            assert film is not None
            return film.first(frames)
        first = (self.rest or {}).get(source)
        if first is None:
            first = zeros(source, self.batch, film.frames.dtype if film else None)
        lagged = to_film([first], batch_axis(source), frames)
        if film is None or frames == 1:
            return lagged
        return replace(lagged, frames=torch.cat([lagged.frames, film.frames])).first(frames)

    # --- how a segment runs

    def fold(self, segment: Segment, taken: list[Any], frames: int) -> list[Film]:
        """Run a segment once, with time folded into the batch."""
        values = [_folded(take.source, value, frames) for take, value in zip(segment.takes, taken, strict=True)]
        results = segment(values, self.batch * frames, Clock(self.statistics, 1, frames))
        films = []
        for node, result in zip(segment.gives, results, strict=True):
            film = to_film([result], batch_axis(node), frames)
            films.append(film if batch_axis(node) is None else replace(film, batch=film.batch // frames))
        return films

    def loop(self, segment: Segment, taken: list[Any], frames: int) -> list[Film]:
        """Run a segment on one frame after another."""
        results = []
        for step in range(1, frames + 1):
            values = [
                frame_at(value, step, batch_axis(take.source)) if isinstance(value, Film) else value
                for take, value in zip(segment.takes, taken, strict=True)
            ]
            results.append(segment(values, self.batch, Clock(self.statistics, step, last=step == frames)))
        columns = zip(*results, strict=True)
        return [
            to_film(list(each), batch_axis(node), frames) for node, each in zip(segment.gives, columns, strict=True)
        ]

    # --- the initial state

    def at_rest(self) -> dict[fx.Node, Tensor]:
        """What branches compute while nothing has come out of the stem; nothing if the kernel does not lag."""
        if not self.kernel.lag:
            return {}
        first = {node: frame_at(film, 1, batch_axis(node)) for node, film in self.films.items()}
        return rest_values(self.plan, {**self.values, **first}, self.batch, self.statistics)


def rest_values(
    plan: Plan, values: dict[fx.Node, Any], batch: int, statistics: StepStatistics
) -> dict[fx.Node, Tensor]:
    """The outputs of all branches at step 0, given the values before the stem at step 1."""
    values = dict(values)
    for segment in plan.moving:
        if segment.key.behind_stem:
            taken = [values[s] if delay is Delay.NONE else zeros(s, batch) for s, delay in segment.takes]
            values.update(zip(segment.gives, segment(taken, batch, Clock(statistics, 0)), strict=True))
    return {source: values[source] for source, _ in plan.delayed if source in values}


def _folded(source: fx.Node, value: Any, frames: int) -> Any:
    """A value as a segment gets it for all its frames at once."""
    axis = batch_axis(source)
    if isinstance(value, Film):
        held = value.hold(frames).frames
        return held[0] if axis is None else held.movedim(0, axis)
    if axis is None or frames == 1 or not isinstance(value, Tensor):
        return value
    return torch.cat([value] * frames, dim=axis)
