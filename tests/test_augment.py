import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cascaded.data.augment import Augment, cut_out, flip, normalize, reflect_crop, resized_crop
from cascaded.data.noise import NOISES, Occlusion, Perlin
from tests.refused import refused

MEAN, STD = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.25, 0.3])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some_bytes(batch=4, channels=3, height=32, width=32, seed=1):
    return torch.randint(0, 256, (batch, channels, height, width), dtype=torch.uint8, generator=seeded(seed))


def all_crops(image, pad):
    """Every crop there is, from a padded copy: the slow obvious way."""
    height, width = image.shape[-2:]
    padded = F.pad(image[None].double(), (pad,) * 4, mode="reflect")[0].to(image.dtype)
    places = [(y, x) for y in range(2 * pad + 1) for x in range(2 * pad + 1)]
    return {place: padded[:, place[0] :, place[1] :][:, :height, :width] for place in places}


@given(
    size=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    channels=st.integers(1, 4),
    dtype=st.sampled_from([torch.uint8, torch.float32, torch.float64, torch.int64]),
    layout=st.sampled_from([torch.contiguous_format, torch.channels_last]),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_a_crop_is_a_slice_of_the_padded_image(size, channels, dtype, layout, seed, data):
    pad = data.draw(st.integers(0, min(size) - 1))
    images = some_bytes(3, channels, *size, seed=seed).to(dtype).contiguous(memory_format=layout)
    crops = reflect_crop(images, pad, seeded(seed))
    assert crops.dtype == dtype
    for image, crop in zip(images, crops, strict=True):
        assert any(torch.equal(crop, reference) for reference in all_crops(image, pad).values())


def test_every_place_is_cropped_equally_often():
    pad, each = 2, 400
    image = torch.arange(64).view(1, 8, 8)
    crops = reflect_crop(image.expand(25 * each, 1, 8, 8), pad, seeded())
    counts = [(crops == reference).all(-1).all(-1).sum().item() for reference in all_crops(image, pad).values()]
    assert len(counts) == (2 * pad + 1) ** 2
    assert sum(counts) == 25 * each
    assert all(abs(count - each) < 5 * each**0.5 for count in counts)


def test_half_of_the_images_are_mirrored():
    images = some_bytes(4000, 1, 3, 4)
    flipped = flip(images, seeded())
    mirrored = (flipped == images.flip(-1)).flatten(1).all(1)
    untouched = (flipped == images).flatten(1).all(1)
    assert (mirrored | untouched).all()
    assert abs(mirrored.sum() - 2000) < 200


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_bytes_and_floats_are_normalized_alike(dtype):
    images = some_bytes()
    normal = normalize(images, MEAN, STD)
    torch.testing.assert_close(normal, (images / 255 - MEAN.view(3, 1, 1)) / STD.view(3, 1, 1), atol=1e-5, rtol=1e-5)
    again = normalize((images / 255).to(dtype), MEAN.tolist(), STD.tolist())
    assert again.dtype == torch.float32
    torch.testing.assert_close(again, normal, atol=5e-3 if dtype == torch.float16 else 1e-5, rtol=1e-5)


@given(size=st.tuples(st.integers(1, 9), st.integers(1, 9)), seed=st.integers(0, 2**16), data=st.data())
def test_a_cut_is_one_square_inside_the_image(size, seed, data):
    side = data.draw(st.integers(0, min(size)))
    images = torch.rand(3, 2, *size, generator=seeded(seed)) + 1
    cut = cut_out(images, side, seeded(seed))
    missing = cut == 0
    assert torch.equal(cut[~missing], images[~missing])
    for image in missing:
        assert torch.equal(image[0], image[1])
        assert image[0].sum() == side**2
        assert image[0].any(0).sum() == image[0].any(1).sum() == side


def test_all_together_is_one_after_the_other():
    images, generator = some_bytes(), seeded(5)
    slow = flip(reflect_crop(images, 4, generator), generator)
    slow = cut_out(normalize(slow, MEAN, STD), 8, generator)
    assert torch.equal(Augment()(images, MEAN, STD, seeded(5)), slow)


@pytest.mark.parametrize(("noise", "masked"), [(Occlusion(), 16), (Perlin(), 26), (None, 16)])
def test_what_is_masked_or_cut_is_zero_after_normalizing(noise, masked):
    images = torch.full((2, 3, 8, 8), 255, dtype=torch.uint8)
    augmented = Augment(pad=0, cutout=0 if noise else 4, noise=noise)(images, MEAN, STD, seeded())
    white = normalize(images[:1, :, :1, :1], MEAN, STD).expand_as(augmented)
    assert ((augmented == 0).sum(dim=(-2, -1)) == masked).all()
    assert torch.equal(augmented[augmented != 0], white[augmented != 0])


def test_noise_comes_after_normalizing():
    images = some_bytes()
    plain = normalize(images, MEAN, STD)
    for noise in (None, *NOISES.values()):
        expected = noise(plain, seeded(3)) if noise else plain
        assert torch.equal(Augment(0, False, 0, noise=noise)(images, MEAN, STD, seeded(3)), expected)


def test_a_resized_crop_has_the_drawn_area_and_shape_and_lies_in_the_image():
    """On the ramps x and y, the slopes of the crop are its width and its height."""
    ramp = (2 * torch.arange(65) + 1) / 65 - 1  # of the centers of pixels; the image is -1..1
    images = torch.stack([ramp.expand(65, 65), ramp[:, None].expand(65, 65)]).expand(4000, 2, 65, 65)
    crops = resized_crop(images, 0.08, seeded())
    width = (crops[:, 0, 32, 40] - crops[:, 0, 32, 24]) / (ramp[40] - ramp[24])
    height = (crops[:, 1, 40, 32] - crops[:, 1, 24, 32]) / (ramp[40] - ramp[24])
    left, top = crops[:, 0, 32, 32] - width, crops[:, 1, 32, 32] - height
    area, ratio = width * height, width / height
    assert 0.08 <= area.min() + 1e-4 < 0.09
    assert 0.98 < area.max() <= 1.0001
    assert abs(ratio.log().mean()) < 0.01
    assert 3 / 4 - 1e-3 < ratio.min() < ratio.max() < 4 / 3 + 1e-3
    for start, side in ((left, width), (top, height)):
        assert (start > -1.001).all()
        assert (start + 2 * side < 1.001).all()
    assert torch.equal(resized_crop(images[:5], 0.08, seeded()), resized_crop(images[:5], 0.08, seeded()))


def test_a_resized_crop_may_contain_the_border_and_without_one_the_center_is_left():
    """On a ramp that is 1 at the edges of the image itself, only the border has larger values."""
    ramp = ((2 * torch.arange(64) + 1) / 64 - 1) * 64 / 56
    images = ramp.expand(500, 1, 64, 64)
    crops = resized_crop(images, 0.08, seeded(), border=4)
    assert crops.shape == (500, 1, 56, 56)
    reach = crops.abs().amax(dim=(1, 2, 3))
    assert (reach > 1.01).sum() > 100
    assert reach.max() <= ramp.max()
    whole = resized_crop(images[:3], 1, seeded(), border=4)  # all of it: the border too
    assert torch.equal(whole[0], whole[1])
    assert whole.max() > 1.1
    images = some_bytes(height=20, width=20)
    augmented = Augment(0, False, 0, area=0.5, border=2)(images, MEAN, STD, seeded(3))
    assert torch.equal(augmented, resized_crop(normalize(images, MEAN, STD), 0.5, seeded(3), border=2))
    center = Augment(0, False, 0, border=2)(images, MEAN, STD, seeded())
    assert torch.equal(center, normalize(images, MEAN, STD)[..., 2:18, 2:18])


def test_every_image_has_its_own_draw_and_the_generator_is_the_only_source_of_randomness():
    images, before, state = some_bytes(1).expand(8, 3, 32, 32), some_bytes(1), torch.get_rng_state()
    first = Augment()(images, MEAN, STD, seeded(7))
    assert len(first.flatten(1).unique(dim=0)) == 8
    assert torch.equal(Augment()(images, MEAN, STD, seeded(7)), first)
    assert not torch.equal(Augment()(images, MEAN, STD, seeded(8)), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(images[:1], before)
    assert Augment()(images[:0], MEAN, STD, seeded()).shape == (0, 3, 32, 32)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: reflect_crop(x, 32, seeded()), "pad is 32, images are 32 x 32"),
        (lambda x: reflect_crop(x, -1, seeded()), "pad is -1"),
        (lambda x: cut_out(x / 255, 33, seeded()), "cutout is 33, images are 32 x 32"),
        (lambda x: cut_out(x / 255, -1, seeded()), "cutout is -1"),
        (lambda x: normalize(x, MEAN[:1], STD[:1]), "images have 3 channels"),
        (lambda x: normalize(x, MEAN, STD * 0), "std is"),
        (lambda x: normalize(x.long(), MEAN, STD), "images are torch.int64"),
        (lambda x: Augment(noise=Occlusion())(x.long(), MEAN, STD, seeded()), "images are torch.int64"),
    ],
)
def test_bad_input_is_named_in_a_sentence(call, sentence):
    refused(sentence, call, some_bytes())
