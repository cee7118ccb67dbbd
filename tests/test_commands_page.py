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


def test_every_command_has_a_purpose_an_example_and_its_options(script):
    for command in COMMANDS:
        found = script["parsed"](script["printed"](command))
        assert found.about, command
        assert [each for each in found.examples if each.startswith(f"cascaded {command}")], command
        assert found.options, command


def test_the_page_lists_every_option(script):
    for command in COMMANDS:
        text = script["printed"](command)
        printed = set(re.findall(r"^\W*(?:-\w [A-Z]+, )?(--[a-z][a-z-]*)", text, flags=re.MULTILINE))
        listed = {word.replace("[no-]", "") for flag in script["parsed"](text).options for word in flag.split("`")}
        assert printed - {"--help"} <= listed, command


def test_options_are_listed_with_type_choices_and_default(script):
    worded = script["worded"]
    assert worded(("--width {None}|INT", "Channels. (default: None)")) == ("`--width` INT", "Channels.")
    assert worded(("--seed INT", "Draws. (default: 0)")) == ("`--seed` INT", "Draws. Default: `0`.")
    assert worded(("--again, --no-again", "Anew. (default: False)")) == ("`--again`", "Anew.")
    assert worded(("--draw, --no-draw", "Draw. (default: True)")) == ("`--[no-]draw`", "Draw. Default: yes.")
    assert worded(("--lam [STR [STR ...]]", "Lambdas. (default: )")) == ("`--lam` STR...", "Lambdas.")
    assert worded(("-o DIR, --out DIR", "Where. (default: x)")) == ("`-o`, `--out` DIR", "Where. Default: `x`.")
    assert worded(("--title STR", "Heading. (default: '')")) == ("`--title` STR", "Heading.")
    assert worded(("--how {None,a,b}", "How. (default: None)")) == ("`--how`", "How. One of `a`, `b`.")
    assert worded(("--how [{a,b} [...]]", "How. (default: a)")) == (
        "`--how` ...",
        "How. One or more of `a`, `b`. Default: `a`.",
    )
    assert worded(("--column STR", "Labels. (default: or `label`)")) == (
        "`--column` STR",
        "Labels. Default: or `label`.",
    )


@pytest.mark.parametrize("module", [cascaded, cascaded.analysis, cascaded.data, cascaded.results], ids=str)
def test_every_public_name_is_on_the_api_page(module):
    page = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: [\w.]+?\.(\w+)$|members: \[(.+)\]", page, flags=re.MULTILINE)
    there = {name.strip() for alone, members in named for name in [alone, *members.split(",")]}
    packages = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
    assert set(module.__all__) - packages <= there
