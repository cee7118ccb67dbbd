"""A trained network on the user's images: the prediction per step, its figure, and the command."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import cascaded
from cascaded import Pretrained, RunConfig
from cascaded.cli.predict import predict as command
from cascaded.cli.predict import printed_steps, table
from cascaded.data.decode import decode
from cascaded.errors import InputError
from cascaded.figures.prediction import drawn_classes, prediction
from cascaded.runtime.images import SOFTWARE, UserImage, figure_files, find_images, is_figure, on_white, read_image
from cascaded.runtime.predict import Prediction, predict
from cascaded.training.run_file import Inputs
from tests.pictures import encoded, picture
from tests.refused import refused

CLASSES = ("cat", "dog", "frog", "ship")
CHANGING = ([0.4, 0.3, 0.2, 0.1], [0.3, 0.6, 0.1, 0.0], [0.05, 0.93, 0.02, 0.0], [0.55, 0.45, 0.0, 0.0])


def network(channels=3, side=32, method="cascaded-td"):
    """An untrained network."""
    inputs = Inputs((channels, side, side), (0.5,) * channels, (0.25,) * channels, CLASSES)
    return Pretrained(RunConfig(method=method, width=2), inputs)


NET = network()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved network, for --model."""
    folder = tmp_path_factory.mktemp("networks") / "mine"
    network().save_pretrained(folder)
    return folder


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "photo.png").write_bytes(encoded(picture(size=(40, 30))))
    return tmp_path / "photo.png"


# --- the prediction


@pytest.mark.parametrize(
    ("threshold", "step", "label", "summary"),
    [
        (0.9, 3, "dog", "predicted dog (0.93) after step 3 of 4"),
        (0.95, 4, "cat", "predicted cat (0.55) at the last step, confidence never above 0.95"),
        (None, 4, "cat", "predicted cat (0.55) at the last step"),
    ],
)
def test_it_stops_at_the_first_step_above_the_threshold_or_at_the_last(threshold, step, label, summary):
    result = Prediction(CLASSES, np.array(CHANGING, dtype=np.float32), threshold)
    assert (result.step, result.label, result.stopped, result.summary()) == (step, label, step == 3, summary)
    assert [("stop, above 0.9" in line) for line in table(result, top=3)] == [False, False, threshold == 0.9, False]


def test_it_stops_at_the_step_and_class_of_early_exit():
    image = picture(size=(32, 32))
    confidence = np.unique(predict(NET, image).probabilities.max(axis=1))
    batch = NET.prepare(torch.from_numpy(image).permute(2, 0, 1)[None])
    between = (confidence[1:] + confidence[:-1]) / 2  # step by step, the last digit may differ
    steps = set()
    for threshold in (0.0, *between[::3].tolist(), 1.0):
        result, early = predict(NET, image, threshold=threshold), cascaded.early_exit(NET.net, batch, threshold)
        assert (result.step, result.label) == (int(early.steps[0]), CLASSES[int(early.predictions[0])])
        steps.add(result.step)
    assert len(steps) > 2


def test_exponential_smoothing_takes_70_steps_to_nearly_the_same_probabilities():
    image = picture(size=(32, 32))
    coarse, fine = predict(NET, image), predict(NET, image, kernel="ews:0.9")
    assert (coarse.steps, fine.steps) == (9, 70)
    np.testing.assert_allclose(fine.probabilities[-1], coarse.probabilities[-1], atol=0.05)
    with pytest.raises(InputError, match="one after the other, without delays: leave the kernel out"):
        predict(network(method="shallow-deep"), image, kernel="ews:0.9")


def test_a_network_of_one_channel_gets_gray_images():
    gray = np.full((8, 8, 1), 124, dtype=np.uint8)
    assert predict(network(channels=1, side=8), gray).steps == 9


# --- the figure


def test_every_class_that_is_predicted_at_any_step_is_drawn():
    rows = np.array([[0.5, 0.3, 0.2, 0.0], [0.2, 0.5, 0.3, 0.0], [0.2, 0.2, 0.6, 0.0]], dtype=np.float32)
    assert drawn_classes(rows, 1) == [2, 0, 1]
    assert drawn_classes(np.array(CHANGING, dtype=np.float32), 3) == [1, 0, 2]


def test_the_figure_marks_the_stop_and_fades_later_steps():
    rows = np.array(CHANGING, dtype=np.float32)
    shown = {"image": picture(size=(40, 30)), "network_input": picture(size=(8, 8)), "classes": CLASSES}
    axes = prediction(**shown, probabilities=rows, step=3, threshold=0.9, top=2).axes[1]
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1 and line.get_linestyle() == "-"]
    assert {tuple(line.get_xdata()) for line in lines if line.get_alpha() is None} == {(1, 2, 3)}
    assert {tuple(line.get_xdata()) for line in lines if line.get_alpha()} == {(3, 4)}
    (ring,) = (line for line in axes.lines if line.get_markersize() > 8)
    assert (ring.get_xdata()[0], round(float(ring.get_ydata()[0]), 2)) == (3, 0.93)
    without = prediction(**shown, probabilities=rows, step=4, threshold=0.95).axes[1]
    assert not [line for line in without.lines if line.get_markersize() > 8]


# --- the command


def test_of_many_steps_the_table_has_the_changes_and_some_others():
    rows = np.tile(np.array([[0.6, 0.4, 0, 0]], dtype=np.float32), (70, 1))
    rows[33:] = [0.0, 1.0, 0, 0]
    steps = printed_steps(Prediction(CLASSES, rows, 0.9))
    assert {1, 34, 70} <= set(steps)
    assert len(steps) < 20


def test_predict_prints_and_draws(tmp_path, photo, saved, capsys):
    command((photo,), model=str(saved), threshold=0.0, out=tmp_path / "new")
    out = capsys.readouterr().out
    assert "after step 1 of 9" in out
    assert f"wrote {tmp_path / 'new' / 'photo-prediction.png'}" in out
    with Image.open(tmp_path / "new" / "photo-prediction.png") as drawn:
        assert len(drawn.convert("RGB").getcolors(1 << 22) or ()) > 100


def test_names_with_control_characters_are_printed_without_them(tmp_path, saved, capsys):
    file = tmp_path / "a\x1b[31mb.png"
    file.write_bytes(encoded(picture()))
    command((file,), model=str(saved), figure=False)
    assert "\x1b" not in capsys.readouterr().out


def test_json_is_the_only_output(photo, tmp_path, saved, capsys):
    (tmp_path / "other.png").write_bytes(encoded(picture(1)))
    command((photo, tmp_path / "other.png"), model=str(saved), figure=False, json=True)
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["path"] for each in results] == [str(photo), str(tmp_path / "other.png")]
    np.testing.assert_allclose(np.sum([each["probabilities"] for each in results], axis=-1), 1, atol=1e-4)
    assert results[0]["prediction"] == CLASSES[int(np.argmax(results[0]["probabilities"][-1]))]
    assert (results[0]["step"], results[0]["stopped"], results[0]["figure"]) == (9, False, None)


def test_unreadable_images_are_reported_after_the_others(tmp_path, photo, saved, capsys):
    (tmp_path / "cut.png").write_bytes(photo.read_bytes()[:500])
    (tmp_path / "notes.png").write_text("not an image")
    with pytest.raises(InputError, match=r"2 of 3 images cannot be read, the first: .*cut\.png .*truncated"):
        command((tmp_path,), model=str(saved), figure=False)
    assert "photo.png" in capsys.readouterr().out


@pytest.mark.parametrize("size", [(1, 1), (32, 32), (50, 20), (7, 90)])
def test_an_image_is_resized_as_training_images_are(tmp_path, size):
    file = tmp_path / "photo.png"
    file.write_bytes(encoded(picture(size=size)))
    resized = read_image(file).resize((3, 32, 32))
    np.testing.assert_array_equal(resized.transpose(2, 0, 1), decode(file.read_bytes(), 32).pixels)


def test_colors_become_gray_for_a_network_of_one_channel(tmp_path):
    image = UserImage(tmp_path, np.full((5, 5, 3), (200, 100, 50), dtype=np.uint8))
    assert np.unique(image.resize((1, 8, 8))).tolist() == [124]  # 0.299 red, 0.587 green, 0.114 blue
    refused("expects images with 4 channels", image.resize, (4, 8, 8))


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
    refused(r"photo-prediction\.png is one of the images", figure_files, [photo, target], tmp_path)
    target.write_bytes(photo.read_bytes())
    refused(r"photo-prediction\.png exists and is not a figure", figure_files, [photo], tmp_path)


def test_images_with_equal_names_have_figures_of_their_own(tmp_path):
    names = ("a/dog.png", "b/Dog.jpg", "dog-2.png", "x" * 200 + "a.png", "x" * 200 + "b.png")
    targets = figure_files([tmp_path / name for name in names], tmp_path)
    assert len({file.name.casefold() for file in targets.values()}) == 5
    assert max(len(file.name) for file in targets.values()) < 80


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an image", "of at most 89 million pixels"),
        (b"P6 10000 9000 255\n", "of at most 89 million pixels"),
        (encoded(np.ones((4, 4), np.float32), "TIFF"), "save it with 8 or 16 bits"),
    ],
)
def test_a_file_that_is_no_image_or_too_large_is_refused_in_one_sentence(content, message, tmp_path):
    (tmp_path / "strange.png").write_bytes(content)
    refused(rf"strange\.png cannot be read as an image .*{message}", read_image, tmp_path / "strange.png")


def test_a_very_large_file_is_not_read_into_memory(tmp_path):
    with (tmp_path / "film.mp4").open("wb") as opened:
        opened.truncate(2 * 10**9)  # a sparse file
    refused("more than 1000 million bytes", read_image, tmp_path / "film.mp4")
