"""A trained network on one's own pictures: when it has answered, and how that is told."""

import io
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.cells import cell_len
from rich.console import Console

import cascaded
from cascaded import Pretrained, Recipe, Spec
from cascaded.cli import main as cli
from cascaded.cli.predict import predict
from cascaded.errors import InputError
from cascaded.runtime.drawing import Layout, class_colours, draw_lines, middle, pixels
from cascaded.runtime.images import Picture
from cascaded.runtime.predict import Answer, ask
from cascaded.runtime.terminal import bar, lines, show
from cascaded.training.runs import Inputs
from tests.pictures import encoded, picture

CLASSES = ("cat", "dog", "frog", "ship")


def network(channels=3, side=32, model="cascaded-td"):
    """One that has learned nothing, and says so."""
    spec = Spec("made", model=model, recipe=Recipe(width=2))
    inputs = Inputs((channels, side, side), (0.5,) * channels, (0.25,) * channels, CLASSES)
    return Pretrained(spec.to_json(), asdict(inputs))


NET = network()


def answer(*rows, stop=None):
    return Answer(CLASSES, np.array(rows, dtype=np.float32), stop)


CHANGING = ([0.4, 0.3, 0.2, 0.1], [0.3, 0.6, 0.1, 0.0], [0.05, 0.93, 0.02, 0.0], [0.55, 0.45, 0.0, 0.0])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a network, to be given as --model."""
    folder = tmp_path_factory.mktemp("networks") / "mine"
    network().save_pretrained(folder)
    return folder


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "photo.png").write_bytes(encoded(picture(size=(40, 30))))
    return tmp_path / "photo.png"


def test_the_answer_is_taken_at_the_first_step_that_is_surer():
    said = answer(*CHANGING, stop=0.9)
    assert (said.step, said.said, said.stopped) == (3, "dog", 3)
    assert said.sentence() == "answers dog after step 3 of 4 (0.93)"


def test_who_is_never_sure_answers_at_the_last_step():
    said = answer(*CHANGING, stop=0.95)
    assert (said.step, said.said, said.stopped) == (4, "cat", None)
    assert said.sentence() == "never surer than 0.95: answers cat at the last step (0.55)"
    assert answer([0.5, 0.25, 0.25, 0.0], stop=0.5).stopped is None  # as sure is not surer


def test_without_a_threshold_the_last_step_answers_and_since_when_is_told():
    assert answer(*CHANGING).sentence() == "answers cat at the last step (0.55)"
    assert answer(*CHANGING[:3]).sentence() == "answers dog at the last step (0.93), and has since step 2 of 3"


def test_the_answer_is_given_where_early_exit_lets_the_picture_go():
    shown = Picture(Path("made"), picture(size=(32, 32)))
    sure = np.unique(ask(NET, shown).probabilities.max(axis=1))
    taken = NET.normalised(shown.seen((3, 32, 32))[None])
    between = (sure[1:] + sure[:-1]) / 2  # step by step, the last digit may be another
    found = []
    for stop in (0.0, *between[::3].tolist(), 1.0):
        mine, early = ask(NET, shown, stop), cascaded.early_exit(NET.net, taken, stop)
        assert (mine.step, mine.said) == (int(early.steps[0]), CLASSES[int(early.said[0])])
        found.append(mine.step)
    assert len(set(found)) > 2


def test_fine_time_runs_the_same_weights_in_seventy_steps():
    shown = Picture(Path("made"), picture())
    coarse, fine = ask(NET, shown), ask(NET, shown, fine=True)
    assert (coarse.steps, fine.steps) == (9, 70)
    np.testing.assert_allclose(fine.probabilities[-1], coarse.probabilities[-1], atol=0.05)
    with pytest.raises(InputError, match="runs block by block, fine time needs delays"):
        ask(network(model="shallow-deep"), shown, fine=True)


def test_a_network_without_colours_sees_grey():
    shown = Picture(Path("made"), np.full((5, 5, 3), (200, 100, 50), dtype=np.uint8))
    assert shown.seen((1, 8, 8)).unique().tolist() == [124]  # 0.299 red, 0.587 green, 0.114 blue
    assert ask(network(channels=1, side=8), shown).steps == 9
    with pytest.raises(InputError, match="takes images of 4 channels"):
        shown.seen((4, 8, 8))


def test_every_class_that_ever_led_is_drawn():
    said = answer([0.5, 0.3, 0.2, 0.0], [0.2, 0.5, 0.3, 0.0], [0.2, 0.2, 0.6, 0.0])
    assert said.shown(1) == [2, 0, 1]
    assert answer(*CHANGING).shown(3) == [1, 0, 2]


def test_a_class_keeps_its_colour_and_no_two_share_one():
    assert class_colours([3, 7])[7] == class_colours([7, 9, 23])[7]
    assert len(set(class_colours([0, 24, 48, 1]).values())) == 4
    assert len(class_colours(range(100))) == 100


def test_the_plot_marks_the_answer_and_pales_what_comes_after():
    plot = draw_lines(answer(*CHANGING, stop=0.9), top=2)
    rings = [line for line in plot.axes.lines if line.get_markersize() > 8]
    assert [(line.get_xdata()[0], round(float(line.get_ydata()[0]), 2)) for line in rings] == [(3, 0.93)]
    drawn = [line for line in plot.axes.lines if line.get_linestyle() == "-" and line not in rings]
    assert {tuple(line.get_xdata()) for line in drawn if line.get_alpha() is None} == {(1, 2, 3)}
    assert {tuple(line.get_xdata()) for line in drawn if line.get_alpha()} == {(3, 4)}
    assert not [line for line in draw_lines(answer(*CHANGING), top=2).axes.lines if line.get_markersize() > 8]


@given(st.tuples(st.integers(1, 9000), st.integers(1, 9000)))
def test_pictures_of_any_form_stay_within_the_drawing(size):
    layout = Layout.of(size, (3, 32, 32), pixels(3.3))
    assert layout.below + layout.view[1] <= layout.height
    left, top, right, bottom = middle(layout.whole, 1.0)
    assert 0 <= left < right <= layout.whole[0]
    assert 0 <= top < bottom <= layout.whole[1]


def printed(said, columns=None, encoding="utf-8", name="photo.png"):
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=file, width=columns, force_terminal=columns is not None, highlight=False)
    show(console, Picture(Path(name), picture()), said, "mine", (3, 32, 32), top=3)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def test_a_file_gets_a_line_a_step_and_no_colours():
    head, *rows, told, last = printed(answer(*CHANGING, stop=0.9)).splitlines()
    assert head == "photo.png: 8 x 8 pixels, seen by mine as 32 x 32"
    assert [row.split()[0] for row in rows] == ["1", "2", "3", "──", "4"]
    assert [row.split()[0] for row in rows if "→" in row] == ["2", "4"]
    assert rows[0].endswith("dog 0.30  frog 0.20")
    assert "surer than 0.9" in rows[3]
    assert [told, last] == ["answers dog after step 3 of 4 (0.93)", "the last step says cat (0.55)"]


def test_a_terminal_shows_what_comes_after_the_answer_in_grey():
    rows = printed(answer(*CHANGING, stop=0.9), columns=60).splitlines()
    grey = [row for row in rows if row.startswith("\x1b[90m")]
    assert [row.split("→")[0].split()[-1] for row in grey] == ["4"]


def test_what_cannot_show_bars_gets_letters():
    assert "> dog  0.60  ####" in printed(answer(*CHANGING, stop=0.9), encoding="ascii", name="żółw.png")


@given(st.integers(46, 100), st.integers(1, 6), st.sampled_from(["cat", "sweet_pepper", "大熊猫", "x" * 60]))
def test_lines_are_never_longer_than_the_terminal_is_wide(columns, top, name):
    said = Answer((name, *CLASSES[1:]), np.array(CHANGING, dtype=np.float32), 0.9)
    assert max(cell_len(line.plain) for line in lines(said, columns, top)) <= columns


def test_a_bar_is_as_long_as_the_probability_to_an_eighth_of_a_column():
    assert [bar(share, 2) for share in (0.0, 0.0625, 0.5, 0.75, 1.0)] == ["", "▏", "█", "█▌", "██"]
    assert [bar(share, 4, plain=True) for share in (0.0, 0.5, 1.0)] == ["", "##", "####"]


def test_of_many_steps_those_are_shown_where_something_happens():
    rows = np.tile(np.array([[0.6, 0.4, 0, 0]], dtype=np.float32), (70, 1))
    rows[33:] = [0.0, 1.0, 0, 0]
    shown = [line.plain.split()[0] for line in lines(Answer(CLASSES, rows, 0.9), 78, 3)]
    assert {"1", "34", "70"} <= set(shown)
    assert len(shown) < 20


def test_names_of_files_give_a_terminal_no_orders():
    assert "\x1b" not in printed(answer(*CHANGING), name="a\x1b[31m\nb\udcff.png")


def test_predict_prints_and_draws(tmp_path, photo, saved, capsys):
    predict((photo,), model=str(saved), stop=0.0, out=tmp_path / "new")
    told = capsys.readouterr().out
    assert "after step 1 of 9" in told
    assert f"wrote {tmp_path / 'new' / 'photo-over-time.png'}" in told
    with Image.open(tmp_path / "new" / "photo-over-time.png") as drawn:
        assert drawn.size[0] == 1496
        assert len(drawn.convert("RGB").getcolors(1 << 22) or ()) > 100


def test_json_is_all_there_is_on_stdout(photo, tmp_path, saved, capsys):
    (tmp_path / "other.png").write_bytes(encoded(picture(1)))
    predict((photo, tmp_path / "other.png"), model=str(saved), draw=False, json=True)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["path"] for each in found] == [str(photo), str(tmp_path / "other.png")]
    np.testing.assert_allclose(np.sum([each["probabilities"] for each in found], axis=-1), 1, atol=1e-4)
    assert found[0]["answer"] == CLASSES[int(np.argmax(found[0]["probabilities"][-1]))]
    assert (found[0]["step"], found[0]["stopped"], found[0]["drawn"]) == (9, False, None)


def test_pictures_that_cannot_be_read_do_not_keep_the_others_from_an_answer(tmp_path, photo, saved, capsys):
    (tmp_path / "cut.png").write_bytes(photo.read_bytes()[:500])
    (tmp_path / "notes.png").write_text("no picture")
    with pytest.raises(InputError, match=r"2 of 3 pictures cannot be read, the first: .*cut\.png .*truncated"):
        predict((tmp_path,), model=str(saved), draw=False)
    assert "photo.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no picture is given"),
        (["gone.png"], "there is no file or folder gone.png"),
        (["empty"], "empty holds no pictures"),
        (["/dev/null"], "/dev/null is neither a file nor a folder"),
        (["photo.png", "--stop", "1.5"], "--stop is 1.5: give a probability from 0 to 1"),
        (["photo.png", "--stop", "nan"], "--stop is nan"),
        (["photo.png", "--top", "0"], "--top is 0: give at least 1"),
        (["photo.png", "--out", "photo.png"], "--out is photo.png, which is a file"),
        (["photo.png", "--out", "x" * 300], "File name too long"),
        (["photo.png", "--model", "nonsense"], "there is no network 'nonsense'"),
    ],
)
def test_wrong_words_end_in_a_sentence_and_exit_code_two(arguments, message, photo, monkeypatch, capsys):
    monkeypatch.chdir(photo.parent)
    (photo.parent / "empty").mkdir()
    monkeypatch.setattr(sys, "argv", ["cascaded", "predict", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
