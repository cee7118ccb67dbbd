"""The figures of README.md and docs/, and the picture of the noises that the package ships.

Run after `make demo`: .venv/bin/python scripts/figures.py [out/demo]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from torch.nn.functional import interpolate

import cascaded
from cascaded.data.noise import NOISES
from cascaded.figures.images import NOISE_NAMES
from cascaded.figures.images import NOISES as SHEET
from cascaded.report.explorer import find_activations
from cascaded.training.runs import find_runs

DOCS = Path(__file__).parent.parent / "docs"
PHOTOGRAPHS = "cifar10-sample"
STEPS, SIDE = 8, 48
CROP = (slice(60, 380), slice(120, 440))
"""The part of the photograph that is shown."""


def draw_noises() -> None:
    """The frames of every noise on one photograph, a row per noise."""
    photograph = torch.tensor(load_sample_images().images[0][CROP]).permute(2, 0, 1)[None] / 255
    image = interpolate(photograph, (SIDE, SIDE), mode="area")
    generator = torch.Generator().manual_seed(5)
    films = {"clean": image.expand(STEPS, *image.shape)}
    mean = image.mean(dim=(0, 2, 3), keepdim=True)  # masked pixels get the mean color
    films |= {name: noise.film(image - mean, STEPS, generator) + mean for name, noise in NOISES.items()}
    rows = [torch.cat(list(films[name][:, 0]), dim=-1) for name in NOISE_NAMES]
    pixels = (torch.cat(rows, dim=-2) * 255).round().clamp(0, 255).byte().permute(1, 2, 0).numpy()
    Image.fromarray(np.ascontiguousarray(pixels)).save(SHEET, optimize=True)


def main() -> None:
    """Draw what the pages use."""
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
    draw_noises()
    df = cascaded.results.load(demo)
    recorded = next(own for own in find_activations(find_runs([demo]))[0] if len(own.cascaded))
    figures = {
        "noises": cascaded.figures.noises(),
        "demo-accuracy": cascaded.figures.accuracy_per_step(df[(df.data == PHOTOGRAPHS) & (df.time == "coarse")]),
        "schedules": cascaded.figures.schedules({"serial": recorded.serial, "cascaded": recorded.cascaded}),
        "learning-curve": cascaded.figures.learning_curve(pd.read_json(DOCS / "laptop-td0.jsonl", lines=True)),
    }
    for name, fig in figures.items():
        kind = "png" if name == "noises" else "svg"
        file = cascaded.figures.save(fig, DOCS / name, kinds=(kind,))[kind]
        print(f"wrote {file.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
