import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import cascaded
from cascaded.cascade import conv
from cascaded.cascade.conv import Conv2d
from cascaded.cascade.convert.capture import Call, capture
from cascaded.cascade.convert.graph import op_name

formats = st.sampled_from([torch.contiguous_format, torch.channels_last])


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([3, 5, 7]), st.integers(1, 2), formats)
def test_small_maps_pixel_by_pixel_equal_torchs_convolution(height, width, size, stride, memory):
    generator = torch.Generator().manual_seed(0)
    layer = Conv2d(3, 5, size, stride).double().to(memory_format=memory)
    x = torch.randn(conv.ITEMS, 3, height, width, generator=generator, dtype=torch.float64)
    x = x.contiguous(memory_format=memory).requires_grad_()
    ours, torchs = layer(x), F.conv2d(x, layer.weight, stride=stride, padding=size // 2)
    torch.testing.assert_close(ours, torchs)
    weight = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    found, expected = (torch.autograd.grad(out, (x, layer.weight), weight) for out in (ours, torchs))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("stride", [1, 2])
def test_in_single_precision_small_maps_are_as_exact_as_torchs_convolution(stride):
    """Single precision has a matrix product of its own; double precision is the reference for both."""
    generator = torch.Generator().manual_seed(0)
    layer = Conv2d(48, 32, 3, stride).to(memory_format=torch.channels_last)
    x = torch.randn(64, 48, 2 * stride, 2 * stride, generator=generator)
    weight = torch.randn(64, 32, 2, 2, generator=generator)

    def found(call, *inputs):
        inputs = [each.detach().requires_grad_() for each in inputs]
        out = call(*inputs)
        return out, *torch.autograd.grad(out, inputs, weight.to(out))

    def torchs(x, w):
        return F.conv2d(x, w, stride=stride, padding=1)

    x = x.contiguous(memory_format=torch.channels_last)
    exact = found(torchs, x.double(), layer.weight.double())
    ours = found(lambda x, w: conv.pixelwise(x, w, stride, 2, 2), x, layer.weight)
    for mine, theirs, truth in zip(ours, found(torchs, x, layer.weight), exact, strict=True):
        assert (mine - truth).norm() < max(3 * (theirs - truth).norm(), 1e-6 * truth.norm())


def test_products_can_be_differentiated_twice():
    layer = Conv2d(2, 3, 3).double().to(memory_format=torch.channels_last)
    x = torch.randn(4, 2, 2, 2, dtype=torch.float64).contiguous(memory_format=torch.channels_last).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, w: conv.pixelwise(x, w, 1, 2, 2), (x, layer.weight))


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_the_memory_format_is_kept(memory):
    layer = Conv2d(4, 6, 3).to(memory_format=memory)
    out = layer(torch.randn(conv.ITEMS, 4, 2, 2).contiguous(memory_format=memory))
    assert out.is_contiguous(memory_format=memory)


def poison_heap():
    """Fill blocks of the sizes that gradients have with nan, and free them: memory that is not written shows."""
    junk = [torch.full((size,), float("nan")).bfloat16() for size in (64, 256, 1152, 4096, 9216) for _ in range(8)]
    del junk


@pytest.mark.parametrize("make", [lambda layer: layer, Conv2d.plain], ids=["layer", "plain"])
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("size", [3, 5, 7])
@pytest.mark.parametrize("channels", [2, 8, 16])
def test_bfloat16_gradients_of_maps_narrower_than_the_stride_are_written(make, memory, size, channels):
    """torch 2.13 leaves the taps in the horizontal padding unwritten: see cascaded/cascade/conv.py."""
    generator = torch.Generator().manual_seed(0)
    conv2d = make(Conv2d(channels, 16, size, stride=2).bfloat16().to(memory_format=memory))
    weight = next(conv2d.parameters())
    for items, height in ((1, 1), (1, 2), (2, 3), (4, 8)):
        x = torch.randn(items, channels, height, 1, generator=generator).bfloat16()
        for _ in range(5):
            poison_heap()
            conv2d(x).float().sum().backward()
            expected = weight.detach().double().requires_grad_()
            F.conv2d(x.double(), expected, stride=2, padding=size // 2).sum().backward()
            found, weight.grad = weight.grad.double(), None
            torch.testing.assert_close(found, expected.grad, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("serial", [False, True], ids=["cascaded", "serial"])
def test_bfloat16_training_on_tiny_maps_has_the_gradients_of_float32(serial):
    """8x8 images reach maps of one pixel before the last stage; the initial state is a batch of one item."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet18(width=8, in_channels=1, generator=generator).train()
    model = net.serial() if serial else net
    images = torch.randn(16, 1, 8, 8, generator=generator)
    weights = torch.randn(16, 10, generator=generator)
    gradients = {}
    for dtype in (torch.float32, torch.bfloat16, torch.bfloat16):
        model.zero_grad()
        poison_heap()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            (model(images) * weights).sum().backward()
        gradients[dtype] = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    angle = F.cosine_similarity(gradients[torch.float32], gradients[torch.bfloat16], dim=0)
    assert angle > 0.8  # 0.87 to 0.97 over eight seeds: norms over 16 pixels magnify rounding


class Narrow(nn.Module):
    """A model whose second strided convolution gets maps of width 1."""

    def __init__(self, dims, size):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.stem, self.branch = conv(2, 8, 3, 2, 1), conv(8, 8, 3, padding=1)
        self.narrow, self.head = conv(8, 16, size, 2, size // 2), nn.Linear(16, 3)

    def forward(self, x):
        x = self.stem(x)
        return self.head(self.narrow(x + self.branch(x).relu()).flatten(2).mean(-1))


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
@pytest.mark.parametrize(("dims", "size"), [(1, 3), (2, 1), (2, 3), (2, 5), (3, 3)])
def test_bfloat16_gradients_of_converted_models_are_written_too(dims, size, last):
    model, x = Narrow(dims, size), torch.randn(2, 2, *[4] * (dims - 1), 2)
    if last and dims > 1:
        memory = {2: torch.channels_last, 3: torch.channels_last_3d}[dims]
        model, x = model.to(memory_format=memory), x.to(memory_format=memory)
    net = cascaded.convert(model, x)
    torch.testing.assert_close(net(x)[-1], model(x))
    gradients = {}
    for dtype in (torch.float32, *5 * [torch.bfloat16]):
        net.zero_grad()
        poison_heap()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            out = net(x)
        poison_heap()
        out.float().square().sum().backward()
        gradients[dtype] = model.narrow.weight.grad.clone()
        torch.testing.assert_close(gradients[dtype], gradients[torch.float32], rtol=0.1, atol=0.1)


def test_only_convolutions_of_narrow_maps_are_rewritten():
    def operations(x):
        captured = capture(Narrow(2, 3), Call((x,), {}), None)
        assert captured.any_batch
        return [op_name(node) for node in captured.graph.nodes if op_name(node) in ("pad", "slice", "conv2d")]

    assert operations(torch.randn(2, 2, 8, 8)) == ["conv2d"] * 3
    assert operations(torch.randn(2, 2, 8, 2)) == ["conv2d", "conv2d", "pad", "slice", "conv2d"]
