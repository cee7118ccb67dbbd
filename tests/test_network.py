"""What a cascade promises, over drawn networks and kernels."""

import copy
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import cascaded
from cascaded.bench.loop import TimeMajorLoop
from cascaded.cascade.block import ResidualBlock
from cascaded.cascade.network import PIECE
from tests.drawn import ANY_HEADS, disturb, images, kernels, networks
from tests.refused import refused


def trained(net, steps=None, calls=2):
    """After training on still images, in evaluation mode."""
    schedule = None if net.heads == "shallow_deep" else "cascaded"
    for seed in range(calls):
        net(images(net, seed=10 + seed), steps=steps, schedule=schedule)
    return net.eval()


SETTLED_STEP = 10**6  # past all statistics: the last ones hold


def slow_serial_trace(net, x):
    """The serial schedule, every cycle from the beginning: blocks so far in full, later ones as open paths."""
    run = partial(TimeMajorLoop(net)._run, used=False)  # layer by layer, leaving the statistics alone
    trace = []
    for cycle in range(1, len(net.blocks) + 2):
        z = run(net.stem, x, SETTLED_STEP)
        for number, block in enumerate(net.blocks, start=2):  # a block is computed at the cycle of its number
            if number > cycle and net.heads == "shallow_deep":
                break
            arrived = run(block.branch, z, SETTLED_STEP) if number <= cycle else 0 * run(block.branch, z, SETTLED_STEP)
            if isinstance(block, ResidualBlock):
                z = torch.relu(run(nn.Sequential(block.skip), z, 0) + arrived)
            else:
                z = torch.cat([arrived, z], dim=1)
            z = run(block.after, z, min(number, cycle))
        trace.append(net.readout.at(cycle)(z.mean(dim=(2, 3))))
    return torch.stack(trace)


# --- settling


@settings(max_examples=20)
@given(networks(affine=("shared",)))
def test_when_settled_the_cascade_is_the_serial_network(net):
    trained(net)
    x = images(net)
    trace, serial = net(x), net.serial()(x)
    torch.testing.assert_close(trace[net.settle_steps - 1], serial, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(net(x, schedule="serial")[-1], serial, rtol=1e-9, atol=1e-10)


@settings(max_examples=20)
@given(networks(), st.integers(1, 6))
def test_where_each_step_has_a_norm_of_its_own_the_cascade_settles_once_the_last_one_holds(net, time):
    net(images(net, time=time))
    net.eval()
    x = images(net)
    trace = net(x, steps=net.settle_steps + max(time, net.settle_steps))
    torch.testing.assert_close(trace[-1], net.serial()(x), rtol=1e-9, atol=1e-10)


@settings(max_examples=20)
@given(networks(affine=("shared",)), st.sampled_from([[1], [0.5, 0.5], [0, 0.25, 0.75], [0.2, 0, 0.8]]))
def test_any_kernel_of_weight_one_settles_at_the_serial_network(net, weights):
    trained(net)
    x, kernel = images(net), cascaded.TappedDelay(weights)
    torch.testing.assert_close(net(x, kernel=kernel)[-1], net.serial()(x), rtol=1e-9, atol=1e-10)


def test_exponential_smoothing_approaches_the_serial_network():
    net = trained(disturb(cascaded.resnet((2, 1), width=4).double(), 0))
    x = images(net)
    trace = net(x, kernel=cascaded.ExponentialSmoothing(0.5), steps=60)
    errors = (trace - net.serial()(x)).abs().amax(dim=(1, 2))
    assert errors[-1] < 1e-8 < errors[10]


def test_after_settling_nothing_changes_and_nothing_is_computed(monkeypatch):
    assert cascaded.resnet18(width=2).settle_steps == 9
    net = trained(cascaded.resnet((2,), width=4))
    frames = []

    def counted(self, x):
        frames.append(len(x))
        return nn.functional.conv2d(x, self.weight, None, self.stride, self.padding)

    monkeypatch.setattr(nn.Conv2d, "forward", counted)
    trace = net(images(net, batch=1), steps=100)
    assert all(torch.equal(later, trace[2]) for later in trace[3:])
    # stem, then for each of the two convolutions of a block: rest, and its distinct steps
    assert frames == [1, 1, 1, 1, 1, 1, 1, 2, 2]


# --- causality


def residual_net():
    return trained(disturb(cascaded.resnet((2, 2), width=4).double(), 0))


def changes(before, after):
    return [not torch.equal(*both) for both in zip(before, after, strict=True)]


@pytest.mark.parametrize("k", range(4))
def test_a_block_is_not_heard_before_its_time(k):
    """What a block makes of an image: a cascade hears of all blocks at step 2, a serial network of one a cycle."""
    net = residual_net()
    x = images(net)
    before = {schedule: net(x, schedule=schedule) for schedule in ("cascaded", "serial")}

    def disturbance(_, args, out):  # nothing at rest, where the input is zero
        return out.map(lambda frames: frames + 0.1 * args[0].frames.mean(dim=(1, 2, 3), keepdim=True))

    net.blocks[k].branch.register_forward_hook(disturbance)
    assert changes(before["cascaded"], net(x)) == [False, True, True, True, True]
    assert changes(before["serial"], net(x, schedule="serial")) == [t >= k + 1 for t in range(5)]


def test_what_passes_through_n_blocks_arrives_at_step_n_plus_one():
    """With the skip paths cut, an image has to go through every branch, one step each."""
    net = residual_net()
    for block in net.blocks:
        inner = block.skip
        block.skip = nn.Sequential(inner, nn.Threshold(torch.inf, 0.0))
    assert changes(net(images(net)), net(images(net, seed=2))) == [False, False, False, False, True]


@settings(max_examples=20)
@given(networks(), kernels, st.integers(2, 6), st.data())
def test_a_read_out_depends_on_no_later_frame(net, kernel, time, data):
    trained(net, steps=4)
    t = data.draw(st.integers(1, time - 1))
    film = images(net, time=time)
    other = film.clone()
    other[t:] += 1
    ours, theirs = net(film, kernel=kernel), net(other, kernel=kernel)
    torch.testing.assert_close(ours[:t], theirs[:t], rtol=0, atol=0)


def test_a_read_out_hears_its_own_frame():
    net = residual_net()
    film = images(net, time=4)
    other = film.clone()
    other[2] += 1
    for kernel, later in ((cascaded.NoDelay(), False), (cascaded.OneStepDelay(), True)):
        assert changes(net(film, kernel=kernel), net(other, kernel=kernel)) == [False, False, True, later]


def test_under_a_one_step_delay_the_first_read_out_hears_blocks_only_at_rest():
    net = trained(disturb(cascaded.resnet((2,), width=4).double(), 0))
    x = images(net)
    first = net(x)[0]
    z = nn.Sequential(*net.serial()[0])(x)
    for block in net.blocks:
        at_rest = torch.zeros_like(z[:1])
        for layer in block.branch:
            if isinstance(layer, cascaded.TimeBatchNorm):
                fields = (layer.running_mean[0], layer.running_var[0], layer.weight[0], layer.bias[0])
                at_rest = nn.functional.batch_norm(at_rest, *fields, eps=layer.eps)
            else:
                at_rest = layer(at_rest)
        z = torch.relu(z + at_rest)
    torch.testing.assert_close(first, net.readout.linear(z.mean(dim=(2, 3))))


# --- unrolled equals stepped


@settings(max_examples=30)
@given(networks(), kernels, st.integers(1, 7), st.booleans(), st.booleans())
def test_unrolled_equals_stepped(net, kernel, steps, training, moves):
    trained(net, steps=3).train(training)
    film = images(net, time=steps) if moves else images(net).expand(steps, -1, -1, -1, -1)
    trace = net(film if moves else film[0], kernel=kernel, steps=steps)
    state, stepped = None, []
    for frame in film:
        logits, state = net.step(frame, state, kernel=kernel)
        stepped.append(logits)
    torch.testing.assert_close(torch.stack(stepped), trace, rtol=1e-9, atol=1e-10)
    assert int(state.step) == steps


@settings(max_examples=20)
@given(networks(ANY_HEADS), st.booleans())
def test_unrolled_equals_stepped_under_the_serial_schedule(net, training):
    trained(net).train(training)
    x, state, stepped = images(net), None, []
    trace = net(x, schedule="serial", steps=len(net.blocks) + 3)
    for _ in trace:
        logits, state = net.step(x, state, schedule="serial")
        stepped.append(logits)
    torch.testing.assert_close(torch.stack(stepped), trace, rtol=1e-9, atol=1e-10)


@settings(max_examples=20)
@given(networks(), kernels, st.booleans())
def test_stepping_trains_the_same_statistics(net, kernel, moves):
    other = copy.deepcopy(net)
    film = images(net, time=4) if moves else images(net).expand(4, -1, -1, -1, -1)
    net(film, kernel=kernel)
    state = None
    for frame in film:
        _, state = other.step(frame, state, kernel=kernel)
    torch.testing.assert_close(other.state_dict(), net.state_dict(), rtol=1e-9, atol=1e-10)


@settings(max_examples=20)
@given(networks(), kernels, st.integers(5, 12), st.booleans(), st.booleans())
def test_without_gradients_a_long_film_goes_in_pieces_and_says_the_same(net, kernel, steps, training, moves):
    trained(net, steps=3).train(training)
    x = images(net, time=steps) if moves else images(net)
    other = copy.deepcopy(net)
    whole = net(x, kernel=kernel, steps=steps)
    with torch.no_grad():
        torch.testing.assert_close(other(x, kernel=kernel, steps=steps), whole, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(other.state_dict(), net.state_dict(), rtol=1e-9, atol=1e-10)


def test_without_gradients_a_film_needs_the_memory_of_a_piece():
    net = residual_net()
    frames = []
    net.stem.register_forward_hook(lambda _, args, out: frames.append(out.num_frames))
    net.blocks[0].branch.register_forward_hook(lambda _, args, out: frames.append(out.num_frames))
    with torch.no_grad():
        net(images(net, time=50))
        net(images(net), kernel=cascaded.ExponentialSmoothing(0.9), steps=50)
    assert max(frames) <= PIECE


# --- the serial schedule


@settings(max_examples=25)
@given(networks(ANY_HEADS), st.booleans())
def test_the_serial_schedule_equals_the_slow_one_in_outputs_and_gradients(net, training):
    trained(net).train(training)
    x, found = images(net), []
    for run in (slow_serial_trace, lambda net, x: net(x, schedule="serial")):
        net.zero_grad()
        trace = run(net, x)
        (trace.sin() * torch.linspace(-1, 1, trace.numel(), dtype=trace.dtype).view_as(trace)).sum().backward()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in net.parameters()]
        found.append((trace.detach(), gradients))
    (slow, slow_gradients), (ours, our_gradients) = found
    torch.testing.assert_close(ours, slow, rtol=1e-9, atol=1e-10)
    for mine, gradient in zip(our_gradients, slow_gradients, strict=True):
        torch.testing.assert_close(mine, gradient, rtol=1e-9, atol=1e-10 * max(1, gradient.abs().max().item()))


@settings(max_examples=10)
@given(networks(ANY_HEADS, affine=("shared",)))
def test_serial_training_teaches_the_plain_network(net):
    """What the serial schedule learns of batch statistics is what an ordinary network learns."""
    plain = net.serial()
    for seed in range(3):
        x = images(net, seed=seed)
        torch.testing.assert_close(net(x, schedule="serial")[-1], plain(x), rtol=1e-8, atol=1e-9)
    x = images(net)
    net.eval(), plain.eval()
    torch.testing.assert_close(net(x, schedule="serial")[-1], plain(x), rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(net.serial()(x), plain(x), rtol=1e-8, atol=1e-9)


# --- heads


def test_shared_and_per_step_heads_with_equal_weights_agree():
    shared, many = (cascaded.resnet((1, 1), width=4, heads=heads).eval() for heads in ("shared", "per_step"))
    weights = {k: v for k, v in shared.state_dict().items() if not k.startswith("readout")}
    many.load_state_dict(weights, strict=False)
    for head in many.readout.linears:
        head.load_state_dict(shared.readout.linear.state_dict())
    x = images(shared)
    torch.testing.assert_close(many(x, steps=5), shared(x, steps=5))
    torch.testing.assert_close(many(x, schedule="serial"), shared(x, schedule="serial"))


def test_each_step_has_its_own_head_and_the_last_one_stays():
    net = cascaded.resnet((1, 1), width=4, heads="per_step", num_classes=1)
    with torch.no_grad():
        for k, head in enumerate(net.readout.linears):
            head.weight.zero_()
            head.bias.fill_(k)
    assert net(images(net), steps=5).mean(dim=(1, 2)).tolist() == [0, 1, 2, 2, 2]


def test_shallow_deep_heads_run_serially_by_default_and_in_no_other_way():
    net = cascaded.resnet((1, 1), width=4, heads="shallow_deep")
    x = images(net)
    assert net(x).shape == (3, 3, 10)
    assert [head.in_features for head in net.readout.linears] == [4, 4, 8]
    refused("schedule='serial'", net, x, schedule="cascaded")


# --- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: net(torch.zeros(3, 8, 8)), r"shape \(3, 8, 8\).*batch, channels, height, width"),
        (lambda net: net(torch.zeros(2, 1, 8, 8)), "1 channels, this network takes 3.*in_channels=1"),
        (lambda net: net(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)), "uint8.*floating point"),
        (lambda net: net(torch.zeros(0, 3, 8, 8)), "at least one image"),
        (lambda net: net(torch.zeros(0, 2, 3, 8, 8)), "at least one image"),
        (lambda net: net(torch.zeros(2, 3, 8, 8), steps=0), "steps is 0: give at least 1"),
        (lambda net: net(torch.zeros(2, 3, 8, 8), steps=0, schedule="serial"), "steps is 0: give at least 1"),
        (lambda net: net(torch.zeros(2, 3, 8, 8), schedule="parallel"), "'parallel': give 'cascaded' or 'serial'"),
        (lambda net: net(torch.zeros(4, 2, 3, 8, 8), schedule="serial"), r"still images.*net.serial\(\)"),
        (lambda net: net(torch.zeros(2, 3, 8, 8), kernel=cascaded.ExponentialSmoothing(0.9)), "steps=70"),
        (lambda net: net.step(torch.zeros(4, 2, 3, 8, 8)), r"takes \(batch, channels, height, width\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    refused(message, call, cascaded.resnet((1,), width=4))


def test_a_state_of_other_items_is_refused():
    net = cascaded.resnet((1,), width=4)
    _, state = net.step(torch.zeros(3, 3, 8, 8))
    refused(r"frame has 2 items, state has 3.*select", net.step, torch.zeros(2, 3, 8, 8), state)
