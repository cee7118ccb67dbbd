"""The prediction for one image: the image, the network's input, and class probabilities per step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, UInt8
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cascaded.figures.base import Figure, styled
from cascaded.figures.style import INK, MUTED, PALETTE

FADED = 0.3
"""Opacity of lines after the final prediction."""

MARKED = 20
"""Up to this many steps, every step has a marker."""


@styled()
def prediction(
    image: UInt8[np.ndarray, "height width 3"],
    network_input: UInt8[np.ndarray, "rows columns channels"],
    probabilities: Float32[np.ndarray, "time classes"],
    classes: Sequence[str],
    *,
    step: int,
    threshold: float | None = None,
    top: int = 3,
    title: str = "",
    model: str = "",
) -> Figure:
    """Draw an image, what the network receives of it, and the probabilities of its classes over time.

    Args:
        image: The image; the border that the network does not receive is faded.
        network_input: The network's input.
        probabilities: Class probabilities per step.
        classes: Class names.
        step: The step of the final prediction, from 1; later steps are faded.
        threshold: The confidence threshold, drawn as a dotted line.
        top: Draw at least this many classes, and every class that is predicted at any step.
        title: The title of the figure.
        model: The name of the network.
    """
    fig = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = fig.subplot_mosaic([["image", "lines"], ["input", "lines"]], width_ratios=[1, 2.6], height_ratios=[2, 1])
    fig.suptitle(title, x=0.01, ha="left", weight="bold", wrap=True)
    _draw_images(axes["image"], axes["input"], image, network_input)
    _draw_lines(axes["lines"], probabilities, classes, drawn_classes(probabilities, top), step)
    if threshold is not None:
        _draw_threshold(axes["lines"], threshold, step, float(probabilities[step - 1].max()))
    axes["lines"].set_title(model, color=MUTED, fontsize="small")
    axes["lines"].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return fig


def drawn_classes(probabilities: Float32[np.ndarray, "time classes"], top: int) -> list[int]:
    """Classes by their highest probability: all that are predicted at any step, and at least `top`."""
    by_peak = np.argsort(-probabilities.max(axis=0), kind="stable").tolist()
    predicted = set(probabilities.argmax(axis=1).tolist())
    others = [index for index in by_peak if index not in predicted][: max(0, top - len(predicted))]
    return [index for index in by_peak if index in predicted or index in others]


def _draw_images(above: Axes, below: Axes, image: np.ndarray, network_input: np.ndarray) -> None:
    height, width = image.shape[:2]
    ratio = network_input.shape[1] / network_input.shape[0]
    kept_width, kept_height = min(width, round(height * ratio)), min(height, round(width / ratio))
    left, top = (width - kept_width) // 2, (height - kept_height) // 2
    faded = (0.38 * image + 0.62 * 255).astype(np.uint8)
    center = np.s_[top : top + kept_height, left : left + kept_width]
    faded[center] = image[center]
    received = np.broadcast_to(network_input, (*network_input.shape[:2], 3))
    for axes, name, pixels in ((above, "image", faded), (below, "network input", received)):
        axes.imshow(pixels)
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{name}, {pixels.shape[1]} x {pixels.shape[0]}", color=MUTED, fontsize="small")


def _draw_lines(axes: Axes, probabilities: np.ndarray, classes: Sequence[str], drawn: list[int], step: int) -> None:
    steps = np.arange(1, len(probabilities) + 1)
    marker = "o" if len(steps) <= MARKED else ""
    for rank, index in enumerate(drawn):
        # a class has the same color in all figures where there are enough colors
        color = PALETTE[(index if len(classes) <= len(PALETTE) else rank) % len(PALETTE)]
        style = {"color": color, "marker": marker, "markersize": 3.5, "clip_on": False}
        axes.plot(steps[:step], probabilities[:step, index], label=classes[index], **style)
        axes.plot(steps[step - 1 :], probabilities[step - 1 :, index], alpha=FADED, **style)
    axes.set(xlabel="step", ylabel="probability", ylim=(0, 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")


def _draw_threshold(axes: Axes, threshold: float, step: int, confidence: float) -> None:
    """A dotted line at the threshold, and a ring around the prediction that is above it."""
    axes.axhline(threshold, color=MUTED, linestyle=":", label=f"threshold {threshold:g}")
    if confidence <= threshold:
        return
    ring = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "linestyle": "", "clip_on": False}
    axes.plot([step], [confidence], color=INK, label=f"stop at step {step}", **ring)
