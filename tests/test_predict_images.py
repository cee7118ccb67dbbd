"""Images of the user: how they are read and found, and where figures are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from cascaded.data.decode import decode
from cascaded.errors import InputError
from cascaded.runtime.images import SOFTWARE, UserImage, figure_files, find_images, is_figure, on_white, read_image
from tests.pictures import encoded, picture


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "photo.png").write_bytes(encoded(picture(size=(40, 30))))
    return tmp_path / "photo.png"


@pytest.mark.parametrize("size", [(1, 1), (32, 32), (50, 20), (7, 90)])
def test_an_image_is_resized_as_training_images_are(tmp_path, size):
    file = tmp_path / "photo.png"
    file.write_bytes(encoded(picture(size=size)))
    resized = read_image(file).resize((3, 32, 32))
    np.testing.assert_array_equal(resized.transpose(2, 0, 1), decode(file.read_bytes(), 32).pixels)


def test_colors_become_gray_for_a_network_of_one_channel(tmp_path):
    image = UserImage(tmp_path, np.full((5, 5, 3), (200, 100, 50), dtype=np.uint8))
    assert np.unique(image.resize((1, 8, 8))).tolist() == [124]  # 0.299 red, 0.587 green, 0.114 blue
    with pytest.raises(InputError, match="expects images with 4 channels"):
        image.resize((4, 8, 8))


def test_an_image_is_rotated_by_its_exif_orientation(tmp_path):
    rotated = Image.Exif()
    rotated[0x0112] = 6  # a quarter to the right
    (tmp_path / "photo.jpg").write_bytes(encoded(picture(size=(40, 20)), "JPEG", exif=rotated))
    assert read_image(tmp_path / "photo.jpg").pixels.shape == (40, 20, 3)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_pixels_are_white(tmp_path, mode):
    image = Image.new("RGBA", (4, 2), (0, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 2, 2))
    image.convert(mode).save(tmp_path / "logo.png")
    pixels = read_image(tmp_path / "logo.png").pixels
    assert (pixels[:, :2] == 255).all()
    assert (pixels[:, 2:] == 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_half_transparent_pixels_are_mixed_with_white(seed, width, height):
    rgba = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    colors, alpha = rgba[..., :3].astype(float), rgba[..., 3:] / 255
    np.testing.assert_allclose(on_white(rgba[..., :3], encoded(rgba)), alpha * colors + (1 - alpha) * 255, atol=1)


def test_of_an_animation_the_first_frame_is_read(tmp_path):
    red, blue = (Image.new("RGB", (4, 4), color) for color in ("red", "blue"))
    red.save(tmp_path / "film.gif", save_all=True, append_images=[blue])
    assert read_image(tmp_path / "film.gif").pixels[0, 0].tolist() == [255, 0, 0]


def test_a_folder_gives_its_images_and_nothing_else(tmp_path):
    for name in ("b.png", "a.JPG", ".hidden.png", "notes.txt", "weights.npy", "below/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encoded(picture()))
    files = find_images([tmp_path, tmp_path / "b.png", tmp_path / "notes.txt"])
    assert [file.name for file in files] == ["a.JPG", "b.png", "notes.txt"]


def test_figures_are_overwritten_and_other_files_are_not(tmp_path, photo):
    target = figure_files([photo], tmp_path)[photo]
    assert target == tmp_path / "photo-prediction.png"
    metadata = PngInfo()
    metadata.add_text("Software", SOFTWARE)
    Image.new("RGB", (4, 4)).save(target, pnginfo=metadata)
    assert is_figure(target)
    assert figure_files([photo], tmp_path) == {photo: target}
    assert find_images([tmp_path]) == [photo]
    with pytest.raises(InputError, match=r"photo-prediction\.png is one of the images"):
        figure_files([photo, target], tmp_path)
    target.write_bytes(photo.read_bytes())
    with pytest.raises(InputError, match=r"photo-prediction\.png exists and is not a figure"):
        figure_files([photo], tmp_path)


def test_images_with_equal_names_have_figures_of_their_own(tmp_path):
    names = ("a/dog.png", "b/Dog.jpg", "dog-2.png", "x" * 200 + "a.png", "x" * 200 + "b.png")
    targets = figure_files([tmp_path / name for name in names], tmp_path)
    assert len({file.name.casefold() for file in targets.values()}) == 5
    assert max(len(file.name) for file in targets.values()) < 80


@pytest.mark.parametrize("content", [b"not an image", b"P6 10000 9000 255\n"])
def test_a_file_that_is_no_image_or_too_large_is_refused_in_one_sentence(content, tmp_path):
    (tmp_path / "strange.png").write_bytes(content)
    with pytest.raises(InputError, match=r"strange\.png cannot be read as an image .*of at most 89 million pixels"):
        read_image(tmp_path / "strange.png")


def test_32_bit_gray_is_refused_in_one_sentence(tmp_path):
    Image.new("F", (4, 4), 1.0).save(tmp_path / "depth.tif")
    with pytest.raises(InputError, match=r"depth\.tif cannot be read .*save it with 8 or 16 bits"):
        read_image(tmp_path / "depth.tif")


def test_a_very_large_file_is_not_read_into_memory(tmp_path):
    with (tmp_path / "film.mp4").open("wb") as opened:
        opened.truncate(2 * 10**9)  # a sparse file
    with pytest.raises(InputError, match="more than 1000 million bytes"):
        read_image(tmp_path / "film.mp4")
