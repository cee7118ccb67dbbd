"""The reference pages tell all there is: every command as it tells itself, every public name."""

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


def test_the_page_is_what_help_says(script):
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), "run scripts/commands.py"


def test_every_command_has_a_purpose_an_example_and_its_options(script):
    for command in COMMANDS:
        found = script["parsed"](script["printed"](command))
        assert found.about, command
        assert [each for each in found.examples if each.startswith(f"cascaded {command}")], command
        assert found.options, command


def test_no_option_is_lost_on_the_way_to_the_page(script):
    for command in COMMANDS:
        text = script["printed"](command)
        said = set(re.findall(r"^\W*(?:-\w [A-Z]+, )?(--[a-z][a-z-]*)", text, flags=re.MULTILINE))
        told = {word.replace("[no-]", "") for flag in script["parsed"](text).options for word in flag.split("`")}
        assert said - {"--help"} <= told, command


def test_defaults_that_say_nothing_are_left_out(script):
    worded = script["worded"]
    assert worded(("--width {None}|INT", "Channels. (default: None)")) == ("`--width` INT", "Channels.")
    assert worded(("--seed INT", "Draws. (default: 0)")) == ("`--seed` INT", "Draws. Default: `0`.")
    assert worded(("--again, --no-again", "Anew. (default: False)")) == ("`--again`", "Anew.")
    assert worded(("--draw, --no-draw", "Draw. (default: True)")) == ("`--[no-]draw`", "Draw. Default: yes.")
    assert worded(("--lam [STR [STR ...]]", "Lambdas. (default: )")) == ("`--lam` STR...", "Lambdas.")
    assert worded(("-o DIR, --out DIR", "Where. (default: x)")) == ("`-o`, `--out` DIR", "Where. Default: `x`.")
    assert worded(("--title STR", "Heading. (default: '')")) == ("`--title` STR", "Heading.")
    assert worded(("--way {None,a,b}", "How. (default: None)")) == ("`--way`", "How. One of `a`, `b`.")


@pytest.mark.parametrize("module", [cascaded, cascaded.analysis, cascaded.data, cascaded.results], ids=str)
def test_every_public_name_stands_on_the_api_page(module):
    page = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: [\w.]+?\.(\w+)$|members: \[(.+)\]", page, flags=re.MULTILINE)
    there = {name.strip() for alone, members in named for name in [alone, *members.split(",")]}
    packages = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
    assert set(module.__all__) - packages <= there
