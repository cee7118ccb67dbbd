"""Tiny sets of images in place of the real ones: everything runs on them, and nothing is learned."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

TERRIERS = [f"breed {number} terrier" for number in range(10)]
SIDE = 64
"""Pixels of the terriers' side, which the real ones have 224 of."""


def tiny_data(folder: Path) -> Path:
    """CIFAR-10 and CIFAR-100 with judgements, two sets of another kind, and terriers; each in its own folder."""
    ten = [f"class {number}" for number in range(10)]
    _write(folder / "cifar10", {"train": 12, "test": 3}, {"label": ten})
    _write(folder / "cifar100", {"train": 10, "test": 1}, {"fine_label": [f"class {number}" for number in range(100)]})
    for name in ("svhn", "tinyimagenet"):
        _write(folder / name, {"validation": 2, "test": 2}, {"label": [f"other {number}" for number in range(10)]})
    _write(folder / "imagenet", {"train": 14}, {"label": TERRIERS}, side=SIDE)
    random = np.random.default_rng(0)
    counts = random.integers(1, 20, (10_000, 10))
    counts[np.arange(10_000), np.arange(10_000) % 10] += 30  # most people see what the label says
    np.save(folder / "cifar10h-counts.npy", counts)
    np.savez(folder / "cifar10-cscores-orig-order.npz", labels=np.arange(50_000) % 10, scores=random.random(50_000))
    return folder


def _write(folder: Path, splits: dict[str, int], names: dict[str, Sequence[str]], side: int = 32) -> None:
    """Parquet files with so many images of every class, the classes by turns."""
    import datasets

    datasets.disable_progress_bars()
    folder.mkdir(parents=True)
    (column, classes), draws = next(iter(names.items())), np.random.default_rng(len(folder.name))
    columns = {"img": datasets.Image(), column: datasets.ClassLabel(names=list(classes))}
    if column == "fine_label":
        columns["coarse_label"] = datasets.ClassLabel(names=[f"kind {number}" for number in range(20)])
    for split, count in splits.items():
        labels = [number % len(classes) for number in range(count * len(classes))]
        rows = {"img": [{"bytes": _png(draws, side), "path": None} for _ in labels], column: labels}
        if "coarse_label" in columns:
            rows["coarse_label"] = [label // 5 for label in labels]
        made = datasets.Dataset.from_dict(rows, features=datasets.Features(columns))
        made.to_parquet(folder / f"{split}-00000-of-00001.parquet")


def _png(draws: np.random.Generator, side: int) -> bytes:
    file = io.BytesIO()
    coarse = draws.integers(256, size=(4, 4, 3), dtype=np.uint8)  # few colors: a small file
    Image.fromarray(coarse).resize((side, side)).save(file, "PNG")
    return file.getvalue()
