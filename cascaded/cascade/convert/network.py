"""A converted model: all steps at once, or one at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cascaded.cascade.convert.capture import Call, choose_output
from cascaded.cascade.convert.captures import (
    Options,
    Ready,
    input_films,
    make_plan,
    make_ready,
    signature,
    start_values,
)
from cascaded.cascade.convert.run import Run
from cascaded.cascade.convert.segments import Plan
from cascaded.cascade.convert.serial import serial_outputs, serial_state_step
from cascaded.cascade.convert.state import GraphState, check_graph_state
from cascaded.cascade.convert.statistics import StepStatistics, norm_layers
from cascaded.cascade.convert.step import Stepper, why_fixed
from cascaded.cascade.convert.table import format_table, join_infos
from cascaded.cascade.inputs import Schedule, check_steps, chosen_schedule
from cascaded.cascade.kernels import Kernel
from cascaded.errors import InputError


class ConvertedModel(nn.Module):
    """A model with an output at every step, made by `cascaded.convert`. It shares the model's parameters.

    Attributes:
        model: The model itself.
        joins: Its skip connections.
        statistics: Statistics of batch norms at the steps before the final one.
        kernel: Default delay kernel.
        serial_steps: Number of steps under the serial schedule.
        batched: Whether `step` computes blocks that are alike, such as the layers of a transformer, in one call with
            stacked parameters, in evaluation mode and without gradients. So do the files of an exported model.
    """

    def __init__(self, model: nn.Module, example: Call, options: Options, kernel: Kernel):
        super().__init__()
        self.model, self.kernel, self.options = model, kernel, options
        self.training, self.batched = model.training, True
        # structure and shapes of the example, without its values
        self.form = example.with_leaves([x.to("meta") if isinstance(x, Tensor) else x for x in example.leaves()])
        plan = make_plan(model, example, options)
        layers = norm_layers(plan.keys, plan.captured.state)
        self.statistics = StepStatistics(model, {name: plan.keys[node].stage for name, node in layers.items()})
        self.joins = join_infos(plan)
        self.serial_steps = plan.final_stage
        self._captures: dict[Hashable, Ready] = {}
        self._add(plan, example)

    # --- all steps at once

    def forward(
        self,
        *args: Any,
        kernel: Kernel | None = None,
        steps: int | None = None,
        schedule: Schedule | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Outputs at every step: `(time, batch, ...)`.

        Args:
            *args: Inputs as for the model. A tensor with one axis more than in the example is a film, time first.
            kernel: Delay kernel; the network's own by default. Any kernel runs on the same weights.
            steps: Number of steps. By default as many as a film has frames, and for still inputs as many as it takes
                until the output is final.
            schedule: `cascaded` or `serial`; the latter computes one stage per step, for still inputs only.
            **kwargs: Keyword inputs as for the model.
        """
        check_steps(steps)
        kernel = kernel or self.kernel
        call, films = self._frames(self._call(args, kwargs))
        ready = self.ready(call)
        values = start_values(ready.plan, self.model, call, self.statistics)
        if chosen_schedule(schedule, "shared") == "serial":
            if films:
                raise InputError("the serial schedule computes every layer once: give still inputs, not a film")
            values.update(zip(ready.plan.captured.inputs, call.leaves(), strict=True))
            return serial_outputs(ready.plan, values, call.batch, self.statistics, steps)
        shown = max([1, *(len(frames) for frames in films.values())])
        steps = steps or (shown if films else self.steps_to_settle(kernel))
        inputs = input_films(ready.plan, call, steps, films)
        run = Run(
            ready.plan, values, inputs, call.batch, steps, min(shown, steps), kernel, self.statistics, ready.folded
        )
        return run.output()

    # --- one step at a time

    def step(
        self,
        inputs: Any,
        state: GraphState | None = None,
        *,
        kernel: Kernel | None = None,
        schedule: Schedule | None = None,
    ) -> tuple[Tensor, GraphState]:
        """The output after one more step, and the state for the next one.

        The outputs equal those of `forward`. Items can be removed from the batch: `state.select(mask)`.

        Args:
            inputs: The next inputs in the form of the example: a tensor, a tuple, or a dict of keyword arguments. None
                repeats the last ones; what has reached its final value is then not computed again.
            state: The state that the step before returned; None at the start.
            kernel: As in `forward`, the same at every step.
            schedule: As in `forward`, the same at every step. Under the serial schedule the first inputs count.
        """
        kernel, serially = kernel or self.kernel, chosen_schedule(schedule, "shared") == "serial"
        check_graph_state(inputs is None, state, kernel=None if serially else kernel)
        call = self._remembered(state) if inputs is None else self._call((inputs,), {})
        if state is not None and call.batch != state.batch:
            raise InputError(
                f"inputs have {call.batch} items, state has {state.batch}: keep the same items of both, with "
                "state.select(mask)"
            )
        ready = self.ready(call)
        alike = ready.alike if self.batched and not torch.is_grad_enabled() else ()
        stepper = Stepper(ready.plan, kernel, self.statistics, why_fixed(ready.plan, ready.looped), alike)
        values = start_values(ready.plan, self.model, call, self.statistics, still=state is None)
        nodes = dict(zip(ready.plan.captured.inputs, call.leaves(), strict=True))
        if serially:
            return serial_state_step(stepper, nodes, values, call.batch, state)
        return stepper.step(None if inputs is None else nodes, values, call.batch, state)

    # --- without time

    def serial(self) -> nn.Module:
        """The model itself, without time: its output equals the final step."""
        return self.model

    def final_logits(self, *args: Any, **kwargs: Any) -> Tensor:
        """The output of the last step, at the cost of one ordinary pass."""
        call = self._call(args, kwargs)
        return choose_output(self.model(*call.args, **call.kwargs), self.options.output)

    # --- what was found

    @property
    def settle_steps(self) -> int:
        """The step at which the output for a still input is final and equals the model's."""
        return self.steps_to_settle(self.kernel)

    def steps_to_settle(self, kernel: Kernel) -> int:
        """`settle_steps` for another kernel."""
        delays = self.serial_steps - 1
        extra = kernel.memory if self.options.start == "rest" else 0
        steps = 1 + kernel.lag * delays + (kernel.memory * delays if delays else 0) + extra
        if math.isinf(steps):
            raise InputError(f"{kernel} converges only in the limit: give steps, e.g. steps=70 for alpha 0.9")
        return max(int(steps), self.serial_steps)

    def table(self) -> str:
        """The skip connections, one per line: name, kind, step of the final value, source."""
        return format_table(self.joins, (each for ready in self._captures.values() for each in ready.looped.values()))

    # --- captures

    def ready(self, call: Call) -> Ready:
        """The capture for a call in the model's present mode, dtype and device; made when it is first needed."""
        for any_batch in (True, False):
            known = self._captures.get(signature(self.model, call, any_batch))
            if known is not None:
                return known
        plan = make_plan(self.model, call, self.options)
        if [join.form for join in join_infos(plan)] != [join.form for join in self.joins]:
            raise InputError(
                f"for these inputs or in this mode {type(self.model).__name__} has other skip connections than at "
                "conversion: convert it again with such an example"
            )
        return self._add(plan, call)

    def _add(self, plan: Plan, call: Call) -> Ready:
        ready = make_ready(self, self.model, plan, call, self.options, self.statistics)
        self._captures[signature(self.model, call, plan.captured.any_batch)] = ready
        return ready

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_captures": {}}  # graphs are captured again when they are needed

    # --- inputs

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Arguments in the form of the example: a single dict or tuple is unpacked if the example was one."""
        if len(args) == 1 and not kwargs:
            if isinstance(args[0], Mapping) and self.form.kwargs:
                args, kwargs = (), dict(args[0])
            elif isinstance(args[0], tuple | list) and len(self.form.args) > 1:
                args = tuple(args[0])
        return Call(args, kwargs, self.form.batch_dim)

    def _frames(self, call: Call) -> tuple[Call, dict[int, Tensor]]:
        """A call with the first frames, and the inputs that are films."""
        leaves, expected = call.leaves(), self.form.leaves()
        if len(leaves) != len(expected):
            return call, {}
        films = {
            position: leaf
            for position, (leaf, like) in enumerate(zip(leaves, expected, strict=True))
            if isinstance(leaf, Tensor) and isinstance(like, Tensor) and leaf.dim() == like.dim() + 1
        }
        return call.with_leaves([leaf[0] if k in films else leaf for k, leaf in enumerate(leaves)]), films

    def _remembered(self, state: GraphState | None) -> Call:
        """The inputs of the last step."""
        assert state is not None
        tensors = iter(state.frames)
        return self.form.with_leaves([next(tensors)[-1] if isinstance(x, Tensor) else x for x in self.form.leaves()])
