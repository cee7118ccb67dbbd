import numpy as np
import pytest
import torch

from cascaded.data.sheet import GAP, LETTERS, contact_sheet, shortened
from cascaded.errors import InputError


def some(columns, channels=3, height=8, width=8):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 200, (columns, channels, height, width), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("channels", [1, 3])
def test_every_image_is_on_the_sheet_pixel_for_pixel(channels):
    images, scale, columns = some(3, channels, 16, 8), 4, 3
    sheet = contact_sheet([("some", images)])
    pixels, step = torch.tensor(np.asarray(sheet)).permute(2, 0, 1), 8 * scale + GAP
    row = pixels[:, GAP:-GAP, -columns * step :]
    cells = torch.stack([row[..., i * step :][..., : 8 * scale] for i in range(columns)])
    enlarged = images.expand(3, 3, 16, 8).repeat_interleave(scale, -1).repeat_interleave(scale, -2)
    assert torch.equal(cells, enlarged)


def test_the_rest_is_white():
    sheet = np.asarray(contact_sheet([("", some(2)), ("", some(1))]))
    height, width = sheet.shape[:2]
    assert height == 2 * 64 + 3 * GAP
    assert (sheet[:GAP] == 255).all()
    assert (sheet[:, -GAP:] == 255).all()
    assert (sheet[-64 - GAP :, width - 64 - GAP :] == 255).all()  # the shorter row has no second image


@pytest.mark.parametrize(("side", "drawn"), [(8, 64), (32, 64), (28, 56), (224, 224)])
def test_a_cell_is_about_64_pixels_unless_its_image_is_larger(side, drawn):
    assert contact_sheet([("", some(1, height=side, width=side))]).height == drawn + 2 * GAP


def test_a_label_is_written_at_the_left():
    blank, labeled = (np.asarray(contact_sheet([(label, some(1))])) for label in ("", "focus"))
    assert labeled.shape[1] > blank.shape[1]
    assert labeled[:, :-80].min() < 128


def test_long_labels_end_in_an_ellipsis_and_fit():
    assert shortened("focus") == "focus"
    short = shortened("a very long name " * 9)
    assert short.startswith("a very long name")
    assert short.endswith("…")
    assert len(short) <= LETTERS


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "0 rows"),
        ([("x", some(1)[0])], "row 'x' has shape"),
        ([("x", some(0))], "row 'x' has shape"),
        ([("x", some(1, channels=2))], "1 or 3 channels"),
        ([("x", some(1) / 255)], "give bytes"),
    ],
)
def test_what_cannot_be_drawn_is_named(rows, sentence):
    with pytest.raises(InputError, match=sentence):
        contact_sheet(rows)
