"""Converted models for tests: in double precision, compared with the naive simulation."""

import torch
from torch import Tensor

import cascaded
from cascaded.cascade.convert.capture import Call
from tests.naive_cascade import Naive


def double(inputs):
    """Inputs in double precision; whole numbers stay what they are."""
    if isinstance(inputs, Tensor):
        return inputs.double() if inputs.is_floating_point() else inputs
    if isinstance(inputs, dict):
        return {name: double(each) for name, each in inputs.items()}
    return tuple(map(double, inputs))


def as_call(inputs, batch_dim=0):
    """Inputs as arguments of one call."""
    if isinstance(inputs, dict):
        return Call((), inputs, batch_dim)
    return Call(inputs if isinstance(inputs, tuple) else (inputs,), {}, batch_dim)


def run(net, inputs, **how):
    call = as_call(inputs)
    return net(*call.args, **call.kwargs, **how)


def given(inputs):
    """Inputs as `step` takes them."""
    return inputs[0] if isinstance(inputs, tuple) and len(inputs) == 1 else inputs


def stream(net, inputs, steps, **how):
    """Outputs of single steps with inputs that are repeated, and all states."""
    outputs, states = [], [None]
    for step in range(steps):
        output, state = net.step(None if step else given(inputs), states[-1], **how)
        outputs.append(output)
        states.append(state)
    return torch.stack(outputs), states[1:]


def gradients(net, outputs):
    """Gradients of a weighted sum of the outputs at all steps."""
    weights = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    parameters = [each for each in net.parameters() if each.requires_grad]
    found = torch.autograd.grad((outputs * weights).sum(), parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def assert_same(result, expected, tolerance=1e-9):
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


def precision(net, inputs):
    """1e-9, unless a model computes some of its values in single precision whatever its weights are."""
    nodes = net.ready(as_call(inputs)).plan.captured.graph.nodes
    return 1e-5 if any(getattr(node.meta.get("val"), "dtype", None) == torch.float32 for node in nodes) else 1e-9


def assert_exact(net, inputs, kernel=None, steps=None):
    """Every step, gradient and state of a converted model equals the naive simulation's; single steps equal them."""
    kernel = kernel or cascaded.OneStepDelay()
    steps = steps or net.steps_to_settle(kernel)
    torch.manual_seed(1)
    outputs = run(net, inputs, kernel=kernel, steps=steps)
    naive = Naive(net, as_call(inputs), kernel, seed=1)
    expected = naive.run(steps)
    assert_same(outputs, expected)
    assert_same(gradients(net, outputs), gradients(net, expected), precision(net, inputs))
    torch.manual_seed(1)
    stepped, states = stream(net, inputs, steps, kernel=kernel)
    assert_same(stepped, expected)
    assert_same_states(net, inputs, kernel, naive, states)
    return outputs


def assert_same_states(net, inputs, kernel, naive, states):
    """What a state remembers of a node is its value at the step that it has reached."""
    plan = net.ready(as_call(inputs)).plan
    leads = {node: segment.lead(kernel) for segment in plan.moving for node in segment.gives}
    nodes = [*plan.inputs, *leads]
    for number, state in enumerate(states, start=1):
        assert (state.step, state.held, state.batch) == (number, number, as_call(inputs).batch)
        for node, frames in zip(nodes, state.frames, strict=True):
            reached = number - leads.get(node, 0)
            if reached >= 1:
                assert_same(frames[-1], naive.history[reached - 1][node])
