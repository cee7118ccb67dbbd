"""Characters of docstrings: windows that do not overlap, splits that share no module."""

import pytest
import torch

from cascaded.data import text
from cascaded.data.text import CHARACTERS, characters, decode, docstrings_of, encode, modules, split_of
from cascaded.errors import InputError

SOURCE = '''
"""A module."""

class Shape:
    """A shape.

    It has an area.
    """

    def area(self):
        """Its area: π r²."""

    def silent(self):
        return "not a docstring"

async def later():
    "One line."
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A standard library of twenty modules, with tests and installed packages beside them."""
    for number in range(20):
        (tmp_path / f"m{number:02}.py").write_text(f'"""Module {number:02} of the library."""')
    for folder in ("test", "site-packages"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text('"""Not of the library."""')
    monkeypatch.setattr(text, "library", lambda: tmp_path)
    text.docstrings.cache_clear()
    yield tmp_path
    text.docstrings.cache_clear()


def test_docstrings_are_those_of_modules_classes_and_functions_in_order():
    expected = ["A module.", "A shape.\n\nIt has an area.", "Its area: π r².", "One line."]
    assert docstrings_of(SOURCE) == expected
    assert docstrings_of("not python at all") == []


def test_text_survives_encoding_but_for_characters_outside_ascii():
    codes = encode("Its area:\n π r².")
    assert decode(codes) == "Its area:\n  r."
    assert len(CHARACTERS) == len(set(CHARACTERS)) == 96
    assert decode(torch.arange(96)) == CHARACTERS


def test_a_target_is_the_character_that_follows(library):
    inputs, targets = characters("validation", context=5)
    assert decode(inputs.flatten()) + decode(targets[-1, -1:]) == text.docstrings("validation")[: inputs.numel() + 1]
    assert torch.equal(inputs.flatten()[1:], targets.flatten()[:-1])


def test_every_module_is_in_one_split_and_tests_and_packages_in_none(library):
    assert [file.name for file in modules()] == [f"m{number:02}.py" for number in range(20)]
    whole = {split: text.docstrings(split) for split in text.SPLITS}
    assert whole["validation"] == "Module 08 of the library.\n\nModule 18 of the library."
    assert whole["test"] == "Module 09 of the library.\n\nModule 19 of the library."
    assert "Not of" not in whole["train"]
    assert sum(each.count("Module") for each in whole.values()) == 20
    assert [split_of(number) for number in (0, 7, 8, 9, 10)] == ["train", "train", "validation", "test", "train"]


def test_the_standard_library_has_a_megabyte_of_text_here():
    inputs, targets = characters("train", context=64)
    assert inputs.shape == targets.shape
    assert inputs.numel() > 500_000
    assert characters("train", context=64, items=3)[0].shape == (3, 64)


def test_a_library_without_source_is_refused(library):
    for file in library.glob("*.py"):
        file.unlink()
    with pytest.raises(InputError, match="has 0 modules as text"):
        characters("train")


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="no split 'held-out'"):
        characters("held-out")
