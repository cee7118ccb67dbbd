"""Figures as files: SVG, PDF and PNG, with their numbers as CSV."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cascaded.errors import InputError
from cascaded.figures.base import Figure, styled
from cascaded.files import write_whole

DPI = 200
KINDS = ("svg", "pdf", "png", "csv")
WRITTEN = KINDS
"""What `save` writes by default."""
METADATA: dict[str, dict[str, Any]] = {  # no dates and no versions: the same figure is the same file
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def save(fig: Figure, stem: Path | str, kinds: Sequence[str] | None = None) -> dict[str, Path]:
    """Write a figure as STEM.svg, STEM.pdf and STEM.png and its numbers as STEM.csv; returns the files by kind.

    Args:
        fig: From one of the functions of `cascaded.figures`.
        stem: Path without a suffix; folders are made.
        kinds: Which files to write; all four by default.
    """
    kinds = WRITTEN if kinds is None else kinds
    if unknown := sorted(set(kinds) - set(KINDS)):
        raise InputError(f"figures cannot be saved as {', '.join(unknown)}: give some of {', '.join(KINDS)}")
    files = {kind: Path(f"{stem}.{kind}") for kind in kinds}
    for kind, file in files.items():
        content = to_csv(fig.data) if kind == "csv" else rendered(fig, kind)
        write_whole(file, lambda part, content=content: part.write_bytes(content))
    return files


def rendered(fig: Figure, kind: str) -> bytes:
    """The content of a figure's file: svg, pdf or png."""
    file = io.BytesIO()
    with styled():
        if (engine := fig.get_layout_engine()) is not None:
            engine.execute(fig)  # once for all files: it takes longer than drawing one of them
            fig.set_layout_engine("none")
        fig.savefig(file, format=kind, dpi=DPI if kind == "png" else 72, metadata=METADATA[kind])
    return file.getvalue()


def to_csv(data: pd.DataFrame) -> bytes:
    """A table as CSV, without bootstrap draws and columns that are empty."""
    kept = data.drop(columns=["draws", "color"], errors="ignore").dropna(axis=1, how="all")
    text = kept.map(_cell).to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", "backslashreplace")


def _cell(value: Any) -> Any:
    """A value as it is; a text that a spreadsheet would run as a formula gets a quote in front."""
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
