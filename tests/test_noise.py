import math

import numpy as np
import pytest
import scipy.ndimage
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cascaded.data.geometry import blur, tiles, turn
from cascaded.data.noise import (
    NOISES,
    Focus,
    Occlusion,
    Perlin,
    Resolution,
    Rotation,
    Translation,
    folded,
    make_noise,
)
from cascaded.data.perlin import highest, perlin
from cascaded.data.sampling import uniform
from cascaded.errors import InputError

CPU = torch.device("cpu")
each_noise = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some(batch=3, channels=3, height=32, width=32, seed=1, dtype=torch.float32):
    return torch.rand(batch, channels, height, width, generator=seeded(seed), dtype=dtype)


def is_square(mask, size):
    return mask.sum() == size**2 and mask.any(0).sum() == mask.any(1).sum() == size


# --- what all have in common


@each_noise
@given(
    size=st.tuples(st.integers(1, 13), st.integers(1, 13)),
    batch=st.integers(1, 3),
    channels=st.integers(1, 4),
    steps=st.integers(1, 4),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 2**16),
)
def test_a_film_of_any_images_stays_in_range(noise, size, batch, channels, steps, dtype, seed):
    images = some(batch, channels, *size, seed=seed, dtype=dtype).round(decimals=1)
    film = noise.film(images, steps, seeded(seed))
    assert film.shape == (steps, *images.shape)
    assert film.dtype == dtype
    assert film.min() >= 0
    assert film.max() <= 1


@each_noise
@pytest.mark.parametrize("side", [8, 32, 224])
def test_black_and_white_stay_in_range_at_the_usual_sizes(noise, side):
    images = some(2, 1, side, side).round()
    film = noise.film(images, 2, seeded())
    assert film.min() >= 0
    assert film.max() <= 1
    assert not torch.equal(film[0], images)


@each_noise
def test_an_augmentation_is_a_film_of_one_frame(noise):
    images = some()
    assert torch.equal(noise(images, seeded(4)), noise.film(images, 1, seeded(4))[0])


@each_noise
def test_the_generator_is_the_only_source_of_randomness(noise):
    images, before, state = some(), some(), torch.get_rng_state()
    first = noise.film(images, 3, seeded(7))
    assert torch.equal(noise.film(images, 3, seeded(7)), first)
    assert not torch.equal(noise.film(images, 3, seeded(8)), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(images, before)


@each_noise
def test_every_image_and_every_step_has_its_own_draw(noise):
    same = some(1).expand(12, 3, 32, 32)
    film = noise.film(same, 12, seeded())
    sorts = 2 if isinstance(noise, Resolution) else 12 - 3  # two factors; a place may come twice
    assert len(film[0].flatten(1).unique(dim=0)) >= sorts
    assert len(film[:, 0].flatten(1).unique(dim=0)) >= min(sorts, 6)  # a walk also goes back


@each_noise
def test_images_may_lie_in_memory_in_any_way(noise):
    images = some()
    last = images.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(noise.film(last, 2, seeded()), noise.film(images, 2, seeded()))


@each_noise
@pytest.mark.parametrize(
    ("images", "steps", "sentence"),
    [
        (some()[0], 1, r"shape \(3, 32, 32\)"),
        (some(0), 1, r"shape \(0, 3, 32, 32\)"),
        (some(), 0, "steps is 0"),
        ((some() * 255).byte(), 1, "torch.uint8 from 0 to 25.*divide bytes by 255"),
        (some() * 4 - 2, 1, "normalise after the noise"),
        (some() * math.nan, 1, "normalise after the noise"),
    ],
)
def test_images_that_cannot_be_spoiled_are_named(noise, images, steps, sentence):
    with pytest.raises(InputError, match=sentence):
        noise.film(images, steps, seeded())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Focus(patch=1.5), "patch is 1.5"),
        (lambda: Focus(sigma=-1), "sigma is -1"),
        (lambda: Occlusion(patch=16), "patch is 16: it is a part"),
        (lambda: Occlusion(value=255), "value is 255"),
        (lambda: Perlin(cover=40), "cover is 40"),
        (lambda: Perlin(frequency=0), "frequency is 0"),
        (lambda: Resolution(factors=()), "factors are"),
        (lambda: Resolution(factors=(0, 2)), "factors are"),
        (lambda: Translation(reach=8), "reach is 8"),
        (lambda: Rotation(degrees=-60), "degrees is -60"),
    ],
)
def test_parameters_out_of_range_are_named(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_noises_are_made_by_name():
    assert make_noise("perlin") == Perlin(frequency=5, cover=0.4)
    with pytest.raises(InputError, match="did you mean 'occlusion'"):
        make_noise("Oclusion")


# --- focus, occlusion


@given(
    size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    sigma=st.floats(0.1, 6),
    seed=st.integers(0, 2**16),
)
def test_the_blur_is_scipys(size, sigma, seed):
    image = some(1, 1, *size, seed=seed, dtype=torch.float64)[0, 0]
    reference = scipy.ndimage.gaussian_filter(image.numpy(), sigma, mode="mirror", radius=math.ceil(4 * sigma))
    np.testing.assert_allclose(blur(image, sigma).numpy(), reference, atol=1e-12)


def test_no_blur_at_all_is_the_image():
    assert torch.equal(blur(some(), 0), some())


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 16), (8, 8, 4), (9, 20, 4)])
def test_focus_is_sharp_in_one_square_and_blurred_elsewhere(height, width, size):
    images = some(2, 3, height, width)
    blurred = blur(images, min(height, width) / 16)
    for frame in Focus().film(images, 3, seeded()):
        sharp = (frame == images).all(1)
        assert all(is_square(mask, size) for mask in sharp)
        outside = ~sharp[:, None].expand_as(frame)
        assert torch.equal(frame[outside], blurred[outside])


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 16), (8, 8, 4), (9, 20, 4)])
@pytest.mark.parametrize("value", [0.0, 0.5])
def test_occlusion_covers_one_square_and_nothing_else(height, width, size, value):
    images = some(2, 3, height, width)
    for frame in Occlusion(value=value).film(images, 3, seeded()):
        covered = (frame == value).all(1)
        assert all(is_square(mask, size) for mask in covered)
        outside = ~covered[:, None].expand_as(frame)
        assert torch.equal(frame[outside], images[outside])


def test_patches_are_at_every_place_that_fits():
    film = Occlusion().film(torch.ones(50, 1, 4, 6), 40, seeded()).flatten(0, 1).squeeze(1)
    corners = {tuple((frame == 0).nonzero()[0].tolist()) for frame in film}
    assert corners == {(y, x) for y in range(3) for x in range(5)}


# --- perlin


def slow_perlin(angles, y, x):
    """Perlin's own words at one point: four corners, their slopes, an interpolation in x and one in y."""
    i, j = int(y), int(x)

    def fade(t):
        return 6 * t**5 - 15 * t**4 + 10 * t**3

    def corner(k, m):
        return math.sin(angles[k][m]) * (y - k) + math.cos(angles[k][m]) * (x - m)

    def between(a, b, t):
        return a + fade(t) * (b - a)

    above = between(corner(i, j), corner(i, j + 1), x - j)
    below = between(corner(i + 1, j), corner(i + 1, j + 1), x - j)
    return between(above, below, y - i)


@pytest.mark.parametrize(("cells", "height", "width"), [(5, 32, 32), (5, 8, 8), (1, 4, 7), (3, 2, 9), (7, 5, 5)])
def test_two_matrix_products_are_perlin_noise(cells, height, width):
    field = perlin((2,), cells, height, width, seeded(3), CPU)
    angles = uniform((2, cells + 1, cells + 1), 0, 2 * math.pi, seeded(3), CPU).tolist()
    ys, xs = ((np.arange(side) + 0.5) * cells / side for side in (height, width))
    slow = [[[slow_perlin(a, y, x) for x in xs] for y in ys] for a in angles]
    torch.testing.assert_close(field, torch.tensor(slow).float(), atol=1e-5, rtol=0)


@given(size=st.tuples(st.integers(1, 12), st.integers(1, 12)), cover=st.floats(0, 1), seed=st.integers(0, 2**16))
def test_perlin_covers_exactly_its_part_of_the_pixels(size, cover, seed):
    height, width = size
    film = Perlin(cover=cover).film(torch.ones(2, 3, height, width), 2, seeded(seed))
    assert ((film == 0).sum(dim=(-2, -1)) == round(cover * height * width)).all()


def test_perlin_leaves_the_other_60_per_cent_alone_in_all_channels():
    images = some(4) / 2 + 0.5
    frame = Perlin()(images, seeded())
    lost = (frame == 0).all(1, keepdim=True).expand_as(frame)
    assert (lost.sum(dim=(-2, -1)) == 410).all()  # of 1024
    assert torch.equal(frame[~lost], images[~lost])


def test_the_highest_pixels_are_ranked_even_where_they_are_equal():
    field = torch.tensor([[[3.0, 1.0], [2.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    assert highest(field, 2)[0].tolist() == [[True, False], [False, True]]
    assert highest(field, 2)[1].sum() == 2


def test_blots_are_larger_than_a_pixel():
    """Gradient noise is smooth: a neighbour is mostly covered alike, which is not so of pixels drawn one by one."""
    lost = Perlin()(torch.ones(50, 1, 32, 32), seeded()) == 0
    alike = (lost[..., 1:] == lost[..., :-1]).float().mean()
    assert alike > 0.8  # 0.52 if independent


# --- resolution


def slow_tiles(images, factor):
    out = images.clone()
    for y in range(0, images.shape[-2], factor):
        for x in range(0, images.shape[-1], factor):
            tile = images[..., y : y + factor, x : x + factor]
            out[..., y : y + factor, x : x + factor] = tile.mean(dim=(-2, -1), keepdim=True)
    return out


@given(size=st.tuples(st.integers(1, 13), st.integers(1, 13)), factor=st.integers(1, 6))
def test_a_tile_is_its_mean_also_where_tiles_do_not_divide_the_image(size, factor):
    images = some(2, 2, *size, dtype=torch.float64)
    torch.testing.assert_close(tiles(images, factor), slow_tiles(images, factor))


def test_resolution_draws_two_and_four_equally_often():
    images = some(1, 1, 8, 8).expand(20, 1, 8, 8)
    film = Resolution().film(images, 50, seeded())
    by_two, by_four = ((film == tiles(images, factor)).flatten(2).all(2) for factor in (2, 4))
    assert (by_two ^ by_four).all()
    assert abs(by_two.sum() - 500) < 80


# --- translation


@pytest.mark.parametrize(("side", "reach", "step"), [(32, 8, 1), (8, 2, 1), (224, 56, 7), (64, 16, 2)])
def test_a_walk_stays_in_reach_and_takes_steps_of_its_size(side, reach, step):
    walk = Translation().walk(torch.zeros(20, 1, side, side), 300, seeded())
    moves = walk.diff(dim=1).abs()
    assert walk.abs().max() == reach
    assert moves.max() == step
    inside = walk[:, :-1].abs() <= reach - step
    assert (moves[inside] == step).all()


def test_every_frame_of_a_walk_is_equally_likely_anywhere():
    each = 2000
    walk = Translation().walk(torch.zeros(5 * each, 1, 8, 8), 12, seeded())
    for place in range(-2, 3):
        counts = (walk == place).sum(-1)
        assert ((counts - each).abs() < 5 * each**0.5).all()


@given(start=st.integers(-3, 3), moves=st.lists(st.integers(-2, 2), max_size=20))
def test_a_folded_walk_is_thrown_back_step_by_step(start, moves):
    """Beyond a wall a free walk is in the mirror: there, and only there, a move goes the other way."""
    reach, n = 3, 7
    here, free, heading = start, start, 1
    for move in moves:
        free, here = free + move, here + heading * move
        if abs(here) > reach:
            wall = math.copysign(n / 2, here)
            here, heading = round(2 * wall - here), -heading
        assert folded(torch.tensor(free), reach).item() == here


def test_translation_is_a_slice_of_the_reflected_image():
    images, noise = some(3), Translation()
    padded = F.pad(images, (8, 8, 8, 8), mode="reflect")
    film, walk = noise.film(images, 4, seeded(2)), noise.walk(images, 4, seeded(2))
    for t in range(4):
        for b in range(3):
            down, right = (walk[:, t, b] + 8).tolist()
            assert torch.equal(film[t, b], padded[b, :, down : down + 32, right : right + 32])


# --- rotation


@pytest.mark.parametrize(("height", "width"), [(32, 32), (8, 8), (7, 12), (2, 3), (1, 1), (1, 4)])
def test_a_turn_by_nothing_is_the_image(height, width):
    images = some(2, 3, height, width, dtype=torch.float64)
    torch.testing.assert_close(turn(images, torch.zeros(2, dtype=torch.float64)), images)


def test_quarter_turns_are_exact():
    images = some(2, 3, 9, 9, dtype=torch.float64)
    quarter = torch.tensor([math.pi / 2, math.pi], dtype=torch.float64)
    turned = turn(images, quarter)
    torch.testing.assert_close(turned[0], images[0].rot90(1, (-2, -1)))
    torch.testing.assert_close(turned[1], images[1].rot90(2, (-2, -1)))


@given(
    size=st.tuples(st.integers(2, 12), st.integers(2, 12)),
    degrees=st.floats(-60, 60),
    seed=st.integers(0, 2**16),
)
def test_a_turn_is_scipys(size, degrees, seed):
    image = some(1, 1, *size, seed=seed, dtype=torch.float64)
    reference = scipy.ndimage.rotate(image[0, 0].numpy(), degrees, reshape=False, order=1, mode="mirror")
    turned = turn(image, torch.tensor([math.radians(degrees)], dtype=torch.float64))
    np.testing.assert_allclose(turned[0, 0].numpy(), reference, atol=1e-9)


def test_angles_reach_sixty_degrees_either_way_and_no_further():
    ramp = torch.linspace(0, 1, 33).expand(1000, 1, 33, 33)  # at the centre, its slope tells the angle
    film = Rotation()(ramp, seeded())[:, 0]
    right, down = film[:, 16, 17] - film[:, 16, 15], film[:, 17, 16] - film[:, 15, 16]
    degrees = torch.rad2deg(torch.atan2(-down, right))
    assert -60.01 < degrees.min() < -59
    assert 59 < degrees.max() < 60.01
    assert abs(degrees.mean()) < 4
