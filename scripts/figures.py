"""The figures of README.md and docs/: from a demo, and from the metrics that are kept there.

Run after `make demo`: .venv/bin/python scripts/figures.py [out/demo/runs]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from cascaded.exhibits.exhibition import exhibition
from cascaded.exhibits.kinds import Figure, Lines, Series
from cascaded.report.files import write_figure
from cascaded.report.look import colours

DOCS = Path(__file__).parent.parent / "docs"
WANTED = {"schedules": "schedules.svg", "noises": "noises.png", "accuracy-": "demo-accuracy.svg"}
"""How the keys of figures begin, and what they are called in docs/."""


STEPS = {1: "step 1", 2: "step 2", 9: "step 9"}
"""Steps with a learning curve of their own: from 3 on little changes."""


def learning_curve() -> Figure:
    """Validation accuracy of the run whose metrics are kept, over the epochs, a line a step."""
    lines = [json.loads(line) for line in (DOCS / "laptop-td0.jsonl").read_text().splitlines()]
    epochs = tuple(float(line["epoch"]) for line in lines)
    series = tuple(
        Series(name, epochs, tuple(line["accuracy"][step - 1] for line in lines)) for step, name in STEPS.items()
    )
    return Figure(
        "learning-curve", "Validation accuracy over epochs", "", Lines("epoch", "accuracy", series, whole=True)
    )


def main() -> None:
    """Draw what the pages use."""
    shown = exhibition([Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo/runs")])
    all_figures = [figure for section in shown.sections for figure in section.figures]
    figures = {name: next(f for f in all_figures if f.key.startswith(start)) for start, name in WANTED.items()}
    figures["learning-curve.svg"] = learning_curve()
    palette = colours([*shown.models, *STEPS.values()])
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in figures.items():
            drawn = write_figure(figure, Path(folder), palette)
            shutil.copyfile(Path(folder) / drawn.files[Path(name).suffix[1:]], DOCS / name)
            print(f"wrote docs/{name}: {figure.title}")


if __name__ == "__main__":
    main()
