"""The house as a whole: imports go one way, public names are documented, examples run."""

import ast
import builtins
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cascaded

ROOT = Path(__file__).parent.parent
ROOMS = [  # each imports from those before it alone
    "errors",
    "lazy",
    "shell",
    "files",
    "progress",
    "trace",  # what is read from traces stands before any network, and so cannot import one
    "statistics",
    "analysis",
    "cascade",
    "models",
    "data",
    "learning",
    "recording",
    "results",
    "exhibits",
    "report",
    "sweep",
    "pretrained",
    "predict",
    "experiments",
    "demo",
    "bench",
    "usage",
    "cli",
]


def modules():
    return sorted((ROOT / "cascaded").rglob("*.py"))


def room(module):
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_one_way(file):
    own = file.relative_to(ROOT / "cascaded").parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cascaded."):
            assert ROOMS.index(room(node.module)) <= ROOMS.index(own), f"{file.name} imports {node.module}"


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_files_stay_small_enough_to_read(file):
    assert len(file.read_text().splitlines()) <= 320


def test_public_names_are_there_and_documented():
    for name in cascaded.__all__:
        assert (getattr(cascaded, name).__doc__ or "").strip(), name
    assert set(cascaded.__all__) <= set(dir(cascaded))
    with pytest.raises(AttributeError, match="no attribute 'resnet1000'"):
        _ = cascaded.resnet1000


def test_importing_the_package_does_not_import_torch():
    program = "import sys, cascaded; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def examples():
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
        if blocks:
            found.append(pytest.param("\n".join(blocks), id=str(page.relative_to(ROOT))))
    return found


@pytest.mark.parametrize("code", examples())
def test_the_examples_of_a_page_run_from_top_to_bottom(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = {"__name__": "example"}
    exec(compile(code, "<example>", "exec"), ran)
    assert "cascaded" in ran


def test_the_version_is_the_same_everywhere():
    assert f"## {cascaded.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {cascaded.__version__}" in (ROOT / "CITATION.cff").read_text()


def names_of(tree):
    """The names that a module uses, and those that are bound anywhere in it."""
    used, bound = set(), set(dir(builtins)) | {"__file__", "__name__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return used, bound


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_that_is_used_is_bound(file):
    """Linters are told to leave undefined names alone, because shapes are written as such."""
    used, bound = names_of(ast.parse(file.read_text()))
    assert used <= bound
