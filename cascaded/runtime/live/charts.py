"""What the page shows, as HTML with SVG. Colors of text and lines are those of the page, light or dark."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np
from PIL import Image

from cascaded.figures.prediction import drawn_classes
from cascaded.figures.style import CASCADED, PALETTE, SERIAL
from cascaded.runtime.live.networks import FrameRow, StepRow, Stop

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 256, 48, 112, 14, 40
MAX_ROWS = 20
"""The table has a row per step up to this many steps."""
STRIP = 60
"""Frames in the strips and lines of a stream; older ones are not shown."""
CSS = """
.cl { color: var(--body-text-color); font-size: 15px; }
.cl svg { width: 100%; height: auto; display: block; }
.cl text { fill: var(--body-text-color); fill-opacity: .8; font-size: 13px; }
.cl .axis { stroke: var(--border-color-primary); stroke-width: 1; }
.cl .limit { stroke: var(--body-text-color); stroke-opacity: .6; stroke-dasharray: 2 4; stroke-width: 1.5; }
.cl .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.cl svg .later { opacity: .35; }
.cl .ring { fill: none; stroke: var(--body-text-color); stroke-width: 2; }
.cl .head { display: flex; gap: 14px; align-items: center; margin: 0 0 10px; min-height: 72px; }
.cl .head img { width: 72px; height: 72px; image-rendering: pixelated; border-radius: 6px; flex: none; }
.cl .head b { font-size: 19px; display: block; line-height: 1.35; }
.cl .head p, .cl th, .cl .legend { color: var(--body-text-color); opacity: .8; margin: 0; }
.cl table { width: 100%; border: 0; border-collapse: collapse; margin: 8px 0 0; font-variant-numeric: tabular-nums; }
.cl th, .cl td, .cl tr { border: 0; padding: 3px 8px 3px 0; text-align: left; background: none; }
.cl tbody td { border-top: 1px solid var(--border-color-primary); }
.cl th { font-weight: 500; }
.cl th.number, .cl td.number { text-align: right; padding-right: 0; padding-left: 8px; }
.cl .number { white-space: nowrap; }
.cl .wide { width: 38%; }
.cl .bar { height: 10px; border-radius: 3px; }
.cl tr.stop td { font-weight: 700; }
.cl tr.later .bar { opacity: .4; }
.cl .strip { display: grid; grid-template-columns: 104px 1fr; gap: 4px 8px; align-items: center; margin-top: 8px; }
.cl .cells { display: flex; gap: 1px; height: 22px; }
.cl .cells i { flex: 1; border-radius: 2px; background: var(--border-color-primary); opacity: .35; }
.cl .cells i.on { opacity: 1; }
.cl .legend { display: flex; flex-wrap: wrap; gap: 4px 14px; margin-top: 10px; }
.cl .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; }
.cl .narrow { display: none; }
button[role="tab"][aria-selected="true"] { color: var(--body-text-color) !important; }
@media (max-width: 600px) {
  .cl text { font-size: 25px; }
  .cl .names { display: none; }
  .cl .narrow { display: flex; }
  .cl .wide { display: none; }
  .cl table { font-size: 13px; }
  .cl .number:last-child { display: none; }
  .cl .strip { grid-template-columns: 64px 1fr; }
}
"""
REASONS = {
    "threshold": "its confidence is above {0:g}",
    "deadline": "the deadline is {1:g} ms",
    "last step": "last step",
}


def steps_chart(
    rows: Sequence[StepRow],
    last: int,
    classes: Sequence[str],
    pixels: np.ndarray,
    stop: Stop | None,
    limits: tuple[float | None, float | None],
) -> str:
    """The prediction of one image so far: a sentence, lines of the most probable classes, and a table of all steps.

    Args:
        rows: The steps so far.
        last: The last step.
        classes: Class names.
        pixels: The network's input, (height, width, channels).
        stop: Where the prediction is final; later steps are faded.
        limits: Threshold and deadline.
    """
    probabilities = np.stack([row.probabilities for row in rows]).astype(np.float32)
    drawn = drawn_classes(probabilities, 3)
    end = len(rows) if stop is None else stop.step
    svg = [*_axes(last, "step", limits[0])]
    for index in drawn:
        points = [_point(row.step, last, float(row.probabilities[index])) for row in rows]
        color = class_color(index)
        svg += [_line(points[:end], color), _line(points[end - 1 :], color, " later")]
    named = [(float(probabilities[-1, index]), classes[index], class_color(index)) for index in drawn]
    svg += _names(named)
    if stop is not None:
        x, y = _point(stop.step, last, float(rows[end - 1].probabilities.max()))
        svg.append(f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="8"/>')
    below = _legend(named, "narrow") + (_table(rows, classes, end) if last <= MAX_ROWS else "")
    return _page(_sentence(rows[end - 1], last, classes, pixels, stop, limits), svg, below)


def stream_chart(frames: Sequence[FrameRow], classes: Sequence[str], number: int, reference: int | None = None) -> str:
    """A stream so far: the last frame, the probability of one class in both networks, and what each predicted.

    Args:
        frames: The last frames, at most `STRIP`.
        classes: Class names.
        number: Number of all frames so far.
        reference: The class whose probability is drawn; by default the cascade's most probable one over these frames.
    """
    both = {
        "cascade": (CASCADED, [each.cascade for each in frames]),
        "serial": (SERIAL, [each.serial for each in frames]),
    }
    if reference is None:
        reference = int(np.mean(both["cascade"][1], axis=0).argmax())
    svg, named = [*_axes(STRIP, "frame", None)], []
    for name, (color, values) in reversed(both.items()):
        points = [_point(i, STRIP, float(each[reference])) for i, each in enumerate(values, start=1)]
        svg.append(_line(points, color))
        named.append((float(values[-1][reference]), name, color))
    predicted = {name: [int(each.argmax()) for each in values] for name, (_, values) in both.items()}
    strips = "".join(_strip(name, each) for name, each in predicted.items())
    used = dict.fromkeys(index for each in predicted.values() for index in each)
    named_classes = [(0.0, classes[index], class_color(index)) for index in used]
    what = f"Frame {number}. Lines: probability of {escape(classes[reference])}."
    head = _head(frames[-1].pixels, _changes(predicted, classes), what)
    below = f'{_legend(named, "narrow")}<div class="strip">{strips}</div>{_legend(named_classes)}'
    return _page(head, svg + _names(named), below)


def class_color(index: int) -> str:
    """The color of a class, the same on the whole page; of many classes, some share one."""
    return PALETTE[index % len(PALETTE)]


def _changes(predicted: dict[str, list[int]], classes: Sequence[str]) -> str:
    """What each network predicts now, and how often that has changed."""
    parts = []
    for name, each in predicted.items():
        changes = sum(a != b for a, b in pairwise(each))
        times = "1 change" if changes == 1 else f"{changes} changes"
        parts.append(f"{name}: {escape(classes[each[-1]])}, {times}")
    return "<br>".join(parts)


def _sentence(row: StepRow, last: int, classes: Sequence[str], pixels: np.ndarray, stop: Stop | None, limits) -> str:
    """The prediction in words."""
    label, confidence = classes[int(row.probabilities.argmax())], row.probabilities.max()
    why = "" if stop is None else f"; {REASONS[stop.reason].format(*limits)}"
    title = f"{escape(label)} {confidence:.2f}"
    return _head(pixels, title, f"step {row.step} of {last}, {row.total:.2f} ms{why}")


def _head(pixels: np.ndarray, title: str, line: str) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels).save(file, "png")
    data = base64.b64encode(file.getvalue()).decode()
    picture = f'<img alt="the network\'s input" src="data:image/png;base64,{data}">'
    return f'<div class="head">{picture}<div><b>{title}</b><p>{line}</p></div></div>'


def _page(head: str, svg: Sequence[str], below: str) -> str:
    picture = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="probabilities">{"".join(svg)}</svg>'
    return f'<div class="cl">{head}{picture}{below}</div>'


def _point(step: int, last: int, probability: float) -> tuple[float, float]:
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return LEFT + across * (step - 1) / max(1, last - 1), TOP + down * (1 - probability)


def _axes(last: int, name: str, threshold: float | None) -> list[str]:
    """Lines at probabilities 0, 0.5 and 1, numbers of steps, and the threshold."""
    svg, right = [], WIDTH - RIGHT
    for value in (0, 0.5, 1):
        y = _point(1, last, value)[1]
        svg.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        svg.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for step, anchor in ((1, "start"), ((1 + last) // 2, "middle"), (last, "end")):
        x = _point(step, last, 0)[0]
        svg.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{name} {step}</text>')
    if threshold is not None:
        y = _point(1, last, threshold)[1]
        svg.append(f'<line class="limit" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
    return svg


def _line(points: Sequence[tuple[float, float]], color: str, kind: str = "") -> str:
    """A line with a dot at every point, if there are few."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    few = points if len(points) <= MAX_ROWS else points[-1:]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in few)
    return f'<g class="{kind.strip()}"><polyline class="line" stroke="{color}" points="{path}"/>{dots}</g>'


def _names(named: Sequence[tuple[float, str, str]]) -> list[str]:
    """Names at the right end of the lines, at least one line of text apart and above the axis."""
    ordered = sorted(named, reverse=True)
    places = [_point(1, 2, probability)[1] + 4 for probability, _, _ in ordered]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + 17)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], HEIGHT - BOTTOM + 4 - 17 * (len(places) - 1 - i))
    svg, x = ['<g class="names">'], WIDTH - RIGHT + 10
    for (_, name, color), y in zip(ordered, places, strict=True):
        svg.append(f'<circle cx="{x + 4}" cy="{y - 4:.1f}" r="4" fill="{color}"/>')
        svg.append(f'<text x="{x + 13}" y="{y:.1f}">{escape(name[:12])}</text>')
    return [*svg, "</g>"]


def _legend(named: Sequence[tuple[float, str, str]], kind: str = "") -> str:
    """Names below a chart."""
    spans = (f'<span><i style="background:{color}"></i>{escape(name)}</span>' for _, name, color in named)
    return f'<div class="legend {kind}">{"".join(spans)}</div>'


def _table(rows: Sequence[StepRow], classes: Sequence[str], end: int) -> str:
    """One row per step: the prediction, its probability as a bar, and the time."""
    lines = []
    for row in rows:
        index, probability = int(row.probabilities.argmax()), float(row.probabilities.max())
        kind = "stop" if row.step == end else "later" if row.step > end else ""
        style = f"width:{100 * probability:.0f}%;background:{class_color(index)}"
        cells = f"<td>{row.step}</td><td>{escape(classes[index])}</td>"
        cells += f'<td class="wide"><div class="bar" style="{style}"></div></td>'
        numbers = (f"{probability:.2f}", f"{row.milliseconds:.2f} ms", f"{row.total:.2f} ms")
        cells += "".join(f'<td class="number">{number}</td>' for number in numbers)
        lines.append(f'<tr class="{kind}">{cells}</tr>')
    heads = '<th>step</th><th>prediction</th><th class="wide"></th>'
    heads += "".join(f'<th class="number">{name}</th>' for name in ("confidence", "time", "in all"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _strip(name: str, predicted: Sequence[int]) -> str:
    """One cell per frame, in the color of the predicted class."""
    cells = "".join(f'<i class="on" style="background:{class_color(index)}"></i>' for index in predicted)
    cells += "<i></i>" * (STRIP - len(predicted))
    return f'<span>{name}</span><div class="cells">{cells}</div>'
