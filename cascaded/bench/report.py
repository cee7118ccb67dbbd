"""The benchmark's table and its JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.table import Table

from cascaded.bench.compare import INPUT, Measurement, Setting
from cascaded.files import write_json

Results = Mapping[Setting, Mapping[str, Measurement]]

CAPTION = (
    "loop: the published way, the whole network at every step. serial: one ordinary pass. cascade: ours; plain "
    "convolutions: ours without the special case for small maps. input pipeline: what a batch takes on its way there."
)


def table(results: Results) -> Table:
    """A row a contender: what it took, and how that compares within the same run."""
    shown = Table(box=box.SIMPLE_HEAD, caption=CAPTION, caption_justify="left")
    for heading in ("task", "width", "batch", "contender"):
        shown.add_column(heading)
    figures = ("time", "of cascade's", "faster than loop", "times serial", "memory", "of loop's")
    for heading in (*figures, "operations", "of loop's"):
        shown.add_column(heading, justify="right")
    for setting, measured in results.items():
        compared = ratios(measured)
        where = [setting.task, str(setting.width), str(setting.batch)]
        for name, each in measured.items():
            style = "bold" if name == "cascade" else ""
            cells = _cells(each, compared[name])
            shown.add_row(*where, name, *(cells if name != INPUT else cells[:2]), style=style)
            where = [""] * len(where)
        shown.add_section()
    return shown


def _cells(each: Measurement, ratio: dict[str, float | None]) -> list[str]:
    memory = "" if each.peak_bytes is None else f"{each.peak_bytes / 2**20:,.0f} MiB"
    share = "" if ratio["memory_of_loop"] is None else f"{ratio['memory_of_loop']:.2f}"
    speed = [f"{each.typical * 1000:,.1f} ms", f"{ratio['of_cascade']:.3f}"]
    speed += [f"{ratio['faster_than_loop']:.2f} x", f"{ratio['times_serial']:.2f} x"]
    return [*speed, memory, share, f"{each.operations / 1e9:,.2f} G", f"{ratio['operations_of_loop']:.2f}"]


def ratios(measured: Mapping[str, Measurement]) -> dict[str, dict[str, float | None]]:
    """Every contender against the loop and against one serial pass."""
    loop, serial = measured["loop"], measured["serial"]
    return {
        name: {
            "of_cascade": each.typical / measured["cascade"].typical,
            "faster_than_loop": loop.typical / each.typical,
            "times_serial": each.typical / serial.typical,
            "memory_of_loop": each.peak_bytes / loop.peak_bytes if each.peak_bytes and loop.peak_bytes else None,
            "operations_of_loop": each.operations / loop.operations,
        }
        for name, each in measured.items()
    }


def document(results: Results) -> dict[str, Any]:
    """All that was measured, where, and the ratios."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": {"system": platform.platform(), "processor": platform.processor(), "cores": os.cpu_count()},
        "settings": [
            {
                **asdict(setting),
                "contenders": [asdict(each) | ratios(measured)[name] for name, each in measured.items()],
            }
            for setting, measured in results.items()
        ],
    }


def save(results: Results, file: Path, more: Mapping[str, Any] | None = None) -> None:
    """Write the document, whole or not at all; `more` is told beside it."""
    write_json(file, document(results) | dict(more or {}))
