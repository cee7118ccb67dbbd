"""How images are shown: what a view says is what the slow and obvious way says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cascaded.cascade.named import make_kernel
from cascaded.data.noise import NOISES, make_noise
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces.protocols import Persistent, Still, Transient
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401

OSD, EWS = make_kernel("osd"), make_kernel("ews:0.7")
KERNELS = pytest.mark.parametrize("kernel", [OSD, EWS, make_kernel("taps:0,0.5,0.5")])


@pytest.fixture
def run(tiny_run):  # noqa: F811
    return load_run(tiny_run())


@pytest.fixture
def serial_run(tiny_run):  # noqa: F811
    return load_run(tiny_run("serial-ce"))


@pytest.fixture
def pixels():
    return load("digits", "test").images[:5]


def draws(seed=3, items=5):
    return [torch.Generator().manual_seed(1000 * seed + item) for item in range(items)]


@torch.no_grad()
def said_by(view, run, pixels, generator=None):
    """What is said in every take, with the draws of `draws()`."""
    return list(view.show(run, pixels, generator or draws(items=len(pixels))))


def spoilt(run, name, pixels, frames):
    """The noisy frames that `draws()` makes, image by image."""
    pairs = zip(pixels.split(1), draws(items=len(pixels)), strict=True)
    return run.normalised(torch.cat([make_noise(name).film(each / 255, frames, drawn) for each, drawn in pairs], dim=1))


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    return True


@pytest.mark.parametrize(
    ("kernel", "schedule", "steps"), [(OSD, "cascaded", 9), (EWS, "cascaded", 70), (OSD, "serial", 9)]
)
@torch.no_grad()
def test_a_still_image_is_answered_as_the_network_answers_it(run, pixels, kernel, schedule, steps):
    view = Still(kernel, schedule, steps)
    (logits,) = said_by(view, run, pixels)
    expected = run.net(run.normalised(pixels), kernel=kernel, steps=steps, schedule=schedule)
    assert logits.shape == (steps, 5, 10)
    assert torch.equal(logits, expected)
    assert [(take.ending, take.steps, take.noise) for take in view.takes] == [("", steps, None)]


@KERNELS
@pytest.mark.parametrize("noise", ["occlusion", "translation"])
@torch.no_grad()
def test_persistent_noise_is_the_film_of_its_frames(run, pixels, kernel, noise):
    (logits,) = said_by(Persistent(kernel, "cascaded", noise, steps=11), run, pixels)
    assert close(logits, run.net(spoilt(run, noise, pixels, 11), kernel=kernel))


@torch.no_grad()
def test_under_the_serial_schedule_every_frame_is_processed_in_full(serial_run, pixels):
    plain = serial_run.net.serial().eval()
    (logits,) = said_by(Persistent(OSD, "serial", "perlin", steps=4), serial_run, pixels)
    assert close(logits, torch.stack([plain(frame) for frame in spoilt(serial_run, "perlin", pixels, 4)]))
    view = Transient(OSD, "serial", "perlin", lengths=(1, 3), before=2, after=2)
    clean, noisy = serial_run.normalised(pixels), spoilt(serial_run, "perlin", pixels, 3)
    for frames, logits in zip((1, 3), said_by(view, serial_run, pixels), strict=True):
        film = [clean, clean, *noisy[:frames], clean, clean]
        assert close(logits, torch.stack([plain(frame) for frame in film]))


@KERNELS
@torch.no_grad()
def test_transient_noise_is_the_whole_film_for_every_number_of_noisy_frames(run, pixels, kernel):
    view = Transient(kernel, "cascaded", "occlusion", lengths=(1, 3))
    clean, noisy = run.normalised(pixels), spoilt(run, "occlusion", pixels, 6)
    for frames, logits in zip((1, 3), said_by(view, run, pixels), strict=True):
        film = torch.stack([*[clean] * 10, *noisy[:frames], *[clean] * 10])
        assert logits.shape == (20 + frames, 5, 10)
        assert close(logits, run.net(film, kernel=kernel))


@given(
    st.sampled_from(sorted(NOISES)),
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.integers(0, 5),
    st.floats(0, 0.9),
)
@settings(max_examples=6)
@torch.no_grad()
def test_drawn_films_are_as_if_run_in_one_go(tiny_run, noise, lengths, before, after, alpha):  # noqa: F811
    run, pixels = load_run(tiny_run()), load("digits", "test").images[:3]
    kernel = make_kernel(f"ews:{alpha}")
    view = Transient(kernel, "cascaded", noise, lengths=lengths, before=before, after=after)
    clean, noisy = run.normalised(pixels), spoilt(run, noise, pixels, 6)
    for take, logits in zip(view.takes, said_by(view, run, pixels), strict=True):
        assert (take.noise.onset, take.noise.protocol) == (before + 1, "transient")
        film = torch.stack([*[clean] * before, *noisy[: take.noise.frames], *[clean] * after])
        assert take.steps == len(film)
        assert close(logits, run.net(film, kernel=kernel))


def test_the_noise_of_two_frames_begins_with_that_of_one(run, pixels):
    one, two = said_by(Transient(OSD, "cascaded", "focus", lengths=(1, 2)), run, pixels)
    assert torch.equal(one[:11], two[:11])
    assert not torch.allclose(one[12:], two[12:21])


def test_the_noise_of_a_length_does_not_depend_on_which_other_lengths_are_asked_for(run, pixels):
    (alone,) = said_by(Transient(OSD, "cascaded", "perlin", lengths=(2,)), run, pixels)
    _, among, _ = said_by(Transient(OSD, "cascaded", "perlin", lengths=(1, 2, 6)), run, pixels)
    assert torch.equal(alone, among)


def test_the_noise_of_an_image_does_not_depend_on_what_else_is_shown(run, pixels):
    view = Persistent(OSD, "cascaded", "perlin", steps=3)
    (all_five,), (two,) = said_by(view, run, pixels), said_by(view, run, pixels[:2], draws(items=2))
    assert close(all_five[:, :2], two)


def test_other_draws_make_another_film_and_the_same_the_same(run, pixels):
    view = Persistent(OSD, "cascaded", "occlusion", steps=3)
    (one,), (same,) = said_by(view, run, pixels), said_by(view, run, pixels)
    (other,) = said_by(view, run, pixels, draws(4))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


@KERNELS
def test_updates_and_operations_are_those_of_the_network(run, serial_run, kernel):
    still, net = Still(kernel, "cascaded", 4), run.net
    assert still.updates(run, 4) == net.cycles("cascaded", kernel=kernel, steps=4)
    assert still.operations(run, 4) == net.operations(8, 8, "cascaded", kernel=kernel, steps=4)
    assert Still(kernel, "serial", 9).updates(run, 9) == net.cycles("serial", steps=9) == [0] + [1] * 8
    film = Persistent(kernel, "cascaded", "focus", steps=4)
    assert film.updates(run, 4) == net.cycles("cascaded", kernel=kernel, steps=4, moving=True)
    assert film.operations(run, 4) == []
    assert Persistent(kernel, "serial", "focus", steps=4).updates(serial_run, 4) == [8] * 4


def test_a_view_tells_how_much_it_holds_and_what_it_draws_from():
    assert (Still(OSD, "cascaded", 70).held, Still(OSD, "cascaded", 70).trials) == (1, 1)
    persistent = Persistent(OSD, "cascaded", "focus", 7, 5, steps=9)
    assert (persistent.held, persistent.trials, persistent.draws) == (9, 7, 5)
    assert Transient(OSD, "cascaded", "focus", lengths=(2, 4)).held == 7  # the clean frame is there too


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Persistent(OSD, "cascaded", "oclusion"), "did you mean 'occlusion'"),
        (lambda: Persistent(OSD, "cascaded", "focus", 0), "--trials is 0: give at least 1"),
        (lambda: Transient(OSD, "cascaded", "focus", lengths=()), r"--noisy is \[\]: give different numbers of frames"),
        (lambda: Transient(OSD, "cascaded", "focus", lengths=(0, 1)), r"--noisy is \[0, 1\]"),
        (lambda: Transient(OSD, "cascaded", "focus", lengths=(2, 2)), r"--noisy is \[2, 2\]"),
    ],
)
def test_impossible_noise_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
