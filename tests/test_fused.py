import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from cascaded.cascade.film import layout
from cascaded.cascade.fused import add_relu, norm_steps, prepend
from tests.refused import refused

FORMATS = [torch.contiguous_format, torch.channels_last]
BATCH, CHANNELS = 2, 3


def drawn(rows, memory_format=torch.contiguous_format, seed=0, size=2):
    x = torch.randn(rows, CHANNELS, size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.contiguous(memory_format=memory_format).requires_grad_()


def same_gradients(found, expected, inputs):
    """First and second derivatives of two results that should be equal."""
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(9), dtype=found.dtype)
    pairs = [torch.autograd.grad((y * weights).sum(), inputs, create_graph=True) for y in (found, expected)]
    torch.testing.assert_close(*pairs)
    squares = [sum(g.square().sum() for g in each) for each in pairs]
    seconds = [torch.autograd.grad(each, inputs, allow_unused=True) for each in squares if each.requires_grad]
    if seconds:
        torch.testing.assert_close(*seconds)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("time", [1, 3])
def test_norm_steps_is_an_ordinary_batch_norm_per_frame(time, memory_format):
    frames = drawn(time * BATCH, memory_format)
    weight, bias = (torch.randn(time, CHANNELS, dtype=torch.float64, requires_grad=True) for _ in range(2))
    normed, means, variances = norm_steps(frames, weight, bias, 1e-5)
    expected = [
        F.batch_norm(x, None, None, w, b, training=True, eps=1e-5)
        for x, w, b in zip(frames.split(BATCH), weight, bias, strict=True)
    ]
    same_gradients(normed, torch.cat(expected), (frames, weight, bias))
    values = frames.detach().unflatten(0, (time, BATCH)).transpose(1, 2).flatten(2)
    torch.testing.assert_close((means, variances), (values.mean(2), values.var(2)))
    assert layout(normed) == layout(frames)


def test_norm_steps_in_half_precision_has_statistics_in_single():
    frames = torch.randn(2 * BATCH, CHANNELS, 2, 2).bfloat16()
    weight, bias = torch.randn(2, CHANNELS), torch.randn(2, CHANNELS)
    normed, means, _ = norm_steps(frames, weight, bias, 1e-5)
    expected = [
        F.batch_norm(x, None, None, w, b, training=True)
        for x, w, b in zip(frames.split(BATCH), weight, bias, strict=True)
    ]
    torch.testing.assert_close(normed, torch.cat(expected), rtol=0, atol=0)
    assert means.dtype == torch.float32


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(FORMATS), st.sampled_from(FORMATS))
def test_add_relu_repeats_the_last_frame_of_the_shorter(time_a, time_b, format_a, format_b):
    a, b = drawn(time_a * BATCH, format_a), drawn(time_b * BATCH, format_b, seed=1)
    longer = max(time_a, time_b)
    held = [torch.cat([x, *[x[-BATCH:]] * (longer - len(x) // BATCH)]) for x in (a, b)]
    same_gradients(add_relu(a, b, BATCH), torch.relu(held[0] + held[1]), (a, b))


def test_add_relu_of_two_precisions_has_the_higher_one():
    a, b = torch.randn(BATCH, CHANNELS, 2, 2), torch.randn(BATCH, CHANNELS, 2, 2).bfloat16()
    torch.testing.assert_close(add_relu(a, b, BATCH), torch.relu(a + b), rtol=0, atol=0)


def test_a_skip_path_of_another_shape_is_refused():
    a, b = torch.randn(BATCH, 3, 1, 1), torch.randn(BATCH, 3, 2, 2)
    refused(r"skip path has frames of shape \[3, 1, 1\] and the branch of \[3, 2, 2\]", add_relu, a, b, BATCH)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("items", [1, BATCH])
def test_prepend_is_a_concatenation(items, memory_format):
    before, frames = drawn(items, seed=1), drawn(3 * BATCH, memory_format)
    found = prepend(before, frames, BATCH)
    expected = torch.cat([before.expand(BATCH, -1, -1, -1), frames])
    same_gradients(found, expected, (before, frames))
    assert layout(found) == layout(frames)
