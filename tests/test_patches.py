"""Patches of photographs: from halves that do not overlap, without labels, and never empty."""

import numpy as np

from cascaded.data import load
from cascaded.data.embedded import CONTRAST, PATCHES, half, patch, patches, photographs


def test_patches_have_no_labels_and_are_of_the_size_of_cluttered_digits():
    for split, count in PATCHES.items():
        images = load("photographs", split)
        assert images.images.shape == (count, 1, 28, 28)
        assert images.classes == ()
        assert set(images.labels.tolist()) == {-1}
        assert images.indices.tolist() == list(range(count))


def test_every_patch_shows_something():
    for split in PATCHES:
        shades = load("photographs", split).images.float().flatten(1)
        assert (shades.std(dim=1) >= CONTRAST).all()
        assert len(shades.unique(dim=0)) == len(shades)


def test_the_halves_of_the_two_splits_make_up_the_photographs():
    for photograph in photographs():
        both = [np.asarray(half(photograph, split)) for split in ("validation", "test")]
        assert np.array_equal(np.concatenate(both, axis=1), np.asarray(photograph))


def test_patches_of_a_split_come_from_its_half():
    """With the other half black, nothing changes."""
    for split in PATCHES:
        shown = load("photographs", split).images[:6, 0].numpy()
        for number, pixels in enumerate(shown):
            photograph = photographs()[number % 2].copy()
            left = photograph.width // 2 if split == "validation" else 0
            photograph.paste(0, (left, 0, left + photograph.width // 2, photograph.height))
            draws = np.random.default_rng([0, list(PATCHES).index(split), number])
            assert np.array_equal(patch(half(photograph, split), draws), pixels)


def test_the_same_patches_are_cut_every_time():
    first, second = ([pixels.tobytes() for _, pixels, _ in patches("validation")] for _ in range(2))
    assert first == second
