import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from cascaded.cascade import conv
from cascaded.cascade.conv import Conv2d

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
    inputs = (x, layer.weight)
    expected = torch.autograd.grad(torchs, inputs, weight)
    for mine, theirs in zip(torch.autograd.grad(ours, inputs, weight), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    ("items", "size", "gradients", "expected"),
    [
        (32, 2, True, True),
        (31, 2, True, False),
        (32, 3, True, False),
        (32, 1, True, True),
        (127, 2, False, False),
        (128, 2, False, True),
    ],
)
def test_only_small_maps_of_many_items_go_pixel_by_pixel(monkeypatch, items, size, gradients, expected):
    calls = []
    monkeypatch.setattr(conv, "pixelwise", lambda x, *rest: (calls.append(1), x)[1])
    with torch.set_grad_enabled(gradients):
        Conv2d(3, 3, 3)(torch.zeros(items, 3, size, size))
    assert bool(calls) == expected


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_the_memory_format_is_kept(memory):
    layer = Conv2d(4, 6, 3).to(memory_format=memory)
    out = layer(torch.randn(conv.ITEMS, 4, 2, 2).contiguous(memory_format=memory))
    assert out.is_contiguous(memory_format=memory)


def test_plain_is_torchs_own_with_a_copy_of_the_weights():
    layer = Conv2d(3, 4, 3, stride=2)
    plain = layer.plain()
    assert type(plain) is nn.Conv2d
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(plain(x), layer(x))
    assert plain.weight.data_ptr() != layer.weight.data_ptr()
