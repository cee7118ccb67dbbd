"""What the live page computes and shows; `test_live_in_browser.py` opens it."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

import cascaded
from cascaded.cli import main as cli
from cascaded.runtime.live.networks import (
    NO_NOISE,
    FrameRow,
    Networks,
    StepRow,
    Stop,
    find_stop,
    read_pixels,
    run_frame,
    run_steps,
)
from cascaded.runtime.predict import predict
from tests.made_networks import made
from tests.refused import refused

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")

from cascaded.runtime.live.charts import steps_chart, stream_chart

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 8, 1), dtype=np.uint8)
CLASSES = ("<b>cat</b>", "dog & co", "frog")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved network, the same exported, and one that computes one block per step."""
    place = tmp_path_factory.mktemp("live")
    made().save_pretrained(place / "saved")
    cascaded.export(made(), place / "exported")
    made("shallow-deep").save_pretrained(place / "shallow-deep")
    return place


@pytest.fixture
def networks(folders, tmp_path):
    return Networks([str(folders / name) for name in ("saved", "exported", "shallow-deep")], tmp_path)


def test_every_step_is_that_of_predict(networks):
    expected = predict(made(), PIXELS)
    for name in networks.names[:2]:
        rows = [*run_steps(networks.runner(name), PIXELS)]
        assert [row.step for row in rows] == [*range(1, expected.steps + 1)]
        np.testing.assert_allclose([row.probabilities for row in rows], expected.probabilities, atol=1e-5)
        np.testing.assert_allclose(np.cumsum([row.milliseconds for row in rows]), [row.total for row in rows])


def test_a_network_is_opened_once(networks):
    name = networks.names[0]
    assert networks.runner(name) is networks.runner(name)
    refused("there is no network 'other' on this page: choose one of", networks.runner, "other")


def test_an_image_file_is_resized_to_the_networks_input(networks, tmp_path):
    Image.new("RGB", (40, 20), "white").save(tmp_path / "wide.png")
    pixels = read_pixels(str(tmp_path / "wide.png"), networks.runner(networks.names[0]))
    assert pixels.shape == (8, 8, 1)
    assert pixels.min() == 255


def rows(*confidences, milliseconds=2.0):
    """Steps of a network with two classes."""
    values = enumerate(confidences, start=1)
    return [StepRow(step, np.array([c, 1 - c]), milliseconds, step * milliseconds) for step, c in values]


@pytest.mark.parametrize(
    ("threshold", "deadline", "stop"),
    [
        (0.75, None, Stop(2, "threshold")),
        (1.0, None, Stop(4, "last step")),
        (None, 5.0, Stop(2, "deadline")),  # another step would end at 6 ms
        (None, 6.0, Stop(3, "deadline")),
        (None, 0.1, Stop(1, "deadline")),
        (0.75, 3.0, Stop(1, "deadline")),
    ],
)
def test_a_prediction_stops_as_in_the_runner(threshold, deadline, stop):
    assert find_stop(rows(0.6, 0.8, 0.9, 0.95), 4, threshold, deadline) == stop


def test_the_steps_so_far_may_not_have_stopped():
    assert find_stop(rows(0.6, 0.7), 4, 0.9, 100.0) is None


def test_a_stream_without_noise_is_the_network_step_by_step(networks):
    runner, generator, state = networks.stream(networks.names[0]), torch.Generator().manual_seed(0), None
    expected = predict(made(), PIXELS)
    for step in range(expected.steps):
        row, state = run_frame(runner, PIXELS, NO_NOISE, generator, state)
        np.testing.assert_allclose(row.cascade, expected.probabilities[step], atol=1e-5)
        np.testing.assert_allclose(row.serial, expected.probabilities[-1], atol=1e-5)
        assert np.abs(row.pixels.astype(int) - PIXELS).max() <= 1


def test_both_networks_receive_the_same_noisy_frame(networks):
    runner, generator = networks.stream(networks.names[0]), torch.Generator().manual_seed(0)
    frames, state = [], None
    for _ in range(4):
        row, state = run_frame(runner, PIXELS, "occlusion", generator, state)
        frames.append(row)
    mean = round(255 * runner.config.inputs.mean[0])
    assert all((frame.pixels == mean).sum() >= 16 for frame in frames)  # a square of half the side
    assert len({frame.pixels.tobytes() for frame in frames}) > 1
    refused("computes one block per step and takes no new frames", networks.stream, networks.names[2])


def svg_of(html):
    """The picture in a page; it is read as XML."""
    return ElementTree.fromstring(re.search(r"<svg.*</svg>", html).group())


def three(*pairs):
    """Steps of a network with three classes."""
    return [StepRow(i, np.array([a, b, 1 - a - b]), 1.5, 1.5 * i) for i, (a, b) in enumerate(pairs, start=1)]


def test_a_chart_names_classes_as_text_and_marks_the_stop():
    steps = three((0.2, 0.5), (0.7, 0.2), (0.9, 0.05))
    html = steps_chart(steps, 3, CLASSES, PIXELS, Stop(2, "threshold"), (0.6, None))
    assert "<b>cat" not in html
    assert "&lt;b&gt;cat&lt;/b&gt; 0.70" in html
    assert "step 2 of 3, 3.00 ms; its confidence is above 0.6" in html
    assert re.findall(r'<tr class="(\w*)">', html) == ["", "stop", "later"]
    svg = svg_of(html)
    assert [each.get("class") for each in svg.iter("circle")].count("ring") == 1
    (limit,) = [each for each in svg.iter("line") if each.get("class") == "limit"]
    middle, top = (float(each.get("y1")) for each in [*svg.iter("line")][1:3])
    assert float(limit.get("y1")) == pytest.approx(middle + 0.2 * (top - middle), abs=0.1)


def test_names_at_the_right_do_not_cover_each_other():
    html = steps_chart(three((0.0, 0.0), (0.01, 0.0)), 9, CLASSES, PIXELS, None, (1.0, None))
    (names,) = [each for each in svg_of(html).iter("g") if each.get("class") == "names"]
    places = sorted(float(each.get("y")) for each in names.iter("text"))
    assert min(np.diff(places)) >= 16.9
    assert "limit" in html


def test_a_stream_counts_changes_of_both_predictions():
    a, b = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.6, 0.1])
    frames = [FrameRow(PIXELS, a, each) for each in (a, b, a, b)]
    html = stream_chart(frames, CLASSES, 4, reference=0)
    assert "cascade: &lt;b&gt;cat&lt;/b&gt;, 0 changes<br>serial: dog &amp; co, 3 changes" in html
    assert html.count('class="on"') == 8
    assert "Lines: probability of &lt;b&gt;cat&lt;/b&gt;." in html
    assert len([*svg_of(html).iter("polyline")]) == 2
    assert "1 change<br>" in stream_chart([FrameRow(PIXELS, b, b), *frames], CLASSES, 5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cifar10-td9"], "there is no network 'cifar10-td9': did you mean"),
        (["--port", "0"], "--port is 0: give a number from 1 to 65535"),
        (["--max-megabytes", "0"], "--max-megabytes is 0.0: give a number from 0.001 to 1000"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_exit_code_2(words, message, monkeypatch, capsys):
    pytest.importorskip("gradio", reason="the page needs the extra `live`")
    assert message in ended(words, monkeypatch, capsys)


def test_a_missing_package_is_named_with_its_extra(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "cascaded.runtime.live.page", raising=False)
    monkeypatch.setitem(sys.modules, "gradio", None)
    error = ended([], monkeypatch, capsys)
    assert "the page needs Gradio" in error
    assert "pip install 'cascaded[live]'" in error


def ended(words, monkeypatch, capsys):
    """The sentence in which the command ends."""
    monkeypatch.setattr(sys, "argv", ["cascaded", "live", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    error = capsys.readouterr().err
    assert (stopped.value.code, error.count("\n")) == (2, 1)
    return error
