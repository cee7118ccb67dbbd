import math

import numpy as np
import pytest
import scipy.ndimage
import scipy.stats
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cascaded.data import noise as noises
from cascaded.data.augment import Augment, normalize
from cascaded.data.geometry import LUMINANCE, blur, gray, tiles, turn
from cascaded.data.gray import Gray
from cascaded.data.perlin import highest, perlin
from cascaded.data.sampling import uniform
from cascaded.traces.config import RecordingConfig
from tests.refused import refused

CPU = torch.device("cpu")
OF_TIME = {name: noise for name, noise in noises.KNOWN.items() if not noise.of_pixels}
each_noise = pytest.mark.parametrize("noise", OF_TIME.values(), ids=OF_TIME)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some(batch=3, channels=3, height=32, width=32, seed=1, dtype=torch.float32):
    """Normalized images: from -2 to 2, about 0."""
    return 4 * torch.rand(batch, channels, height, width, generator=seeded(seed), dtype=dtype) - 2


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
def test_a_film_of_any_images_stays_in_their_range(noise, size, batch, channels, steps, dtype, seed):
    images = some(batch, channels, *size, seed=seed, dtype=dtype).round(decimals=1)
    film = noise.film(images, steps, seeded(seed))
    assert film.shape == (steps, *images.shape)
    assert film.dtype == dtype
    assert film.min() >= min(images.min().item(), 0) - 1e-6
    assert film.max() <= max(images.max().item(), 0) + 1e-6


@each_noise
@pytest.mark.parametrize("side", [8, 32, 224])
def test_images_of_the_usual_sizes_are_changed(noise, side):
    images = some(2, 1, side, side).round()
    assert not torch.equal(noise.film(images, 2, seeded())[0], images)


@each_noise
def test_an_augmentation_is_a_film_of_one_frame_and_the_generator_is_the_only_source_of_randomness(noise):
    images, before, state = some(), some(), torch.get_rng_state()
    first = noise.film(images, 3, seeded(7))
    assert torch.equal(noise(images, seeded(4)), noise.film(images, 1, seeded(4))[0])
    assert torch.equal(noise.film(images, 3, seeded(7)), first)
    assert not torch.equal(noise.film(images, 3, seeded(8)), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(images, before)


@each_noise
def test_every_image_and_every_step_has_its_own_draw(noise):
    same = some(1).expand(12, 3, 32, 32)
    film = noise.film(same, 12, seeded())
    sorts = 2 if isinstance(noise, noises.Resolution) else 12 - 3  # two factors; a place may come twice
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
        (some().byte(), 1, "images are torch.uint8, noise needs floats with mean color 0: normalize them first"),
    ],
)
def test_images_that_cannot_be_spoiled_are_named(noise, images, steps, sentence):
    refused(sentence, noise.film, images, steps, seeded())


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("perlin", noises.Perlin(frequency=5, cover=0.4)),
        ("focus:sigma=2", noises.Focus(patch=16, sigma=2)),
        ("focus:patch=8,sigma=0", noises.Focus(patch=8, sigma=0)),
        ("resolution:factors=1+2+4", noises.Resolution((1, 2, 4))),
        ("perlin:frequency=3", noises.Perlin(frequency=3)),
        ("rotation:degrees=30,edges=repeat", noises.Rotation(30, "repeat")),
        ("translation-walk:step=2,edges=repeat", noises.TranslationWalk(edges="repeat", step=2)),
        ("gray", Gray()),
        ("gray:sd=0.04", Gray(sd=(0.04,))),
        ("gray:sd=0+0.16,sigma=3,side=190", Gray((0.0, 0.16), (3.0,), 190)),
    ],
)
def test_noises_are_made_by_name_and_options(text, noise):
    assert noises.make_noise(text) == noise
    assert all(char.isalnum() or char in "_.-" for char in RecordingConfig(noise=text, protocol="persistent").name)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Oclusion", "noise is 'Oclusion', known are focus, .*: did you mean 'occlusion'"),
        ("focus:sgima=2", "noise is 'focus:sgima=2', focus has no option 'sgima': use patch or sigma"),
        ("focus:", "focus has no option ''"),
        ("focus:sigma", "noise is 'focus:sigma', '' is not a value: give one such as 0.5"),
        ("focus:sigma=two", "'two' is not a value: give one such as 0.5"),
        ("focus:sigma=nan", "sigma is nan: give a number from 0 to 32"),
        ("perlin:frequency=1.5", "'1.5' is not a value: give one such as 5"),
        ("resolution:factors=2,4", "resolution has no option '4': use factors"),
        ("resolution:factors=2x", "'2x' is not a value: give one such as 2\\+4"),
        ("resolution:factors=0+2", "factors are"),
        ("translation:edges=mirror", "edges is 'mirror': give reflect or repeat"),
        ("rotation:edges=", "edges is ''"),
        ("occlusion:patch=33", "patch is 33.0: give a number from 0 to 32"),
        ("focus:patch=-1", "patch is -1"),
        ("perlin:cover=40", "cover is 40.0: give a number from 0 to 1"),
        ("perlin:frequency=0", "frequency is 0: give at least 1"),
        ("translation:reach=64", "reach is 64"),
        ("translation-walk:step=-1", "step is -1"),
        ("rotation:degrees=-60", "degrees is -60"),
        ("gray:sd=2", "sd is 2.0: give a number from 0 to 1"),
        ("gray:sigma=40", "sigma is 40.0: give a number from 0 to 32"),
        ("gray:sigma=", "'' is not a value: give one such as 0.0"),
        ("gray:side=0", "side is 0: give at least 1"),
    ],
)
def test_noises_and_options_that_do_not_exist_are_named(text, sentence):
    refused(sentence, noises.make_noise, text)


def test_a_hand_made_image_through_each_noise(monkeypatch):
    """With draws that are set by hand: shifts and positions of 1 pixel, a quarter turn, a field from 1 to 16."""
    ones = lambda shape, *_: torch.ones(shape, dtype=torch.long)  # noqa: E731
    monkeypatch.setattr(noises, "whole", ones)
    monkeypatch.setattr("cascaded.data.sampling.whole", ones)
    monkeypatch.setattr(noises, "uniform", lambda shape, *_: torch.full(shape, math.pi / 2))
    monkeypatch.setattr(noises, "perlin", lambda shape, *_: torch.arange(1.0, 17.0).view(4, 4).expand(*shape, 4, 4))

    def through(noise, image):
        film = noise.film(torch.tensor(image).float()[None, None], 2, seeded())
        assert torch.equal(film[0], film[1])
        return film[0, 0, 0]

    def is_close(found, expected):
        torch.testing.assert_close(found, torch.tensor(expected).float(), atol=1e-4, rtol=0)

    three = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    is_close(through(noises.Translation(), three), [[4, 5, 4], [7, 8, 7], [4, 5, 4]])
    is_close(through(noises.Translation(edges="repeat"), three), [[4, 5, 5], [7, 8, 8], [7, 8, 8]])
    is_close(through(noises.Rotation(), three), [[2, 5, 8], [1, 4, 7], [0, 3, 6]])
    four = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
    tiled = [[3.5, 3.5, 5.5, 5.5], [3.5, 3.5, 5.5, 5.5], [11.5, 11.5, 13.5, 13.5], [11.5, 11.5, 13.5, 13.5]]
    is_close(through(noises.Resolution((1, 2)), four), tiled)  # the second factor
    is_close(through(noises.Resolution(), four), [[8.5] * 4] * 4)
    is_close(through(noises.Occlusion(), four), [[1, 2, 3, 4], [5, 0, 0, 8], [9, 0, 0, 12], [13, 14, 15, 16]])
    is_close(through(noises.Perlin(), four), [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0], [0, 0, 0, 0]])  # 6 of 16
    spot = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    blurred = [[0.4685, 0.1080, 0, 0], [0.1080, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]  # .6845^2, .6845 x .1577
    is_close(through(noises.Focus(), spot), blurred)  # sharp at 1, 1


# --- focus, occlusion


@given(size=st.tuples(st.integers(1, 12), st.integers(1, 12)), sigma=st.floats(0.1, 6), seed=st.integers(0, 2**16))
def test_the_blur_is_a_correlation_with_the_gaussian_over_each_pixel(size, sigma, seed):
    image = some(1, 1, *size, seed=seed, dtype=torch.float64)[0, 0]
    radius = max(0, math.ceil(3 * sigma - 0.5))
    weights = np.diff(scipy.stats.norm.cdf(np.arange(-radius, radius + 2) - 0.5, scale=sigma))
    reference = image.numpy()
    for axis in (0, 1):
        reference = scipy.ndimage.correlate1d(reference, weights / weights.sum(), axis, mode="mirror")
    np.testing.assert_allclose(blur(image, sigma).numpy(), reference, atol=1e-12)


def test_half_a_pixel_is_the_kernel_of_the_reference_code_and_no_blur_at_all_is_the_image():
    assert torch.equal(blur(some(), 0), some())
    spot = torch.zeros(5, 5, dtype=torch.float64)
    spot[2, 2] = 1
    one = np.diff(scipy.stats.norm.cdf(np.linspace(-3, 3, 4)))  # as published: three bins over six deviations
    np.testing.assert_allclose(blur(spot, 0.5)[1:4, 1:4], np.outer(one, one) / one.sum() ** 2, atol=1e-12)
    np.testing.assert_allclose(one / one.sum(), [0.1577, 0.6845, 0.1577], atol=1e-4)


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 16), (8, 8, 4), (9, 20, 4), (64, 64, 32)])
def test_focus_is_sharp_in_one_square_and_blurred_elsewhere(height, width, size):
    images = some(2, 3, height, width)
    blurred = blur(images, max(0.5, min(height, width) / 64))
    for frame in noises.Focus().film(images, 3, seeded()):
        sharp = (frame == images).all(1)
        assert all(is_square(mask, size) for mask in sharp)
        outside = ~sharp[:, None].expand_as(frame)
        assert torch.equal(frame[outside], blurred[outside])


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 16), (8, 8, 4), (9, 20, 4)])
def test_occlusion_covers_one_square_and_nothing_else(height, width, size):
    images = some(2, 3, height, width)
    for frame in noises.Occlusion().film(images, 3, seeded()):
        covered = (frame == 0).all(1)
        assert all(is_square(mask, size) for mask in covered)
        outside = ~covered[:, None].expand_as(frame)
        assert torch.equal(frame[outside], images[outside])


def test_patches_are_at_every_place_that_fits():
    film = noises.Occlusion().film(torch.ones(50, 1, 4, 6), 40, seeded()).flatten(0, 1).squeeze(1)
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
    film = noises.Perlin(cover=cover).film(torch.ones(2, 3, height, width), 2, seeded(seed))
    assert ((film == 0).sum(dim=(-2, -1)) == round(cover * height * width)).all()


def test_perlin_leaves_the_other_60_per_cent_alone_in_all_channels():
    images = some(4) + 3
    frame = noises.Perlin()(images, seeded())
    lost = (frame == 0).all(1, keepdim=True).expand_as(frame)
    assert (lost.sum(dim=(-2, -1)) == 410).all()  # of 1024
    assert torch.equal(frame[~lost], images[~lost])


def test_the_highest_pixels_are_ranked_even_where_they_are_equal():
    field = torch.tensor([[[3.0, 1.0], [2.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    assert highest(field, 2)[0].tolist() == [[True, False], [False, True]]
    assert highest(field, 2)[1].sum() == 2


def test_blots_are_larger_than_a_pixel():
    """Gradient noise is smooth: a neighbor is mostly covered alike, which is not so of pixels drawn one by one."""
    lost = noises.Perlin()(torch.ones(50, 1, 32, 32), seeded()) == 0
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


@pytest.mark.parametrize("factors", [(2, 4), (1, 2, 4)])
def test_resolution_draws_its_factors_equally_often(factors):
    refused("factors are", noises.Resolution, factors=())
    images = some(1, 1, 8, 8).expand(20, 1, 8, 8)
    film = noises.Resolution(factors).film(images, 60, seeded())
    counts = [(film == tiles(images, factor)).flatten(2).all(2).sum() for factor in factors]
    assert sum(counts) == 1200
    assert all(abs(count - 1200 / len(factors)) < 80 for count in counts)


# --- translation


def test_positions_are_uniform_and_those_of_consecutive_frames_are_independent():
    down, right = noises.Translation().positions(torch.zeros(17 * 17 * 40, 1, 32, 32), 2, seeded())
    assert down.unique().tolist() == right.unique().tolist() == list(range(-8, 9))
    for first, second in ((down[0], down[1]), (right[0], right[1]), (down[0], right[0])):
        pairs = torch.bincount((first + 8) * 17 + second + 8, minlength=289).double()
        assert pairs.sum() == 289 * 40
        chi2 = ((pairs - 40) ** 2 / 40).sum().item()  # 288 degrees of freedom if uniform and independent
        assert scipy.stats.chi2.sf(chi2, 288) > 1e-3


@pytest.mark.parametrize(("side", "reach", "step"), [(32, 8, 1), (8, 2, 1), (224, 56, 7), (64, 16, 2)])
def test_a_walk_stays_in_reach_and_takes_steps_of_its_size(side, reach, step):
    walk = noises.TranslationWalk().positions(torch.zeros(20, 1, side, side), 300, seeded())
    moves = walk.diff(dim=1).abs()
    assert walk.abs().max() == reach
    assert moves.max() == step
    inside = walk[:, :-1].abs() <= reach - step
    assert (moves[inside] == step).all()


def test_every_frame_of_a_walk_is_equally_likely_anywhere():
    each = 2000
    walk = noises.TranslationWalk().positions(torch.zeros(5 * each, 1, 8, 8), 12, seeded())
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
        assert noises.folded(torch.tensor(free), reach).item() == here


@pytest.mark.parametrize("kind", [noises.Translation, noises.TranslationWalk])
@pytest.mark.parametrize(("edges", "mode"), [("reflect", "reflect"), ("repeat", "replicate")])
def test_translation_is_a_slice_of_the_continued_image(kind, edges, mode):
    images, noise = some(3), kind(edges=edges)
    padded = F.pad(images, (8, 8, 8, 8), mode=mode)
    film, positions = noise.film(images, 4, seeded(2)), noise.positions(images, 4, seeded(2))
    for t in range(4):
        for b in range(3):
            down, right = (positions[:, t, b] + 8).tolist()
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


@given(size=st.tuples(st.integers(2, 12), st.integers(2, 12)), degrees=st.floats(-60, 60), seed=st.integers(0, 2**16))
@pytest.mark.parametrize(("edges", "mode"), [("reflect", "mirror"), ("repeat", "nearest")])
def test_a_turn_is_scipys(size, degrees, seed, edges, mode):
    image = some(1, 1, *size, seed=seed, dtype=torch.float64)
    reference = scipy.ndimage.rotate(image[0, 0].numpy(), degrees, reshape=False, order=1, mode=mode)
    turned = turn(image, torch.tensor([math.radians(degrees)], dtype=torch.float64), edges)
    np.testing.assert_allclose(turned[0, 0].numpy(), reference, atol=1e-9)


def test_what_is_outside_is_reflected_unless_it_is_to_be_repeated():
    assert (noises.Rotation().edges, noises.Translation().edges) == ("reflect", "reflect")
    images, angle = some(1), torch.tensor([math.radians(50)])
    for edges in ("reflect", "repeat"):
        film = noises.Rotation(edges=edges).film(images, 1, seeded())
        drawn = uniform((1, 1), -math.radians(60), math.radians(60), seeded(), CPU).flatten()
        torch.testing.assert_close(film[0], turn(images, drawn, edges))
    assert not torch.allclose(turn(images, angle, "reflect"), turn(images, angle, "repeat"))


def test_angles_reach_sixty_degrees_either_way_and_no_further():
    ramp = torch.linspace(0, 1, 33).expand(1000, 1, 33, 33)  # at the center, its slope tells the angle
    film = noises.Rotation()(ramp, seeded())[:, 0]
    right, down = film[:, 16, 17] - film[:, 16, 15], film[:, 17, 16] - film[:, 15, 16]
    degrees = torch.rad2deg(torch.atan2(-down, right))
    assert -60.01 < degrees.min() < -59
    assert 59 < degrees.max() < 60.01
    assert abs(degrees.mean()) < 4


# --- gray


def rgb(batch=3, height=32, width=32, seed=1):
    """Pixels from 0 to 1."""
    return torch.rand(batch, 3, height, width, generator=seeded(seed))


def test_gray_is_the_luminance_in_every_channel():
    images = rgb()
    film = Gray().film(images, 2, seeded())
    expected = (images * torch.tensor(LUMINANCE).view(3, 1, 1)).sum(1, keepdim=True)
    torch.testing.assert_close(film, expected.expand(2, 3, 3, 32, 32))
    assert torch.equal(gray(images[:, :1]), images[:, :1])
    refused("images have 2 channels, gray is made of 1 or 3: give RGB images", gray, images[:, :2])


def test_pixel_noise_has_its_standard_deviation_and_is_the_same_in_all_channels():
    images = torch.full((4, 3, 64, 64), 0.5)
    film = Gray(sd=(0.04,)).film(images, 3, seeded())
    assert torch.equal(film[:, :, 0], film[:, :, 2])
    assert film[:, :, 0].std(correction=0) == pytest.approx(0.04, rel=0.02)
    assert film[:, :, 0].mean() == pytest.approx(0.5, abs=0.002)
    assert not torch.equal(film[0], film[1])
    assert Gray(sd=(1.0,)).film(images, 1, seeded()).aminmax() == (0, 1)


@pytest.mark.parametrize(("side", "size", "pixels"), [(32, 32, 3.0), (190, 32, 3 * 32 / 190), (32, 64, 6.0)])
def test_sigma_is_in_pixels_of_an_image_with_that_side(side, size, pixels):
    images = rgb(height=size, width=size)
    film = Gray(sigma=(3.0,), side=side).film(images, 1, seeded())
    torch.testing.assert_close(film[0, :, :1], blur(gray(images), pixels))


def test_of_several_levels_every_frame_has_one():
    images = rgb(1).expand(200, -1, -1, -1)
    levels = [Gray(sigma=(sigma,)).film(images[:1], 1, seeded())[0, 0] for sigma in (0.0, 1.0, 3.0)]
    film = Gray(sigma=(0.0, 1.0, 3.0)).film(images, 2, seeded()).flatten(0, 1)
    counts = [sum(torch.equal(frame, level) for frame in film) for level in levels]
    assert sum(counts) == 400
    assert min(counts) > 90


def test_as_an_augmentation_it_comes_before_normalizing():
    images, mean, std = (255 * rgb()).byte(), [0.5, 0.4, 0.3], [0.2, 0.3, 0.25]
    augment = Augment(pad=0, flip=False, cutout=0, noise=Gray(sd=(0.1,)))
    expected = normalize(Gray(sd=(0.1,))(images.float() / 255, seeded()), mean, std)
    torch.testing.assert_close(augment(images, mean, std, seeded()), expected)


@pytest.mark.parametrize("images", [torch.full((1, 3, 8, 8), 1.5), torch.full((1, 3, 8, 8), -0.5)])
def test_noise_on_pixels_refuses_normalized_images(images):
    refused("it takes floats from 0 to 1: divide bytes by 255", Gray(), images, seeded())
