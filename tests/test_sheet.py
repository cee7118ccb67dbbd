import numpy as np
import pytest
import torch
from PIL import ImageFont

from cascaded.data.sheet import GAP, LABEL, TEXT, contact_sheet, shortened
from cascaded.errors import InputError


def some(columns, channels=3, height=8, width=8):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 200, (columns, channels, height, width), dtype=torch.uint8, generator=generator)


def cells(sheet, columns, height, width, scale):
    """The images of a row, read back from the right end of a sheet in which that row is the longest."""
    pixels, step = torch.tensor(np.asarray(sheet)).permute(2, 0, 1), width * scale + GAP
    row = pixels[:, GAP : GAP + height * scale : scale, -columns * step :]
    return torch.stack([row[..., i * step :][..., : width * scale : scale] for i in range(columns)])


def test_every_image_is_on_the_sheet_pixel_for_pixel():
    images = some(3, height=6, width=8)
    sheet = contact_sheet([("some", images)], scale=5)
    assert torch.equal(cells(sheet, 3, 6, 8, 5), images)
    enlarged = torch.tensor(np.asarray(sheet))[GAP : GAP + 5, -GAP - 5 : -GAP]
    assert (enlarged == images[2, :, 0, -1]).all()


def test_grey_images_are_shown_grey():
    images = some(2, channels=1)
    sheet = contact_sheet([("grey", images)], scale=2)
    assert sheet.mode == "RGB"
    assert torch.equal(cells(sheet, 2, 8, 8, 2), images.expand(2, 3, 8, 8))


def test_the_rest_is_white():
    sheet = np.asarray(contact_sheet([("", some(2)), ("", some(1))], scale=3))
    height, width = sheet.shape[:2]
    assert height == 2 * 8 * 3 + 3 * GAP
    assert (sheet[:GAP] == 255).all()
    assert (sheet[:, -GAP:] == 255).all()
    assert (sheet[-8 * 3 - GAP :, width - 8 * 3 - GAP :] == 255).all()  # the shorter row has no second image


@pytest.mark.parametrize(("side", "drawn"), [(8, 64), (32, 64), (28, 56), (224, 224)])
def test_a_cell_is_about_64_pixels_unless_its_image_is_larger(side, drawn):
    assert contact_sheet([("", some(1, height=side, width=side))]).height == drawn + 2 * GAP


def test_a_label_is_written_at_the_left():
    blank, labelled = (np.asarray(contact_sheet([(label, some(1))])) for label in ("", "focus"))
    assert labelled.shape[1] > blank.shape[1]
    assert labelled[:, :-80].min() < 128


def test_long_labels_end_in_an_ellipsis_and_fit():
    font = ImageFont.load_default(TEXT)
    assert shortened("focus", font) == "focus"
    assert shortened("two\nlines", font) == "two lines"
    short = shortened("a very long name " * 9, font)
    assert short.endswith("…")
    assert short.startswith("a very long name")
    assert font.getlength(short) <= LABEL


@pytest.mark.parametrize(
    ("rows", "scale", "sentence"),
    [
        ([], None, "0 rows"),
        ([("x", some(1))], 0, "scale 0"),
        ([("x", some(1)[0])], None, "row 'x' has shape"),
        ([("x", some(0))], None, "row 'x' has shape"),
        ([("x", some(1, channels=2))], None, "1 channel"),
        ([("x", some(1) / 255)], None, "needs bytes"),
    ],
)
def test_what_cannot_be_drawn_is_named(rows, scale, sentence):
    with pytest.raises(InputError, match=sentence):
        contact_sheet(rows, scale)
