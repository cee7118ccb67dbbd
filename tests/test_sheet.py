import numpy as np
import pytest
import torch

from cascaded.data.sheet import GAP, contact_sheet
from tests.refused import refused


def some(columns, channels=3, height=8, width=8):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 200, (columns, channels, height, width), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "scale"), [(16, 8, 4), (32, 32, 2), (28, 28, 2), (224, 224, 1)])
def test_every_image_is_on_the_sheet_pixel_for_pixel_enlarged_to_about_64(channels, height, width, scale):
    images, columns = some(3, channels, height, width), 3
    sheet = np.asarray(contact_sheet([("some", images), ("", images[:1])]))
    pixels, step = torch.tensor(sheet).permute(2, 0, 1), width * scale + GAP
    row = pixels[:, GAP : GAP + height * scale, -columns * step :]
    cells = torch.stack([row[..., i * step :][..., : width * scale] for i in range(columns)])
    enlarged = images.expand(3, 3, height, width).repeat_interleave(scale, -1).repeat_interleave(scale, -2)
    assert torch.equal(cells, enlarged)
    assert (sheet[-height * scale - GAP :, -2 * step :] == 255).all()  # the shorter row has one image
    assert sheet[: GAP + height * scale, : -columns * step].min() < 128  # the label, at the left


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
    refused(sentence, contact_sheet, rows)
