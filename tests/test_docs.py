"""Pages of the documentation have every command, option and public name; outputs and examples are as they run."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cascaded
import cascaded.analysis
import cascaded.data
from cascaded.cli import main as cli

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "commands.py"))


def test_the_page_matches_help(script):
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), "run scripts/commands.py"


@pytest.mark.parametrize("module", [cascaded, cascaded.analysis, cascaded.data, cascaded.results], ids=str)
def test_every_public_name_is_on_the_api_page(module):
    page = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: [\w.]+?\.(\w+)$|members: \[(.+)\]", page, flags=re.MULTILINE)
    there = {name.strip() for alone, members in named for name in [alone, *members.split(",")]}
    packages = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
    assert set(module.__all__) - packages <= there


PAGE = (ROOT / "docs" / "predict.md").read_text()
OUTPUTS = re.findall(r"```bash\n(cascaded predict .*?)\n```\n\n```text\n(.*?)\n```", PAGE, flags=re.DOTALL)


def test_the_page_has_the_output_of_each_command():
    assert len(OUTPUTS) == len(re.findall(r"^cascaded predict ", PAGE, flags=re.MULTILINE)) == 2


@pytest.mark.parametrize(("command", "output"), OUTPUTS, ids=[command for command, _ in OUTPUTS])
def test_a_command_of_the_page_prints_the_output_below_it(command, output, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made, *_ = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(made, "<docs/predict.md>", "exec"), {})  # makes the image
    cli.run(shlex.split(command)[1:])
    assert capsys.readouterr().out.strip("\n") == output


@pytest.fixture
def printed(capsys):
    """Output of an example after one epoch, as rows of words; run in this process, where torch is already imported."""

    def rows(name):
        runpy.run_path(str(ROOT / "examples" / name))["main"](epochs=1)
        return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]

    return rows


def fraction(word):
    return float(word.removesuffix("%")) / 100


def test_a_higher_confidence_threshold_takes_more_steps(printed):
    *early, last = printed("train_and_stop_early.py")[1:]
    steps = [float(row[-1]) for row in early]
    assert steps == sorted(steps)
    assert 1 <= steps[0] < steps[-1] <= float(last[-1]) == 7
    assert 0.2 < fraction(last[1]) <= 1  # above chance after one epoch


def test_the_td_loss_trains_every_exit_of_a_hand_made_network(printed):
    by_lambda = {row[0]: [fraction(word) for word in row[1:]] for row in printed("td_loss_on_your_network.py")[1:]}
    assert list(by_lambda) == ["0.0", "1.0"]
    assert by_lambda["0.0"] != by_lambda["1.0"]
    assert all(len(exits) == 4 and max(exits) > 0.2 for exits in by_lambda.values())


def test_a_stream_of_three_digits_has_a_prediction_per_frame(printed):
    rows = printed("noisy_stream.py")
    frames = [row for row in rows if row[0].isdigit()]
    assert [int(row[0]) for row in frames] == list(range(1, 25))
    assert [frames[k][1] for k in (0, 8, 16)] == [frames[k][1] for k in (7, 15, 23)]  # eight frames per digit
    assert len({row[2] for row in frames}) > 1  # the prediction changes
    assert [row[0] for row in rows[-2:]] == ["stream", "single"]


def test_a_trace_gives_steps_accuracy_and_latency_of_every_image(printed):
    rows = printed("read_a_trace.py")
    start = next(k for k, row in enumerate(rows) if row[0] == "one")
    first, *_, last = [[float(each) for each in row[:2]] for row in rows[2:start]]
    assert first == [0, 1]  # threshold 0 stops at the first step
    assert last[1] == 9
    assert sum(int(row[1]) for row in rows[start + 1 : start + 11]) == 359


@pytest.mark.long
def test_online_learning_computes_the_same_gradient_in_constant_memory():
    # run as a script: a measurement started from this process would inherit the peak memory of this one
    command = [sys.executable, str(ROOT / "examples" / "online_learning.py"), "4", "16"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    rows = [line.split() for line in output.splitlines()[1:]]
    assert [row[-2] for row in rows] == [row[-1] for row in rows]
    (short, long) = ([float(row[k]) for k in (1, 3)] for row in rows)
    assert long[0] > 2 * short[0]  # four times as many steps
    assert long[1] < 2 * short[1]
