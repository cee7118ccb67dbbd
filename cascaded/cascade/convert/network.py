"""`convert`: any torch model with skip connections as a cascaded network."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from cascaded.cascade.convert.capture import Call, capture
from cascaded.cascade.convert.captures import Ready, checked, input_films, signature, start_values
from cascaded.cascade.convert.choose import Choice, chosen_joins
from cascaded.cascade.convert.run import Run
from cascaded.cascade.convert.segments import Plan
from cascaded.cascade.convert.serial import serial_outputs, serial_state_step
from cascaded.cascade.convert.state import GraphState, check_graph_state
from cascaded.cascade.convert.statistics import StepStatistics, norm_layers
from cascaded.cascade.convert.step import Stepper, why_fixed
from cascaded.cascade.inputs import Schedule, check_steps, chosen_schedule
from cascaded.cascade.kernels import Kernel, OneStepDelay
from cascaded.errors import InputError

Start = Literal["empty", "rest"]
How = Literal["auto", "fold", "loop"]


@dataclass(frozen=True)
class JoinInfo:
    """A skip connection of a converted model.

    Attributes:
        name: Its name, for `joins=` and `exclude=`: the module that it is in.
        kind: `identity`, `projected`, `gated`, `concat` or `layer`.
        settles: The step at which it reaches its final value, for a still input and a one-step delay.
        source: File, line and text of the source code.
    """

    name: str
    kind: str
    settles: int
    source: str


@dataclass(frozen=True)
class Options:
    """Options of a conversion: see `convert`."""

    choice: Choice
    start: Start
    output: str | int | None
    run: How


class ConvertedModel(nn.Module):
    """A model with an output at every step, made by `cascaded.convert`. It shares the model's parameters.

    Attributes:
        model: The model itself.
        joins: Its skip connections.
        statistics: Statistics of batch norms at the steps before the final one.
        kernel: Default delay kernel.
    """

    def __init__(self, model: nn.Module, example: Call, options: Options, kernel: Kernel):
        super().__init__()
        self.model, self.kernel, self.options = model, kernel, options
        self.training = model.training
        # structure and shapes of the example, without its values
        self.form = example.with_leaves([x.to("meta") if isinstance(x, Tensor) else x for x in example.leaves()])
        plan = self._capture(example)
        layers = norm_layers(plan.keys, plan.captured.state)
        self.statistics = StepStatistics(model, {name: plan.keys[node].stage for name, node in layers.items()})
        self.joins = _infos(plan)
        self.final_stage = plan.final_stage
        self._captures: dict[Hashable, Ready] = {}
        self._keep(example, self._check(example, plan))

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
        stepper = Stepper(ready.plan, kernel, self.statistics, why_fixed(ready.plan, ready.looped))
        if state is None:
            values = start_values(ready.plan, self.model, call, self.statistics)
        else:
            values = start_values(ready.plan, self.model, call, self.statistics, still=False)
        nodes = dict(zip(ready.plan.captured.inputs, call.leaves(), strict=True))
        if serially:
            return serial_state_step(stepper, nodes, values, call.batch, state)
        return stepper.step(None if inputs is None else nodes, values, call.batch, state)

    # --- without time

    def serial(self) -> nn.Module:
        """The model itself, without time: its output equals the final step."""
        return self.model

    # --- what was found

    @property
    def settle_steps(self) -> int:
        """The step at which the output for a still input is final and equals the model's."""
        return self.steps_to_settle(self.kernel)

    def steps_to_settle(self, kernel: Kernel) -> int:
        """`settle_steps` for another kernel."""
        delays = self.final_stage - 1
        extra = kernel.memory if self.options.start == "rest" else 0
        steps = 1 + kernel.lag * delays + (kernel.memory * delays if delays else 0) + extra
        if math.isinf(steps):
            raise InputError(f"{kernel} converges only in the limit: give steps, e.g. steps=70 for alpha 0.9")
        return max(int(steps), self.final_stage)

    def table(self) -> str:
        """The skip connections, one per line: name, kind, step of the final value, source."""
        rows = [("skip connection", "kind", "final at step", "source")]
        rows += [(join.name, join.kind, str(join.settles), join.source) for join in self.joins]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join([*(f"{row[k]:{widths[k]}}" for k in range(3)), row[3]]) for row in rows]
        reasons = {reason for ready in self._captures.values() for reason in ready.looped.values()}
        return "\n".join(lines + [f"computed step by step: {reason}" for reason in sorted(reasons)])

    # --- captures

    def ready(self, call: Call) -> Ready:
        """The capture for a call in the model's present mode, dtype and device; made when it is first needed."""
        for any_batch in (True, False):
            known = self._captures.get(signature(self.model, call, any_batch))
            if known is not None:
                return known
        plan = self._capture(call)
        found = [(join.name, join.kind, join.settles) for join in _infos(plan)]
        if found != [(join.name, join.kind, join.settles) for join in self.joins]:
            raise InputError(
                f"for these inputs or in this mode {type(self.model).__name__} has other skip connections than at "
                "conversion: convert it again with such an example"
            )
        return self._keep(call, self._check(call, plan))

    def _capture(self, call: Call) -> Plan:
        options, name = self.options, type(self.model).__name__
        with torch.inference_mode(False), torch.enable_grad():
            captured = capture(self.model, call, options.output)
        return Plan(captured, chosen_joins(captured, options.choice, name), options.start == "rest")

    def _check(self, call: Call, plan: Plan) -> Ready:
        ready = checked(self, self.model, plan, call, self.options.output, self.statistics)
        if self.options.run == "loop":
            ready.looped = {k: f"{segment.place}: run='loop'" for k, segment in enumerate(plan.moving)}
        elif self.options.run == "fold" and ready.looped:
            reason = next(iter(ready.looped.values()))
            raise InputError(f"time cannot be folded into the batch at {reason}; use run='auto', which loops there")
        return ready

    def _keep(self, call: Call, ready: Ready) -> Ready:
        self._captures[signature(self.model, call, ready.plan.captured.any_batch)] = ready
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


def _infos(plan: Plan) -> list[JoinInfo]:
    joins = [join for join in plan.joins if join.node in plan.keys]
    return [JoinInfo(join.name, join.kind, plan.keys[join.node].stage, join.place.line) for join in joins]


def convert(
    model: nn.Module,
    example: Any,
    *,
    joins: str | list[str] | tuple[str, ...] = "auto",
    exclude: str | list[str] | tuple[str, ...] = (),
    start: Start = "empty",
    output: str | int | None = None,
    kernel: Kernel | None = None,
    batch_dim: int = 0,
    run: How = "auto",
) -> ConvertedModel:
    """A cascaded network with the parameters of a model: an output at every step, the last of which is the model's.

    The branch beside every skip connection is delayed by one step. The model itself is not changed, and the final step
    is compared with its output.

    Args:
        model: Any torch module with skip connections that `torch.export` can capture.
        example: Inputs: a tensor, a tuple of arguments, or a dict of keyword arguments. Calls may have other batch
            sizes; other shapes are captured when they first occur.
        joins: `auto` for all skip connections; a regular expression of module names, to delay these modules as whole
            layers; or names from `table()`.
        exclude: Names from `table()` that are not delayed, or a regular expression of such names.
        start: What delay lines contain at first: `empty`, nothing; `rest`, what branches compute while nothing comes
            out of the layers before the first skip connection, as in our ResNets.
        output: The predicted tensor, if the model returns several: a field or an index; `logits` by default.
        kernel: Default delay kernel; one step by default.
        batch_dim: The axis of the inputs that is the batch.
        run: How several steps of a layer are computed: `fold`, in one call, with time in the batch; `loop`, one after
            another; `auto`, folded where both give the same results, which is tried.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}: give a torch.nn.Module")
    for name, given, known in (("start", start, ("empty", "rest")), ("run", run, ("auto", "fold", "loop"))):
        if given not in known:
            raise InputError(f"{name} is {given!r}: give one of {', '.join(known)}")
    args = () if isinstance(example, Mapping) else tuple(example) if isinstance(example, tuple | list) else (example,)
    kwargs = dict(example) if isinstance(example, Mapping) else {}
    choice = Choice(
        joins if isinstance(joins, str) else tuple(joins), exclude if isinstance(exclude, str) else tuple(exclude)
    )
    return ConvertedModel(
        model, Call(args, kwargs, batch_dim), Options(choice, start, output, run), kernel or OneStepDelay()
    )
