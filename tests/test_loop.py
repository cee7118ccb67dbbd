"""The film path equals the obvious loop: outputs, gradients, running statistics."""

import copy
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import cascaded
from cascaded.bench.loop import TimeMajorLoop
from tests.drawn import disturb, images, kernels, networks

some_times = st.one_of(st.none(), st.integers(1, 6))


def gradients(net):
    return {name: p.grad for name, p in net.named_parameters()}


def assert_same_statistics(net, loop):
    """Of every step that the network keeps; the loop also computes, at its last step, what no read-out ever sees."""
    for norm in net.modules():
        if not isinstance(norm, cascaded.TimeBatchNorm):
            continue
        own = loop.statistics[norm]
        for t, (mean, var) in enumerate(zip(norm.running_mean, norm.running_var, strict=True)):
            torch.testing.assert_close(mean, own.steps[t][0], rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(var, own.steps[t][1], rtol=1e-10, atol=1e-10)


def assert_trained_alike(net, loop, x, **how):
    for module in (net, loop):
        net.zero_grad()
        trace = module(x, **how)
        weight = torch.linspace(-1, 1, trace.numel(), dtype=trace.dtype).view_as(trace)
        (trace.sin() * weight).sum().backward()
        if module is net:
            ours, our_gradients = trace, copy.deepcopy(gradients(net))
    torch.testing.assert_close(ours, trace, rtol=1e-10, atol=1e-10)
    for name, gradient in gradients(net).items():
        mine = our_gradients[name]
        if mine is None or gradient is None:  # a weight that no output depends on yet
            assert all(g is None or not g.any() for g in (mine, gradient)), name
        else:
            torch.testing.assert_close(mine, gradient, rtol=1e-9, atol=1e-10 * max(1, gradient.abs().max().item()))
    assert_same_statistics(net, loop)


@settings(max_examples=25)
@given(networks(), kernels, st.integers(1, 8), some_times, st.integers(5, 9))
def test_training_equals_the_loop(net, kernel, steps, time, size):
    loop = TimeMajorLoop(net)
    assert_trained_alike(net, loop, images(net, size=size, time=time), kernel=kernel, steps=steps)


@settings(max_examples=15)
@given(networks(), kernels, st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=2, max_size=3))
def test_training_equals_the_loop_when_steps_and_inputs_change_between_calls(net, kernel, calls):
    loop = TimeMajorLoop(net)
    for seed, (steps, moves) in enumerate(calls):
        x = images(net, time=steps if moves else None, seed=seed)
        net(x, kernel=kernel, steps=steps)
        loop(x, kernel=kernel, steps=steps)
    assert_same_statistics(net, loop)


@settings(max_examples=25)
@given(networks(), kernels, kernels, st.integers(1, 8), some_times, some_times)
def test_evaluation_equals_the_loop_whatever_it_was_trained_on(net, trained, kernel, steps, trained_time, time):
    net(images(net, time=trained_time, seed=2), kernel=trained, steps=trained_time or 5)
    net.eval()
    x = images(net, time=time)
    ours, loop = net(x, kernel=kernel, steps=steps), TimeMajorLoop(net)(x, kernel=kernel, steps=steps)
    with torch.no_grad():
        in_pieces = net(x, kernel=kernel, steps=steps)
    for each in (ours, in_pieces):
        torch.testing.assert_close(each, loop, rtol=1e-10, atol=1e-10 * max(1, loop.abs().max().item()))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("make", [cascaded.resnet18, cascaded.densenet])
def test_in_single_precision_outputs_equal_the_loops(make, training):
    """Enough items for small maps to be computed pixel by pixel; the loop channels first, as published."""
    options = {"width": 8} if make is cascaded.resnet18 else {"blocks": (2, 2), "growth": 8}
    net = disturb(make(**options, generator=torch.Generator().manual_seed(0)), seed=0)
    x = images(net, batch=40, size=32)
    net(x)
    net.train(training)
    ours = net(x)
    loop = TimeMajorLoop(net.to(memory_format=torch.contiguous_format))(x)
    assert (ours - loop).norm() / loop.norm() < 1e-4


def gradient_and_pattern(net, module, x):
    """The gradient in one vector, and which units are on: at the edge of a rectifier the gradient jumps."""
    on = []
    rectifiers = [m for m in net.modules() if type(m) is nn.ReLU]
    hooks = [m.register_forward_hook(lambda m, args, out: on.append(out > 0)) for m in rectifiers]
    hooks += [b.register_forward_hook(lambda m, args, out: on.append(out[0].frames > 0)) for b in net.blocks]
    net.zero_grad()
    trace = module(x)
    (trace.sin() * torch.linspace(-1, 1, trace.numel()).view_as(trace)).sum().backward()
    for hook in hooks:
        hook.remove()
    return torch.cat([p.grad.flatten().double() for p in net.parameters() if p.grad is not None]), on


@pytest.mark.parametrize(
    ("family", "training", "tolerance"),
    [
        ("residual", True, 1e-4),
        ("residual", False, 1e-4),
        ("dense", False, 1e-4),
        # at rest a dense network's maps are constant and a norm divides by next to nothing: either way is off by a
        # hundredth from what double precision says
        ("dense", True, 5e-2),
    ],
)
def test_in_single_precision_gradients_equal_the_loops(family, training, tolerance):
    """Where rounding has switched no unit on or off, which would be a jump and not an error."""
    compared = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        make = partial(cascaded.resnet, width=4) if family == "residual" else partial(cascaded.densenet, growth=4)
        net = disturb(make((1, 1), generator=generator), seed)
        net(images(net, batch=32, seed=1))
        net.train(training)
        exact, x = copy.deepcopy(net).double(), images(net, batch=32)
        ours, on = gradient_and_pattern(net, net, x)
        _, truly_on = gradient_and_pattern(exact, exact, x.double())
        loop, _ = gradient_and_pattern(net, TimeMajorLoop(net.to(memory_format=torch.contiguous_format)), x)
        if all(map(torch.equal, on, truly_on)):
            assert (ours - loop).norm() / loop.norm() < tolerance
            compared += 1
    assert compared >= 3


def test_mixed_precision_trains():
    net = disturb(cascaded.resnet((1, 1), width=8, generator=torch.Generator().manual_seed(0)), seed=0)
    x = images(net, batch=4, size=16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = net(x)
        coarse.float().sum().backward()
    assert coarse.dtype == torch.bfloat16
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
    assert (coarse.float() - net(x)).norm() / net(x).norm() < 0.1


def test_the_loop_counts_ten_steps_and_nine_read_outs_for_resnet18():
    net = cascaded.resnet18(width=2)
    loop = TimeMajorLoop(net)
    passes = []
    net.blocks[0].branch[2].register_forward_hook(lambda *_: passes.append(1))
    assert loop(images(net)).shape == (9, 3, 10)
    assert len(passes) == 10
