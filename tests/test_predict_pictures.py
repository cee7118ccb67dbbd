"""One's own pictures: how they are read, which are found, and where their answers are drawn."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cascaded.data.decode import decode
from cascaded.errors import InputError
from cascaded.runtime.drawing import draw_answer
from cascaded.runtime.images import find_pictures, is_drawn, on_white, read_picture, targets
from cascaded.runtime.predict import Answer
from tests.pictures import encoded, picture

ANSWER = Answer(("cat", "dog"), np.array([[0.6, 0.4], [0.1, 0.9]], dtype=np.float32))


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "photo.png").write_bytes(encoded(picture(size=(40, 30))))
    return tmp_path / "photo.png"


@pytest.mark.parametrize("size", [(1, 1), (32, 32), (50, 20), (7, 90)])
def test_a_picture_is_seen_as_the_library_loads_images(tmp_path, size):
    file = tmp_path / "photo.png"
    file.write_bytes(encoded(picture(size=size)))
    assert read_picture(file).size == size
    np.testing.assert_array_equal(read_picture(file).seen((3, 32, 32)).numpy(), decode(file.read_bytes(), 32).pixels)


def test_a_picture_stands_the_way_its_camera_was_held(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6  # turn a quarter to the right
    (tmp_path / "photo.jpg").write_bytes(encoded(picture(size=(40, 20)), "JPEG", exif=turned))
    assert read_picture(tmp_path / "photo.jpg").size == (20, 40)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(tmp_path, mode):
    image = Image.new("RGBA", (4, 2), (0, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 2, 2))
    image.convert(mode).save(tmp_path / "logo.png")
    pixels = read_picture(tmp_path / "logo.png").pixels
    assert (pixels[:, :2] == 255).all()
    assert (pixels[:, 2:] == 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_what_can_be_half_seen_is_mixed_with_white(seed, width, height):
    drawn = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    colours, cover = drawn[..., :3].astype(float), drawn[..., 3:] / 255
    mixed = on_white(drawn[..., :3], encoded(drawn))
    np.testing.assert_allclose(mixed, cover * colours + (1 - cover) * 255, atol=1)


def test_of_a_moving_picture_the_first_frame_counts(tmp_path):
    red, blue = (Image.new("RGB", (4, 4), colour) for colour in ("red", "blue"))
    red.save(tmp_path / "film.gif", save_all=True, append_images=[blue])
    assert read_picture(tmp_path / "film.gif").pixels[0, 0].tolist() == [255, 0, 0]


def test_a_folder_gives_its_pictures_and_nothing_else(tmp_path):
    for name in ("b.png", "a.JPG", ".hidden.png", "notes.txt", "weights.npy", "below/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encoded(picture()))
    found = find_pictures([tmp_path, tmp_path / "b.png", tmp_path / "notes.txt"])
    assert [file.name for file in found] == ["a.JPG", "b.png", "notes.txt"]


def test_drawings_are_written_over_and_nothing_else_is(tmp_path, photo):
    target = targets([photo], tmp_path)[photo]
    draw_answer(target, read_picture(photo), ANSWER, "mine", (3, 32, 32))
    assert is_drawn(target)
    assert targets([photo], tmp_path) == {photo: tmp_path / "photo-over-time.png"}
    assert find_pictures([tmp_path]) == [photo]
    with pytest.raises(InputError, match=r"photo-over-time\.png is one of the pictures"):
        targets([photo, target], tmp_path)
    target.write_bytes(photo.read_bytes())
    with pytest.raises(InputError, match=r"photo-over-time\.png is there and was not drawn"):
        targets([photo], tmp_path)


def test_pictures_of_one_name_have_drawings_of_their_own(tmp_path):
    drawn = targets([tmp_path / name for name in ("a/dog.png", "b/Dog.jpg", "dog-2.png")], tmp_path)
    assert len({file.name.casefold() for file in drawn.values()}) == 3


@pytest.mark.parametrize("letter", ["x", "ż", "大", "🐸"])
def test_a_long_name_is_cut_so_that_its_drawing_can_be_written(letter, tmp_path, photo):
    most = 245 // len(letter.encode())
    alike = [tmp_path / f"{letter * (most - 1)}{end}.png" for end in "ab"]
    for file in alike:
        file.write_bytes(photo.read_bytes())
    drawn = targets(alike, tmp_path)
    assert len({target.name.casefold() for target in drawn.values()}) == 2
    for file, target in drawn.items():
        assert targets([file], tmp_path) == {file: target}  # whatever else is given
        assert set(target.name.rpartition("-over-time")[0].rpartition("-")[0]) == {letter}
        assert len(os.fsencode(target.name)) < 255 - 80
        draw_answer(target, read_picture(file), ANSWER, "mine", (3, 32, 32))
    assert find_pictures([tmp_path]) == sorted([photo, *alike])


@pytest.mark.parametrize("size", ["12000 10000", "20000 20000"])  # Pillow warns of the one and refuses the other
def test_a_huge_file_with_the_name_of_a_drawing_is_quietly_none(size, tmp_path, photo):
    huge = tmp_path / "photo-over-time.png"
    huge.write_bytes(f"P6 {size} 255\n".encode())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert find_pictures([tmp_path]) == [huge, photo]
        with pytest.raises(InputError, match="is there and was not drawn here"):
            targets([photo], tmp_path)
    assert not told


@pytest.mark.parametrize("begins", [b"no picture", b"P6 10000 9000 255\n"])
def test_what_is_no_picture_or_too_large_is_said_in_a_sentence(begins, tmp_path):
    (tmp_path / "strange.png").write_bytes(begins)
    with pytest.raises(InputError, match=r"strange\.png cannot be read as a picture .*of at most 89 million pixels"):
        read_picture(tmp_path / "strange.png")


def test_grey_of_32_bits_is_said_in_a_sentence(tmp_path):
    Image.new("F", (4, 4), 1.0).save(tmp_path / "depth.tif")
    with pytest.raises(InputError, match=r"depth\.tif cannot be read .*no agreed white: save it with 8 or 16 bits"):
        read_picture(tmp_path / "depth.tif")


def test_a_film_is_not_read_into_memory(tmp_path):
    with (tmp_path / "film.mp4").open("wb") as opened:
        opened.truncate(2 * 10**9)  # sparse: it takes up no room
    with pytest.raises(InputError, match="more than 1000 million bytes"):
        read_picture(tmp_path / "film.mp4")
