import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import cascaded
from cascaded.cascade.film import REST, SETTLED, Film, moving, still
from tests.refused import refused

CHANNELS = 3


def film_of(time, batch=4, size=2, seed=0):
    shape = (time, batch, CHANNELS, size, size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 + 1


def norm_with(**options):
    return cascaded.TimeBatchNorm(CHANNELS, **options).double()


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.1, 0.5, 1.0, None]))
def test_every_step_is_an_ordinary_batch_norm_of_its_own(time, batches, size, momentum):
    norm = norm_with(momentum=momentum)
    ordinary = [nn.BatchNorm2d(CHANNELS, momentum=momentum).double() for _ in range(time)]
    for seed in range(batches):
        frames = film_of(time, size=size, seed=seed)
        expected = torch.stack([each(frame) for each, frame in zip(ordinary, frames, strict=True)])
        torch.testing.assert_close(norm(moving(frames)).unfold(), expected)
    norm.eval()
    expected = torch.stack([each.eval()(frame) for each, frame in zip(ordinary, frames, strict=True)])
    torch.testing.assert_close(norm(moving(frames)).unfold(), expected)


def test_past_the_last_step_seen_the_last_one_holds():
    norm = norm_with(momentum=1.0)
    norm(moving(film_of(3)))
    norm.eval()
    frame = film_of(1)[0]
    out = norm(still(frame, steps=6)).unfold()
    assert not torch.equal(out[1], out[2])
    torch.testing.assert_close(out[3:], out[2].expand_as(out[3:]))


def test_a_held_frame_counts_at_every_step_it_is_held_and_stays_one_frame_where_statistics_no_longer_change():
    held, moved, frame = norm_with(), norm_with(), film_of(1)[0]
    held(still(frame, steps=5))
    moved(moving(frame.expand(5, *frame.shape)))
    torch.testing.assert_close(held.state_dict(), moved.state_dict())
    assert held.eval()(still(frame, steps=5)).num_frames == 1


def test_a_shorter_call_leaves_later_steps_alone():
    norm = norm_with()
    norm(moving(film_of(4)))
    before = norm.running_mean.clone()
    norm(moving(film_of(2, seed=1)))
    assert not torch.equal(norm.running_mean[1:3], before[1:3])
    assert torch.equal(norm.running_mean[3:], before[3:])


def test_a_new_step_starts_as_an_ordinary_batch_norm_does():
    norm, ordinary = norm_with(), nn.BatchNorm2d(CHANNELS).double()
    norm(moving(film_of(1)))
    frames = film_of(2, seed=1)
    norm(moving(frames))
    ordinary(frames[1])
    torch.testing.assert_close(norm.running_var[2], ordinary.running_var)


def test_cumulative_statistics_are_the_average_of_what_a_step_has_seen():
    norm = norm_with(momentum=None)
    films = [film_of(time, seed=time) for time in (1, 3, 2)]
    for frames in films:
        norm(moving(frames))
    for step in range(3):
        means = [frames[step].mean(dim=(0, 2, 3)) for frames in films if len(frames) > step]
        torch.testing.assert_close(norm.running_mean[step + 1], torch.stack(means).mean(dim=0))
    assert norm.batches.tolist() == [0, 3, 2, 1]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_resting_item_has_the_statistics_of_a_batch_of_equals(size):
    one, many = norm_with(), norm_with()
    item = film_of(1, batch=1, size=size)[0]
    out = one(Film(item, batch=1, steps=1, start=REST, copies=5))
    expected = many(Film(item.expand(5, -1, -1, -1), batch=5, steps=1, start=REST))
    torch.testing.assert_close(out.frames.expand(5, -1, -1, -1), expected.frames)
    torch.testing.assert_close(one.state_dict(), many.state_dict())


def test_a_batch_of_one_trains_as_an_ordinary_norm_does():
    norm, ordinary = norm_with(), nn.BatchNorm2d(CHANNELS).double()
    frames = film_of(1, batch=1)
    torch.testing.assert_close(norm(moving(frames)).frames, ordinary(frames[0]))
    torch.testing.assert_close(norm.running_var[1], ordinary.running_var)


def test_a_single_value_a_channel_is_refused_in_training_and_normed_in_evaluation():
    norm = norm_with()
    refused(r"one value per channel.*at least 2", norm, moving(film_of(1, batch=1, size=1)))
    assert norm.eval()(moving(film_of(1, batch=1, size=1))).frames.isfinite().all()


def test_settled_is_the_last_step():
    norm = norm_with(momentum=1.0)
    norm(moving(film_of(3)))
    rows = len(norm.running_mean)
    frame = film_of(1, seed=7)[0]
    norm(still(frame, steps=1, start=SETTLED))
    assert len(norm.running_mean) == rows
    torch.testing.assert_close(norm.running_mean[-1], frame.mean(dim=(0, 2, 3)))
    norm.eval()
    torch.testing.assert_close(norm(still(frame, steps=1, start=SETTLED)).frames, norm.settled().eval()(frame))


def test_affine_parameters_a_step():
    norm = norm_with(affine="per_step", steps=3)
    with torch.no_grad():
        norm.bias.copy_(torch.tensor([[10.0], [20.0], [30.0]]).expand(3, CHANNELS))
    out = norm(still(film_of(1)[0], steps=4)).unfold().mean(dim=(1, 2, 3, 4))
    torch.testing.assert_close(out, torch.tensor([20.0, 30.0, 30.0, 30.0], dtype=torch.float64))


def test_statistics_survive_a_state_dict_whatever_their_number_of_steps():
    norm, other, fewer = norm_with(), norm_with(), norm_with()
    norm(moving(film_of(4)))
    other.load_state_dict(norm.state_dict())
    torch.testing.assert_close(other.state_dict(), norm.state_dict())
    norm.load_state_dict(fewer.state_dict())
    assert len(norm.running_mean) == 1
    other.reset_statistics()
    torch.testing.assert_close(other.state_dict(), norm_with().state_dict())


def test_statistics_follow_the_module_to_another_type():
    norm = norm_with().float()
    norm(moving(film_of(2).float()))
    assert norm.running_mean.dtype == torch.float32
    assert norm.half().running_var.dtype == torch.float16


def test_unknown_affine_is_refused():
    refused("'shared' or 'per_step'", norm_with, affine="both")
