"""Encoded bytes to pixels, each claim against Pillow or against the pixels that were encoded."""

import io
import warnings

import numpy as np
import pytest
import scipy.stats
from PIL import Image, PngImagePlugin

from cascaded.data.decode import UnreadableError, decode
from tests.pictures import encoded, evil_pickle, picture


@pytest.mark.parametrize(("form", "options"), [("PNG", {}), ("BMP", {}), ("WEBP", {"lossless": True})])
def test_lossless_images_come_back_to_the_pixel(form, options):
    pixels = picture(1, size=(9, 5))
    decoded = decode(encoded(pixels, form, **options))
    np.testing.assert_array_equal(decoded.pixels, pixels.transpose(2, 0, 1))
    assert not decoded.gray


def test_gray_images_are_known_as_such():
    pixels = picture(1, gray=True)
    decoded = decode(encoded(pixels))
    assert decoded.gray
    assert all((channel == pixels).all() for channel in decoded.pixels)


def test_sixteen_bits_are_scaled_not_clipped_whatever_pillow_makes_of_them(monkeypatch):
    deep = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    for form in ("PNG", "PPM", "TIFF"):
        for mode in ("I", "I;16"):  # of a PNG, before Pillow 10.3 and since
            monkeypatch.setitem(PngImagePlugin._MODES, (16, 0), (mode, "I;16B"))
            assert decode(encoded(deep, form)).pixels[0].tolist() == [[0, 1, 128, 255]]


@pytest.mark.parametrize(("form", "kind"), [("TIFF", np.float32), ("PPM", np.float32), ("TIFF", np.int32)])
@pytest.mark.parametrize("most", [1, 255, 65535, 2**31 - 1])
def test_fractions_and_whole_numbers_of_32_bits_have_no_defined_white(form, kind, most):
    with pytest.raises(UnreadableError, match="no defined white: save it with 8 or 16 bits"):
        decode(encoded(np.array([[0, most]], dtype=kind), form))


def test_palettes_and_transparency_become_colors():
    pixels = np.full((4, 4, 3), (255, 0, 0), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert("P").save(file, "PNG", transparency=b"\x80")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(decode(file.getvalue()).pixels, pixels.transpose(2, 0, 1))


def test_a_camera_held_sideways_is_turned_upright():
    pixels = picture(2, size=(6, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by a quarter, clockwise
    turned = decode(encoded(pixels, exif=exif)).pixels
    np.testing.assert_array_equal(turned.transpose(1, 2, 0), np.rot90(pixels, -1))


def test_resizing_keeps_the_shape_of_things_and_cuts_the_longer_side():
    pixels = np.zeros((8, 24, 3), dtype=np.uint8)
    pixels[:, 8:16] = 200  # the middle third is what is left, its edge smoothed
    small = decode(encoded(pixels), 4, "resize").pixels
    assert small.shape == (3, 4, 4)
    assert (small[:, :, 1:3] == 200).all()
    assert (small > 150).all()


def test_random_crops_follow_from_the_row_reach_every_position_and_enlarge_what_is_too_small():
    pixels = picture(3, size=(10, 8))
    slices = {(top, left): pixels[top : top + 4, left : left + 4] for top in range(5) for left in range(7)}
    crops = [decode(encoded(pixels), 4, "random-crop", row).pixels.transpose(1, 2, 0) for row in range(700)]
    found = [next(place for place, each in slices.items() if np.array_equal(each, crop)) for crop in crops]
    counts = np.array([found.count(place) for place in slices])
    assert scipy.stats.chisquare(counts).pvalue > 1e-3  # 35 positions, equally likely
    assert np.array_equal(decode(encoded(pixels), 4, "random-crop", 9).pixels.transpose(1, 2, 0), crops[9])
    assert decode(encoded(picture(size=(3, 9))), 8, "random-crop").pixels.shape == (3, 8, 8)


@pytest.mark.parametrize("damage", [lambda good: b"", lambda good: b"hello", lambda good: good[: len(good) // 2]])
def test_damaged_bytes_are_unreadable(damage):
    with pytest.raises(UnreadableError):
        decode(damage(encoded(picture(size=(64, 64)))))


def test_a_pickle_is_not_an_image_and_does_not_run(tmp_path):
    with pytest.raises(UnreadableError, match="not an image"):
        decode(evil_pickle(tmp_path / "marker"))
    assert not (tmp_path / "marker").exists()
