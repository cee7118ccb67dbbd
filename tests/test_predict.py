"""A trained network on the user's images: the prediction per step, its figure, and the command."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import cascaded
from cascaded import Pretrained, RunConfig
from cascaded.cli.predict import predict as command
from cascaded.cli.predict import printed_steps, table
from cascaded.errors import InputError
from cascaded.figures.prediction import drawn_classes, prediction
from cascaded.runtime.predict import Prediction, predict
from cascaded.training.run_file import Inputs
from tests.pictures import encoded, picture

CLASSES = ("cat", "dog", "frog", "ship")
CHANGING = ([0.4, 0.3, 0.2, 0.1], [0.3, 0.6, 0.1, 0.0], [0.05, 0.93, 0.02, 0.0], [0.55, 0.45, 0.0, 0.0])


def network(channels=3, side=32, method="cascaded-td"):
    """An untrained network."""
    inputs = Inputs((channels, side, side), (0.5,) * channels, (0.25,) * channels, CLASSES)
    return Pretrained(RunConfig(method=method, width=2), inputs)


NET = network()


def made(*rows, threshold=None):
    return Prediction(CLASSES, np.array(rows, dtype=np.float32), threshold)


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


def test_it_stops_at_the_first_step_above_the_threshold():
    result = made(*CHANGING, threshold=0.9)
    assert (result.step, result.label, result.stopped) == (3, "dog", True)
    assert result.summary() == "predicted dog (0.93) after step 3 of 4"


def test_below_the_threshold_the_last_step_counts():
    result = made(*CHANGING, threshold=0.95)
    assert (result.step, result.label, result.stopped) == (4, "cat", False)
    assert result.summary() == "predicted cat (0.55) at the last step, confidence never above 0.95"
    assert not made([0.5, 0.25, 0.25, 0.0], threshold=0.5).stopped  # equal is not above


def test_without_a_threshold_the_last_step_counts():
    assert made(*CHANGING).summary() == "predicted cat (0.55) at the last step"


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


def test_the_table_has_one_line_per_step_and_marks_the_stop():
    lines = table(made(*CHANGING, threshold=0.9), top=3)
    assert [line.split()[:3] for line in lines[:2]] == [["1", "cat", "0.40"], ["2", "dog", "0.60"]]
    assert lines[0].endswith("dog 0.30  frog 0.20")
    assert [line for line in lines if "stop, above 0.9" in line] == [lines[2]]


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
