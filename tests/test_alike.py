"""Blocks that are alike are computed in one call, and the result is the same."""

from functools import cache

import pytest
import torch
from torch import nn

import cascaded
from cascaded.cascade.convert import stacked
from cascaded.cascade.convert.alike import Alike
from cascaded.models.highway import Highway
from cascaded.models.vit import ViT
from tests.architectures import ARCHITECTURES
from tests.converted import as_call

KERNELS = [cascaded.OneStepDelay(), cascaded.TappedDelay([0, 0.25, 0.75]), cascaded.ExponentialSmoothing(0.5)]


def vit(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return cascaded.convert(ViT(5, 8, 4, depth=4, width=8, heads=2).eval().to(dtype), images(2, dtype), **options)


converted = cache(vit)
"""For tests that do not change it."""


def images(items, dtype=torch.float32):
    return torch.randn(items, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(dtype)


def sizes(net, inputs):
    """How many blocks each call computes."""
    return [len(each.positions) for each in net.ready(as_call(inputs)).alike]


@pytest.fixture
def calls(monkeypatch):
    """How many blocks were computed by each call."""
    found, compute = [], Alike.compute

    def counted(self, values, taken, members, batch):
        found.append(len(members))
        return compute(self, values, taken, members, batch)

    monkeypatch.setattr(Alike, "compute", counted)
    return found


@torch.no_grad()
def steps(net, frames, batched, **options):
    """All outputs, and the tensors of the last state."""
    net.batched, state, outputs = batched, None, []
    for frame in frames:
        output, state = net.step(frame, state, **options)
        outputs.append(output)
    trails = [each for each in state.trails if each is not None]
    return [*outputs, *(each for frames in state.frames for each in frames), *trails]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("joins", ["auto", r"layers\.\d+"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
def test_one_call_for_all_blocks_gives_what_one_call_per_block_gives(dtype, tolerance, joins, kernel, calls):
    net = converted(dtype, joins=joins)
    calls.clear()  # the conversion tries it
    x = images(3, dtype)
    still, video = [x, *[None] * 10], [x, x.flip(0), None, 2 * x, None, None]
    for frames in (still, video):
        one, other = (steps(net, frames, batched, kernel=kernel) for batched in (True, False))
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    assert bool(calls) == bool(kernel.lag)  # without a lag each block needs the one before it


def test_a_call_computes_the_blocks_that_still_change(calls):
    net = converted()
    calls.clear()
    steps(net, [images(1), *[None] * 9], batched=True)
    assert calls == [4, 4, 3, 4, 3, 3, 2, 3, 2, 2, 2]  # attention and MLP at every step from the second on
    calls.clear()
    steps(net, [images(1), *[None] * 9], batched=False)
    assert calls == []


OTHER_MODELS = ["our-gpt", "mlp-mixer", "parallel-blocks"]
MORE_MODELS = ["encoder-pre-norm", "vit", "swin", "bert"]


@pytest.mark.parametrize("name", [*OTHER_MODELS, *(pytest.param(each, marks=pytest.mark.long) for each in MORE_MODELS)])
def test_blocks_of_other_models_give_the_same(name, calls):
    architecture = ARCHITECTURES[name]
    if reason := architecture.missing():
        pytest.skip(reason)
    torch.manual_seed(0)
    model, inputs = architecture.make()
    net = cascaded.convert(model, inputs, output=architecture.output)
    calls.clear()
    given = inputs if isinstance(inputs, dict) or len(inputs) > 1 else inputs[0]
    one, other = (steps(net, [given, *[None] * 4], batched) for batched in (True, False))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    assert calls


def test_changed_parameters_are_stacked_again():
    net, frames = vit(), [images(2), None, None]
    before = steps(net, frames, batched=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    net(images(2)).square().sum().backward()
    optimizer.step()
    after = steps(net, frames, batched=True)
    assert not torch.allclose(before[2], after[2], atol=1e-3)
    torch.testing.assert_close(after, steps(net, frames, batched=False), rtol=1e-5, atol=1e-5)
    net.load_state_dict(vit().state_dict())
    torch.testing.assert_close(steps(net, frames, batched=True), before)
    with torch.no_grad():
        net.model.layers[1].mlp[0].weight = nn.Parameter(torch.zeros(32, 8))
    torch.testing.assert_close(
        steps(net, frames, batched=True), steps(net, frames, batched=False), rtol=1e-5, atol=1e-5
    )


def test_with_gradients_and_in_training_mode_every_block_is_a_call_of_its_own(calls):
    net = vit()
    calls.clear()
    _, state = net.step(images(2))
    output, _ = net.step(None, state)
    output.sum().backward()
    assert net.model.layers[0].attention.inputs.weight.grad.abs().sum() > 0
    steps(net.train(), [images(2), None, None], batched=True)
    assert calls == []


def test_blocks_that_differ_are_not_computed_together():
    model = Highway(5, 192, depth=5, width=8).eval()
    assert sizes(cascaded.convert(model, images(2)), images(2)) == [5]
    model.layers[2].transform = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).eval()
    assert sizes(cascaded.convert(model, images(2)), images(2)) == [4]
    assert sizes(cascaded.convert(*_of("resnet-post-activation")), _of("resnet-post-activation")[1]) == []


def _of(name):
    model, inputs = ARCHITECTURES[name].make()
    return model, inputs


def test_a_call_that_gives_something_else_is_not_used(monkeypatch):
    exact = stacked.stacked_linear
    assert sizes(vit(), images(2)) == [4, 4]
    monkeypatch.setattr(stacked, "stacked_linear", lambda x, weight, bias=None: (1 + 1e-4) * exact(x, weight, bias))
    assert sizes(vit(), images(2)) == []
