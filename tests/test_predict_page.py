"""The output in docs/predict.md is that of the shipped networks."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from cascaded.cli import main as cli
from cascaded.hub.locate import shipped

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "predict.md").read_text()
OUTPUTS = re.findall(r"```bash\n(cascaded predict .*?)\n```\n\n```text\n(.*?)\n```", PAGE, flags=re.DOTALL)
NETWORKS = {"cifar10-td0", "cifar10-ce"}

pytestmark = pytest.mark.skipif(
    not set(shipped()) >= NETWORKS, reason=f"{', '.join(sorted(NETWORKS - set(shipped())))} are not shipped"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the image that the page's code makes."""
    monkeypatch.chdir(tmp_path)
    made, *_ = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(made, "<docs/predict.md>", "exec"), {})
    return tmp_path


def run(command, monkeypatch):
    """Run a command of the page."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    cli.main()


def test_the_page_has_the_output_of_each_command():
    assert len(OUTPUTS) == len(re.findall(r"^cascaded predict ", PAGE, flags=re.MULTILINE)) == 2


@pytest.mark.parametrize(("command", "output"), OUTPUTS, ids=[command for command, _ in OUTPUTS])
@pytest.mark.usefixtures("folder")
def test_a_command_of_the_page_prints_the_output_below_it(command, output, monkeypatch, capsys):
    run(command, monkeypatch)
    assert capsys.readouterr().out.strip("\n") == output
