"""Batch norms of a converted model: statistics per step.

A layer of stage s takes s different values, one per step. Step s is final and uses the model's own buffers; the steps
before it have rows of their own. The rows of a converted model start as copies of the model's buffers: `calibrate`
computes them from data, and training moves them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn

from cascaded.cascade.convert.graph import op_name, place
from cascaded.errors import InputError


class Rows(nn.Module):
    """Statistics of one layer at the steps before the final one; row 0 belongs to the initial state."""

    mean: Tensor
    var: Tensor

    def __init__(self, mean: Tensor, var: Tensor, stage: int):
        super().__init__()
        self.register_buffer("mean", mean.detach().expand(stage, -1).clone())
        self.register_buffer("var", var.detach().expand(stage, -1).clone())


class StepStatistics(nn.Module):
    """The rows of all batch norms of a model, by the name of the layer, with `/` for each dot.

    Attributes:
        averaged: While the rows are computed from data, the number of the batch, from 1; otherwise 0.
    """

    def __init__(self, model: nn.Module, stages: dict[str, int]):
        super().__init__()
        self.averaged = 0
        for name, stage in stages.items():
            layer = model.get_submodule(name)
            rows = Rows(layer.running_mean, layer.running_var, stage)  # pyright: ignore[reportArgumentType]
            self.add_module(name.replace(".", "/"), rows)

    def rows(self, name: str | None) -> Rows | None:
        """The rows of a layer; None for one without running statistics."""
        return None if name is None else getattr(self, name.replace(".", "/"))


@dataclass(frozen=True)
class Clock:
    """The steps that a segment is computed for.

    Attributes:
        statistics: Rows of the batch norms.
        first: The first step; 0 is the initial state, None a step after which nothing changes.
        steps: How many.
        last: Whether later steps follow in other calls: only the last step moves the model's own statistics.
    """

    statistics: StepStatistics
    first: int | None = 1
    steps: int = 1
    last: bool = True


def normalize(
    clock: Clock,
    name: str | None,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> Tensor:
    """Batch norm of every step with that step's statistics; x has the items of all steps, one step after the other."""
    frames = x.split(x.shape[0] // clock.steps)
    rows, averaged, out = clock.statistics.rows(name), clock.statistics.averaged, []
    for position, frame in enumerate(frames):
        step = None if clock.first is None else clock.first + position
        if rows is not None and step is not None and step < len(rows.mean):
            mode = (True, 1 / averaged) if averaged else (training, momentum)
            normed = torch.batch_norm(frame, weight, bias, rows.mean[step], rows.var[step], *mode, eps, cudnn)
        else:
            is_last = clock.last and position == len(frames) - 1
            own = (mean, var) if is_last or not training else (_copy(mean), _copy(var))
            normed = torch.batch_norm(frame, weight, bias, *own, training, momentum, eps, cudnn)
        out.append(normed)
    return torch.cat(out) if len(out) > 1 else out[0]


def _copy(buffer: Tensor | None) -> Tensor | None:
    return None if buffer is None else buffer.clone()


def layer_of(node: fx.Node, state: dict[fx.Node, str]) -> str | None:
    """The layer of a batch norm; None if it has no running statistics."""
    mean = node.args[3]
    return state[mean].rpartition(".")[0] if isinstance(mean, fx.Node) else None


def norm_layers(nodes: Iterable[fx.Node], state: dict[fx.Node, str]) -> dict[str, fx.Node]:
    """The batch norms with running statistics among some nodes; a layer that is used twice is refused."""
    found: dict[str, fx.Node] = {}
    for node in nodes:
        if op_name(node) == "instance_norm" and isinstance(node.args[3], fx.Node) and node.args[5]:
            raise InputError(
                f"{place(node)} is an instance norm with running statistics, which would mix the steps: set "
                "track_running_stats=False"
            )
        name = layer_of(node, state) if op_name(node) == "batch_norm" else None
        if name in found:
            raise InputError(f"the batch norm {name} is used twice, with one set of statistics: use two layers")
        if name is not None:
            found[name] = node
    return found
