import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cascaded
from cascaded.bench.loop import impulse_response
from cascaded.cascade.named import make_kernel
from tests.drawn import kernels
from tests.refused import refused


def filtered(kernel, *values):
    """Of a film of one item with one feature."""
    return kernel.filter(torch.tensor(values, dtype=torch.float64).view(-1, 1, 1))[0].flatten().tolist()


@pytest.mark.parametrize(
    ("kernel", "values", "expected"),
    [
        (cascaded.NoDelay(), (3, 1, 4), [3, 1, 4]),
        (cascaded.OneStepDelay(), (3, 1, 4), [0, 3, 1]),
        (cascaded.ExponentialSmoothing(0.5), (8, 0, 4), [4, 2, 3]),
        (cascaded.TappedDelay([0, 1, 10]), (3, 1, 4), [0, 3, 31]),
        (cascaded.TappedDelay([1, 0, 10]), (3, 1, 4), [3, 1, 34]),
    ],
)
def test_by_hand(kernel, values, expected):
    assert filtered(kernel, *values) == expected


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (cascaded.NoDelay(), cascaded.TappedDelay([1])),
        (cascaded.OneStepDelay(), cascaded.TappedDelay([0, 1])),
        (cascaded.NoDelay(), cascaded.ExponentialSmoothing(0)),
    ],
)
def test_special_kernels_are_cases_of_general_ones(special, general):
    assert filtered(special, 3, 1, 4, 1, 5) == filtered(general, 3, 1, 4, 1, 5)


@given(kernels, st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_a_film_is_convolved_with_the_impulse_response(kernel, values):
    kappa = impulse_response(kernel, len(values))
    expected = [sum(kappa[k] * values[t - k] for k in range(min(t + 1, len(kappa)))) for t in range(len(values))]
    assert filtered(kernel, *values) == pytest.approx(expected, abs=1e-12)


@given(kernels, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_filtered_in_pieces_equals_filtered_whole(kernel, lengths):
    film = torch.randn(sum(lengths), 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    line, pieces = None, []
    for piece in film.split(lengths):
        out, line = kernel.filter(piece, line)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces), kernel.filter(film)[0])


@given(kernels)
def test_stepped_equals_filtered(kernel):
    film = torch.randn(6, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    line, steps = None, []
    for frame in film:
        out, line = kernel.step(frame, line)
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps), kernel.filter(film)[0])


@pytest.mark.parametrize(
    ("kernel", "step"),
    [
        (cascaded.NoDelay(), 1),
        (cascaded.OneStepDelay(), 9),
        (cascaded.TappedDelay([0, 0.5, 0.5]), 18),
        (cascaded.TappedDelay([0.5, 0.5]), 10),
        (cascaded.ExponentialSmoothing(0.9), float("inf")),
    ],
)
def test_when_nine_stages_have_settled(kernel, step):
    assert kernel.settles(9) == step


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [float("nan")], [0.0, float("inf")]])
def test_useless_weights_are_refused(weights):
    refused("finite numbers, at least one not zero", cascaded.TappedDelay, weights)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 2.0, float("nan")])
def test_alpha_out_of_range_is_refused(alpha):
    refused("0 <= alpha < 1", cascaded.ExponentialSmoothing, alpha)


def test_kernels_are_values():
    assert cascaded.OneStepDelay() == cascaded.OneStepDelay()
    assert cascaded.OneStepDelay() != cascaded.NoDelay()
    assert cascaded.TappedDelay([0, 1]) == cascaded.TappedDelay((0, 1))
    assert {cascaded.ExponentialSmoothing(0.9): 1}[cascaded.ExponentialSmoothing(0.9)] == 1
    assert repr(cascaded.OneStepDelay()) == "OneStepDelay()"


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("osd", cascaded.OneStepDelay()),
        ("none", cascaded.NoDelay()),
        ("ews:0.9", cascaded.ExponentialSmoothing(0.9)),
        ("taps:0,0.5,-0.5", cascaded.TappedDelay([0, 0.5, -0.5])),
    ],
)
def test_kernels_by_name(name, kernel):
    assert make_kernel(name) == kernel


@pytest.mark.parametrize("name", ["ews", "ews:", "ews:fast", "taps:1,x", "OSD", "osd:1", ""])
def test_other_names_are_refused_with_the_known_ones(name):
    refused(r"give osd \(one-step delay\), none, ews:0.9", make_kernel, name)
    refused(r"alpha is 1\.5", make_kernel, "ews:1.5")
