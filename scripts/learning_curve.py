"""The learning curve of a run, drawn from its metrics: docs/learning-curve.svg.

Run: .venv/bin/python scripts/learning_curve.py docs/laptop-td0.jsonl (after `make docs`: it installs what draws)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

INK = "#5a6270"
SHOWN = {1: "#a8cfe0", 2: "#5fa8c6", 9: "#0b4f6e"}
"""Steps with a line of their own; the later, the darker. From 3 on little changes."""


def over_epochs(axes: Axes, lines: list[dict]) -> None:
    """Validation accuracy over the epochs, a line a step."""
    epochs = [line["epoch"] for line in lines]
    for step, colour in SHOWN.items():
        accuracy = [100 * line["accuracy"][step - 1] for line in lines]
        axes.plot(epochs, accuracy, color=colour, lw=2, marker="o", ms=4)
        above = 2 if step == 9 else -3
        axes.annotate(f"step {step}", (epochs[-1], accuracy[-1]), (6, above), textcoords="offset points")
    axes.set(xlabel="epoch", ylabel="validation accuracy, %", xlim=(0.8, epochs[-1] + 1.2), ylim=(0, 90))


def over_steps(axes: Axes, accuracy: list[float]) -> None:
    """Test accuracy over the steps."""
    steps = range(1, len(accuracy) + 1)
    axes.plot(steps, [100 * each for each in accuracy], color=SHOWN[9], lw=2, marker="o", ms=4)
    last = (len(accuracy), 100 * accuracy[-1])
    axes.annotate(f"{last[1]:.1f} %", last, (-14, 8), textcoords="offset points")
    axes.set(xlabel="step", ylabel="test accuracy, %", xticks=steps, ylim=(0, 90))


def main(source: Path) -> None:
    """Draw both."""
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    over_epochs(left, lines)
    over_steps(right, lines[-1]["test"])
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
        axes.grid(axis="y", color="#e5e8ec")
        axes.set_axisbelow(True)
    file = Path(__file__).parent.parent / "docs" / "learning-curve.svg"
    figure.savefig(file, facecolor="white", metadata={"Date": None})
    print(f"wrote docs/{file.name}")


if __name__ == "__main__":
    plt.rcParams |= {"svg.hashsalt": "cascaded", "font.family": "sans-serif", "font.size": 10}
    main(Path(sys.argv[1]))
