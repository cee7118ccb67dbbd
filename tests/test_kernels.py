import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cascaded
from cascaded.bench.loop import impulse_response
from tests.drawn import kernels


def column(*values):
    """A film of one item with one feature."""
    return torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)


def filtered(kernel, *values):
    return kernel.filter(column(*values))[0].flatten().tolist()


def test_no_delay_lets_everything_through():
    assert filtered(cascaded.NoDelay(), 3, 1, 4) == [3, 1, 4]


def test_one_step_delay_starts_empty():
    assert filtered(cascaded.OneStepDelay(), 3, 1, 4) == [0, 3, 1]


def test_exponential_smoothing_by_hand():
    assert filtered(cascaded.ExponentialSmoothing(0.5), 8, 0, 4) == [4, 2, 3]


def test_tapped_delay_by_hand():
    assert filtered(cascaded.TappedDelay([0, 1, 10]), 3, 1, 4) == [0, 3, 31]
    assert filtered(cascaded.TappedDelay([1, 0, 10]), 3, 1, 4) == [3, 1, 34]


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
    with pytest.raises(ValueError, match="finite numbers, at least one not zero"):
        cascaded.TappedDelay(weights)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 2.0, float("nan")])
def test_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="0 <= alpha < 1"):
        cascaded.ExponentialSmoothing(alpha)


def test_kernels_are_values():
    assert cascaded.OneStepDelay() == cascaded.OneStepDelay()
    assert cascaded.OneStepDelay() != cascaded.NoDelay()
    assert cascaded.TappedDelay([0, 1]) == cascaded.TappedDelay((0, 1))
    assert {cascaded.ExponentialSmoothing(0.9): 1}[cascaded.ExponentialSmoothing(0.9)] == 1
    assert repr(cascaded.OneStepDelay()) == "OneStepDelay()"
