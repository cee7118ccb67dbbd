"""What docs/predict.md shows is what the networks of the package say today."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cascaded.cli import main as cli
from cascaded.hub.shipped import names
from cascaded.report.look import STYLE

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "predict.md").read_text()
SHOWN = re.findall(r"```bash\n(cascaded predict .*?)\n```\n\n```text\n(.*?)\n```", PAGE, flags=re.DOTALL)
NETWORKS = {"cifar10-td0", "cifar10-ce"}

pytestmark = pytest.mark.skipif(
    not set(names()) >= NETWORKS, reason=f"{', '.join(sorted(NETWORKS - set(names())))} did not come with the package"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the page's own code has made its picture."""
    monkeypatch.chdir(tmp_path)
    made, *_ = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(made, "<docs/predict.md>", "exec"), {})
    return tmp_path


def run(command, monkeypatch):
    """A command as it stands on the page."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    cli.main()


def test_the_page_shows_what_each_command_ends_in():
    assert len(SHOWN) == len(re.findall(r"^cascaded predict ", PAGE, flags=re.MULTILINE)) == 2


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
@pytest.mark.usefixtures("folder")
def test_a_command_of_the_page_prints_what_stands_below_it(command, shown, monkeypatch, capsys):
    run(command, monkeypatch)
    assert capsys.readouterr().out.strip("\n") == shown


def test_the_drawing_on_the_page_is_the_one_that_is_drawn(folder, monkeypatch):
    monkeypatch.setitem(STYLE, "font.sans-serif", ["DejaVu Sans"])  # the one that every matplotlib has
    run(SHOWN[0][0], monkeypatch)
    (name,) = re.findall(r"\]\((.+-over-time\.png)\)", PAGE)
    with Image.open(DOCS / name) as shown, Image.open(folder / name) as drawn:
        assert shown.size == drawn.size
        # in squares of 8 x 8 the letters of another matplotlib are 43 apart, lines that are moved by 0.005 are 135
        apart = np.abs(np.asarray(shown.reduce(8), dtype=int) - np.asarray(drawn.reduce(8)))
    assert apart.max() < 80, f"draw {DOCS / name} again"
