"""The serial schedule of a converted model: every node once, from its final inputs.

At step s all delayed edges whose sources are of a stage before s pass their final value, all others pass nothing. What
lies behind them is computed for this step's output alone. The last step is the model's output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from cascaded.cascade.convert.code import Delay
from cascaded.cascade.convert.graph import batch_axis, zeros
from cascaded.cascade.convert.segments import Plan, Segment
from cascaded.cascade.convert.state import SERIAL, GraphState
from cascaded.cascade.convert.statistics import Clock, StepStatistics
from cascaded.cascade.convert.step import Stepper

Values = dict[fx.Node, Any]


def serial_outputs(plan: Plan, values: Values, batch: int, statistics: StepStatistics, steps: int | None) -> Tensor:
    """The output at every step; `values` are the inputs and what does not depend on them."""
    values, numbers = dict(values), range(1, (steps or plan.final_stage) + 1)
    return torch.stack([serial_step(plan, values, batch, statistics, step) for step in numbers])


def serial_state_step(
    stepper: Stepper, inputs: Values, values: Values, batch: int, state: GraphState | None
) -> tuple[Tensor, GraphState]:
    """One step of a stream: the state contains what has become final."""
    nodes = stepper.kept
    if state is None:
        values = values | inputs
    else:
        values |= {node: frames[0] for node, frames in zip(nodes, state.frames, strict=True) if frames}
        values |= dict(zip(stepper.still, state.still, strict=True))
    number = 1 if state is None else state.step + 1
    output = serial_step(stepper.plan, values, batch, stepper.statistics, number)
    frames = tuple((values[node],) if node in values else () for node in nodes)
    still = tuple(values[node] for node in stepper.still)
    axes = (tuple(map(batch_axis, nodes)), (), tuple(map(batch_axis, stepper.still)))
    return output, GraphState(number, number, batch, SERIAL, frames, (), still, axes, stepper.fixed)


def serial_step(plan: Plan, values: Values, batch: int, statistics: StepStatistics, step: int) -> Tensor:
    """The output at one step; what has become final is added to `values`."""
    now = values
    for segment in plan.moving:
        if is_final(segment, step):
            if not all(node in values for node in segment.gives):
                values.update(_run(plan, segment, values, batch, Clock(statistics, None), step))
        elif segment.key.distance == 0:
            now = dict(values) if now is values else now
            now.update(_run(plan, segment, now, batch, Clock(statistics, step), step))
    return now[plan.captured.output]


def is_final(segment: Segment, step: int) -> bool:
    """Whether a segment is computed by a step, once and for all: branches one step after what they branch off."""
    stage, _, distance = segment.key
    return stage < step or (stage == step and distance == 0)


def _run(plan: Plan, segment: Segment, values: Values, batch: int, clock: Clock, step: int) -> Values:
    def taken(source: fx.Node, delay: Delay) -> Any:
        return zeros(source, batch) if delay is Delay.BRANCH and plan.keys[source].stage >= step else values[source]

    results = segment([taken(*take) for take in segment.takes], batch, clock)
    return dict(zip(segment.gives, results, strict=True))
