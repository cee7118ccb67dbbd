"""Galleries: the images that were fastest and slowest, and no others."""

import numpy as np
import pytest
import torch
from PIL import Image

from cascaded.data import load
from cascaded.data.sheet import contact_sheet
from cascaded.errors import InputError
from cascaded.results.galleries import draw_gallery, ends_file, read_ends, small
from cascaded.results.subjects import find_subjects
from tests.made_traces import made_run


def result(rows):
    ends = {"fastest": [{"index": row} for row in rows], "slowest": [{"index": row} for row in rows[::-1]]}
    return {"gallery": {"by class": {"3": ends}, "overall": ends}}


def test_a_gallery_shows_the_rows_that_were_named(tmp_path):
    who = find_subjects([made_run(tmp_path / "0")])[0]
    images = load("digits", "test")
    rows = images.indices[[40, 7, 300]].tolist()
    file = draw_gallery(who, "digits-test", "test", images.fingerprint(), result(rows))
    assert file == tmp_path / "0" / "galleries" / "digits-test.png"
    shown = images.images[[40, 7, 300]]
    expected = contact_sheet([("3, fastest", shown), ("3, slowest", shown.flip(0))])
    assert np.array_equal(np.asarray(Image.open(file)), np.asarray(expected))
    ends = read_ends(ends_file(who, "digits-test"))
    assert np.array_equal(ends["fastest"], shown.numpy())
    assert np.array_equal(ends["slowest"], shown.flip(0).numpy())


def test_large_images_are_kept_as_thumbnails():
    images = torch.arange(2 * 3 * 224 * 224).reshape(2, 3, 224, 224).remainder(251).to(torch.uint8)
    made = small(images)
    assert made.shape == (2, 3, 56, 56)
    assert made[1, 2, 3, 4] == images[1, 2, 12:16, 16:20].float().mean().round()
    assert torch.equal(small(made), made)


def test_ends_that_were_not_kept_or_are_damaged_are_none(tmp_path):
    assert read_ends(tmp_path / "none.safetensors") == {}
    (tmp_path / "odd.safetensors").write_bytes(b"odd")
    assert read_ends(tmp_path / "odd.safetensors") == {}


def test_held_out_images_are_rows_of_the_training_images(tmp_path):
    who = find_subjects([made_run(tmp_path / "0")])[0]
    images = load("digits", "train")
    shown = result(images.indices[:2].tolist())
    assert draw_gallery(who, "digits-validation", "validation", images.fingerprint(), shown).exists()


def test_images_that_are_not_in_the_data_any_more_are_refused(tmp_path):
    who = find_subjects([made_run(tmp_path / "0")])[0]
    own = load("digits", "test").fingerprint()
    with pytest.raises(InputError, match="no image of t is in digits test: the data has changed, record it again"):
        draw_gallery(who, "t", "test", own, result([10**6]))
    with pytest.raises(InputError, match=f"t is of images 000000000000, digits test holds {own[:12]}: bring them back"):
        draw_gallery(who, "t", "test", "0" * 64, result([0]))
