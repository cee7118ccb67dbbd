"""Batch norm in time: every step is normalized with that step's own statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from cascaded.cascade.film import REST, SETTLED, Film
from cascaded.cascade.fused import norm_steps
from cascaded.cascade.sync_norm import batch_norm_across, processes
from cascaded.errors import InputError

Affine = Literal["shared", "per_step"]


class TimeBatchNorm(nn.Module):
    """Batch norm with running statistics per step, and affine parameters shared over time.

    Row t of the statistics belongs to step t: row 0 to the initial state, row t to step t. There are as many rows as
    steps have been seen in training; later steps use the last one. Rows are added when longer films are trained on,
    each as an ordinary batch norm, and a state dict has its own number of rows.

    Args:
        channels: Channels of a frame.
        eps: Added to the variance.
        momentum: Weight of the newest batch in the running statistics; None for the plain average over all batches.
        affine: One weight and bias for all steps, or one per step.
        steps: Rows of per-step affine parameters, the initial state included; later steps use the last one.
    """

    running_mean: Tensor
    running_var: Tensor
    batches: Tensor  # seen in training, per step
    shared: bool = False  # whether the batches of all processes are one batch, with one statistics

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: Affine = "shared",
        steps: int = 1,
    ):
        super().__init__()
        if affine not in ("shared", "per_step"):
            raise InputError(f"affine is {affine!r}: give 'shared' or 'per_step'")
        self.channels, self.eps, self.momentum = channels, eps, momentum
        rows = steps if affine == "per_step" else 1
        self.weight = nn.Parameter(torch.ones(rows, channels))
        self.bias = nn.Parameter(torch.zeros(rows, channels))
        self.reset_statistics()

    def reset_statistics(self) -> None:
        """Reset the statistics."""
        like = {"device": self.weight.device, "dtype": self.weight.dtype}
        self.register_buffer("running_mean", torch.zeros(1, self.channels, **like))
        self.register_buffer("running_var", torch.ones(1, self.channels, **like))
        self.register_buffer("batches", torch.zeros(1, dtype=torch.long, device=self.weight.device))

    def extra_repr(self) -> str:
        return f"{self.channels}, eps={self.eps}, momentum={self.momentum}, steps={len(self.running_mean)}"

    def forward(self, film: Film) -> Film:
        film = film.hold(min(film.steps, self._distinct(film)))
        return replace(film, frames=self._by_batch(film) if self.training else self._by_history(film))

    def _by_history(self, film: Film) -> Tensor:
        last, normed = len(self.running_mean) - 1, []
        for row, frame in enumerate(film.frames.split(film.batch), start=film.start):
            known = min(row, last)
            normed.append(self._norm(frame, self.running_mean[known], self.running_var[known], row))
        return _put_together(normed)

    def _by_batch(self, film: Film) -> Tensor:
        self._check_countable(film)
        frames, counted = film.frames, film.frames[: film.batch, 0].numel()
        affine = self._affine(range(film.start, film.start + film.num_frames))
        if self.shared and film.copies == 1:  # copies are the same in every process
            each, means, variances = batch_norm_across(frames.split(film.batch), *affine, self.eps)
            self._track(film, means, variances, counted * processes(shared=True))
            return _put_together(each)
        if film.start == REST:
            # maps are constant but for their borders, so that a mean's rounding error is not small beside their
            # deviation: torch sums channels-last maps in single precision, others in double
            frames = frames.contiguous()
        copies = min(film.copies, 2)
        if copies > 1:  # even where a map is one pixel there are now two values
            frames = torch.cat([copy for x in frames.split(film.batch) for copy in (x, x)])
        normed, means, variances = norm_steps(frames, *affine, self.eps)
        self._track(film, means, variances, counted * copies)
        return normed if copies == 1 else normed.unflatten(0, (-1, copies * film.batch))[:, : film.batch].flatten(0, 1)

    def keep_final_statistics(self) -> None:
        """Drop the statistics of all steps but the last one, which are then used at every step."""
        for name in ("running_mean", "running_var", "batches"):
            setattr(self, name, getattr(self, name)[SETTLED:].clone())

    def settled(self) -> nn.BatchNorm2d:
        """An ordinary batch norm with the last step's statistics and parameters, a copy."""
        plain = nn.BatchNorm2d(self.channels, self.eps, self.momentum).to(self.weight)
        rows = {"weight": self.weight, "bias": self.bias, "running_mean": self.running_mean}
        rows |= {"running_var": self.running_var, "num_batches_tracked": self.batches}
        plain.load_state_dict({name: row[SETTLED] for name, row in rows.items()})
        return plain

    def _affine(self, rows: range) -> tuple[Tensor, Tensor]:
        """Weight and bias of each of these steps."""
        if len(self.weight) == 1:
            return self.weight.expand(len(rows), -1), self.bias.expand(len(rows), -1)
        known = [min(row, len(self.weight) - 1) for row in rows]
        return self.weight[known], self.bias[known]

    def _norm(self, x: Tensor, mean: Tensor, var: Tensor, row: int) -> Tensor:
        row = min(row, len(self.weight) - 1)
        return torch.batch_norm(
            x, self.weight[row], self.bias[row], mean, var, False, 1.0, self.eps, torch.backends.cudnn.enabled
        )

    def _distinct(self, film: Film) -> int:
        """How many frames differ in the output although the last one of the input is repeated."""
        if film.start == SETTLED or film.num_frames == film.steps:
            return film.num_frames
        rows = len(self.weight) if self.training else self.distinct_rows
        return max(film.num_frames, rows - film.start)

    @property
    def distinct_rows(self) -> int:
        """How many rows of statistics and parameters differ before the last one is repeated."""
        stats = torch.cat([self.running_mean, self.running_var], dim=1)
        differs = (stats[1:] != stats[:-1]).any(dim=1).tolist()
        return max([len(self.weight), *(row for row, each in enumerate(differs, start=2) if each)])

    @torch.no_grad()
    def _track(self, film: Film, means: Tensor, variances: Tensor, counted: int) -> None:
        """Move the rows of a film's steps towards its batch statistics; repeated frames count at every step."""
        stood_for = film.frames[0, 0].numel() * film.batch * film.copies * processes(self.shared)
        if counted != stood_for:  # torch's variances are unbiased, for the number of values it has seen
            variances = variances * ((counted - 1) / counted * stood_for / (stood_for - 1))
        rows = self._rows(film)
        self.batches[rows] += 1
        if film.steps > film.num_frames:
            held = torch.arange(film.steps, device=means.device).clamp_(max=film.num_frames - 1)
            means, variances = means[held], variances[held]
        if self.momentum is None:
            factor = self.batches[rows].to(means.dtype).reciprocal().unsqueeze(1)
        else:
            factor = self.momentum
        self.running_mean[rows] = torch.lerp(self.running_mean[rows], means, factor)
        self.running_var[rows] = torch.lerp(self.running_var[rows], variances, factor)

    def _rows(self, film: Film) -> slice:
        """The rows of a film's steps; missing ones are added."""
        if film.start == SETTLED:
            return slice(-1, None)
        missing = film.start + film.steps - len(self.running_mean)
        if missing > 0:
            like = self.running_mean
            self.running_mean = torch.cat([like, like.new_zeros(missing, self.channels)])
            self.running_var = torch.cat([self.running_var, like.new_ones(missing, self.channels)])
            self.batches = torch.cat([self.batches, self.batches.new_zeros(missing)])
        return slice(film.start, film.start + film.steps)

    def _check_countable(self, film: Film) -> None:
        values = film.frames[0, 0].numel() * film.batch * film.copies * processes(self.shared)
        if values == 1:
            raise InputError(
                "training on a batch of 1 whose map has shrunk to 1x1 pixel leaves one value per channel, which has no "
                "variance: give a batch of at least 2, larger images, or call eval()"
            )

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs) -> None:
        for name in ("running_mean", "running_var", "batches"):
            stored = state_dict.get(prefix + name)
            if stored is not None:
                own = getattr(self, name)
                setattr(self, name, own.new_zeros(len(stored), *own.shape[1:]))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def _put_together(frames: list[Tensor]) -> Tensor:
    return torch.cat(frames) if len(frames) > 1 else frames[0]


def steady(module: nn.Module, step: int) -> bool:
    """Whether no norm in a module changes, in evaluation mode, from this step on."""
    return all(m.distinct_rows <= step + 1 for m in module.modules() if isinstance(m, TimeBatchNorm))
