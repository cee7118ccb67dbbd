"""The six noises on a photograph, a film a row: docs/noises.png.

Run: .venv/bin/python scripts/noises.py (the photographs come with scikit-learn)
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_sample_images
from torch import Tensor

from cascaded.data.noise import NOISES
from cascaded.data.sheet import contact_sheet

STEPS, SIDE = 5, 64
CROPS = {0: (60, 120, 320), 1: (40, 140, 340)}  # photograph: top, left and side of what is shown of it


def photographs() -> Tensor:
    """The two photographs, cut to a square and made small: (2, 3, side, side) in 0..1."""
    images = [torch.tensor(image).permute(2, 0, 1) / 255 for image in load_sample_images().images]
    cut = [images[i][:, top : top + side, left : left + side] for i, (top, left, side) in CROPS.items()]
    return torch.cat([F.interpolate(image[None], (SIDE, SIDE), mode="area") for image in cut])


def main() -> None:
    """A row a noise, for each photograph the steps of a film."""
    images, generator = photographs(), torch.Generator().manual_seed(5)
    films = {"clean": images.expand(STEPS, *images.shape)}
    films |= {name: noise.film(images, STEPS, generator) for name, noise in NOISES.items()}
    rows = [(name, (film.transpose(0, 1).flatten(0, 1) * 255).round().to(torch.uint8)) for name, film in films.items()]
    file = Path(__file__).parent.parent / "docs" / "noises.png"
    contact_sheet(rows).quantize(192).save(file, optimize=True)
    print(f"wrote docs/{file.name} ({file.stat().st_size // 1024} KB)")


if __name__ == "__main__":
    main()
