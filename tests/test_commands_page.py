"""The reference pages are complete: every command and option, every public name."""

import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest

import cascaded
import cascaded.analysis
import cascaded.data
from cascaded.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "commands.py"))


def test_the_page_matches_help(script):
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), "run scripts/commands.py"


def test_every_command_has_an_example_and_its_options(script):
    for command in COMMANDS:
        text = script["printed"](command)
        assert f"Example: cascaded {command}" in text, command
        assert "options" in text, command
        assert max(map(len, text.splitlines())) <= 110, command


@pytest.mark.parametrize("module", [cascaded, cascaded.analysis, cascaded.data, cascaded.results], ids=str)
def test_every_public_name_is_on_the_api_page(module):
    page = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: [\w.]+?\.(\w+)$|members: \[(.+)\]", page, flags=re.MULTILINE)
    there = {name.strip() for alone, members in named for name in [alone, *members.split(",")]}
    packages = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
    assert set(module.__all__) - packages <= there
