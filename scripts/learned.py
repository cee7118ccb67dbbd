"""Figures and tables of what `scripts.learning` trained, from results/learning (steps.csv and masks.npz).

    python -m scripts.learned [FOLDER] [--docs docs]

Draws learning.svg and masks.png into the folder of the documentation, and prints the section of docs/convert.md in
Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cascaded import figures
from cascaded.errors import InputError
from cascaded.figures import base
from cascaded.figures.base import Figure, styled
from cascaded.figures.style import GRID, PALETTE, color
from cascaded.progress import counted
from cascaded.results.metrics import Metric

ROOT = Path(__file__).parent.parent
COLORS = {
    "CE": color("cascaded-ce"),
    "TD(1)": color("cascaded-td", 1.0),
    "TD(0)": color("cascaded-td", 0.0),
}
PANELS = ("ViT", "U-Net", "GPT", "Highway", "DenseNet")
"""Networks of the figure; the tables have all."""
METRICS = {
    "accuracy": Metric("accuracy", "accuracy", "%", 100, True),
    "mean IoU": Metric("mean IoU", "mean IoU", "%", 100, True),
    "bits per character": Metric("bits per character", "bits per character", higher_is_better=False),
}
HEADING = "## Does TD's advantage carry over?"
SETUP = """
`python -m scripts.learning` trains six networks with cross-entropy of the last step (CE), TD(1) and TD(0): a ViT of 12
layers and 16 tokens, one of 6 layers and 64 tokens, a Highway network and a DenseNet on CIFAR-10, a U-Net on generated
shapes, and a language model of characters on the docstrings of Python's standard library. The three methods of a
network take about the same processor time: a step of CE costs one pass through the model, so it gets more epochs. All
trainings are short, minutes on one core: longer ones give better networks.
""".strip()


def read_steps(folder: Path) -> pd.DataFrame:
    """The metric per network, method, seed and step."""
    file = folder / "steps.csv"
    if not file.exists():
        raise InputError(f"there is no {file}: train with python -m scripts.learning, then copy its steps.csv")
    return pd.read_csv(file)


def per_step(df: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over seeds, per network, method and step."""
    groups = df.groupby(["network", "metric", "method", "step"], sort=False)["value"]
    return groups.agg(value="mean", sem="sem", seeds="count").reset_index()


# --- figures


@styled()
def metric_per_step(df: pd.DataFrame) -> Figure:
    """The metric at every step, a panel per network and a line per method, with a band of one standard error.

    Args:
        df: From `read_steps`.
    """
    bands = per_step(df)
    names = [name for name in PANELS if name in set(bands["network"])]
    if not names:
        raise InputError(f"the table has none of {', '.join(PANELS)}: train them with python -m scripts.learning")
    parts = [bands[bands["network"] == name] for name in names]
    metrics = [METRICS[part["metric"].iloc[0]] for part in parts]
    fig, axes = base.grid([_title(*each) for each in zip(names, metrics, strict=True)], 1.6, "y")
    for ax, part, metric in zip(axes, parts, metrics, strict=True):
        for method, line in part.groupby("method", sort=False):
            own = COLORS[str(method)]
            ax.plot(line["step"], line["value"], color=own, label=method)
            ax.fill_between(
                line["step"], line["value"] - line["sem"], line["value"] + line["sem"], color=own, alpha=0.15
            )
        base.set_format(ax, "y", metric, ticks=4)
        base.set_format(ax, "x", None, whole=True, ticks=7)
    base.legend(fig, [base.line_handle(method, own) for method, own in COLORS.items()])
    fig.supxlabel("step")
    fig.data = bands[bands["network"].isin(names)]
    return fig


def _title(network: str, metric: Metric) -> str:
    return f"{network}: {metric.label}" + ("" if metric.higher_is_better else ", lower is better")


def masks_per_step(arrays: dict[str, np.ndarray]) -> Figure:
    """Images with noise, the predicted mask at every step, and the true mask; a row per method.

    Args:
        arrays: Content of masks.npz: images, masks, and the predictions of each method, `(step, item, height, width)`.
    """
    rows = {}
    for item, (image, mask) in enumerate(zip(arrays["images"], arrays["masks"], strict=True)):
        gray = np.broadcast_to((255 * image.clip(0, 1)).astype(np.uint8), (3, *image.shape))
        for method in (method for method in COLORS if method in arrays):
            steps = [_colored(prediction) for prediction in arrays[method][:, item]]
            captions = ["image", *(f"step {step}" for step in range(1, len(steps) + 1)), "true mask"]
            rows[f"{method}, image {item + 1}"] = (np.stack([gray, *steps, _colored(mask)]), captions)
    return figures.gallery(rows)


def _colored(mask: np.ndarray) -> np.ndarray:
    """Classes of pixels as colors, `(3, height, width)`."""
    codes = [[int(own[place : place + 2], 16) for place in (1, 3, 5)] for own in (GRID, *PALETTE[:3])]
    return np.array(codes, np.uint8)[mask].transpose(2, 0, 1)


# --- Markdown


def section(df: pd.DataFrame) -> str:
    """The section of the page, without its conclusions."""
    bands, parts = per_step(df), [HEADING, SETUP, summary(df)]
    for name, part in bands.groupby("network", sort=False):
        parts += [f"**{name}**: {_caption(df[df['network'] == name], part)}", table(part)]
    return "\n\n".join(parts)


def summary(df: pd.DataFrame) -> str:
    """Per network: the metric averaged over the steps, and that of the last step."""
    rows = []
    for name, part in per_step(df).groupby("network", sort=False):
        metric = METRICS[part["metric"].iloc[0]]
        groups = dict(list(part.sort_values("step").groupby("method")["value"]))
        means = [metric.format(groups[each].mean()) if each in groups else "-" for each in COLORS]
        lasts = [metric.format(groups[each].iloc[-1]) if each in groups else "-" for each in COLORS]
        rows.append([str(name), metric.label, *means, *lasts])
    headings = [f"{what}: {method}" for what in ("mean over steps", "last step") for method in COLORS]
    return markdown(["network", "metric", *headings], rows)


def table(bands: pd.DataFrame) -> str:
    """One network: a row per method, a column per step."""
    metric, rows = METRICS[bands["metric"].iloc[0]], []
    for method in (method for method in COLORS if method in set(bands["method"])):
        line = bands[bands["method"] == method].sort_values("step")
        rows.append([method, *(metric.format(value) for value in line["value"])])
    steps = [str(step) for step in sorted(set(bands["step"]))]
    return markdown(["step", *steps], rows)


def _caption(df: pd.DataFrame, bands: pd.DataFrame) -> str:
    """Metric, seeds and cost, of one network."""
    metric = METRICS[bands["metric"].iloc[0]]
    runs = df.drop_duplicates(["method", "seed"]).groupby("method", sort=False)
    costs = [
        f"{method} {counted(own['epochs'].iloc[0], 'epoch')} in {own['cpu_seconds'].mean() / 60:.1f} min"
        for method, own in runs
    ]
    seeds = bands["seeds"].max()
    words = "one seed" if seeds == 1 else f"mean of {seeds} seeds, standard error at most {bands['sem'].max():.2g}"
    if seeds > 1 and metric.unit:
        words = f"mean of {seeds} seeds, standard error at most {100 * bands['sem'].max():.1f} points"
    direction = "" if metric.higher_is_better else ", lower is better"
    return f"{metric.label} per step{direction}; {words}; {', '.join(costs)} on one core."


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(words: Sequence[str] | None = None) -> None:
    """Draw the figures, print the section."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "results" / "learning")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the figures")
    options = parser.parse_args(words)
    df = read_steps(options.folder)
    figures.save(metric_per_step(df), options.docs / "learning", kinds=("svg",))
    if (options.folder / "masks.npz").exists():
        with np.load(options.folder / "masks.npz") as arrays:
            figures.save(masks_per_step(dict(arrays)), options.docs / "masks", kinds=("png",))
    print(section(df))


if __name__ == "__main__":
    main()
