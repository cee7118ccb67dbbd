"""The two schedules of one network, drawn from the network itself: docs/schedules.svg and README's figure.

Run: .venv/bin/python scripts/schedules.py (after `make docs`, which installs what it draws with)
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

import cascaded
from cascaded import Cascade

CASCADED, SERIAL, INK = "#0b6e99", "#b4580f", "#5a6270"


def closeness(net: Cascade, images: Tensor) -> Tensor:
    """How far each block's output has come at every step, from the first to where it settles: (steps, blocks)."""
    films = []
    hooks = [block.register_forward_hook(lambda _, args, out: films.append(out[0].unfold())) for block in net.blocks]
    net(images)
    for hook in hooks:
        hook.remove()
    distances = [(film - film[-1]).flatten(1).norm(dim=1) for film in films]
    return torch.stack([1 - distance / distance[0] for distance in distances], dim=1)


def draw(axes: Axes, shades: Tensor, colour: str, title: str, lead: str) -> None:
    """A square a block and step; the fuller, the closer to settled."""
    for t, row in enumerate(shades.tolist()):
        for i, shade in enumerate(row):
            place = ((t + 0.54, i + 0.54), 0.92, 0.92)
            axes.add_patch(plt.Rectangle(*place, facecolor="none", edgecolor="#9aa3af", lw=0.6))
            if shade > 0:
                axes.add_patch(plt.Rectangle(*place, color=colour, alpha=0.15 + 0.85 * shade, lw=0))
    steps, blocks = shades.shape
    axes.set(xlim=(0.4, steps + 0.6), ylim=(0.4, blocks + 0.6), aspect="equal")
    axes.set(xlabel="step", xticks=range(1, steps + 1))
    axes.set_title(title, color=colour, loc="left", fontsize=12, fontweight="bold", pad=22)
    axes.text(0, 1.03, lead, transform=axes.transAxes, color=INK, fontsize=9)
    axes.tick_params(length=0, colors=INK)
    axes.xaxis.label.set_color(INK)
    axes.spines[:].set_visible(False)


def main() -> None:
    """Draw both schedules of ResNet-18 side by side."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet18(width=16, generator=generator)
    with torch.no_grad():
        cascade = closeness(net, torch.randn(64, 3, 32, 32, generator=generator))
    fired = torch.tensor(net.cycles("serial")).cumsum(0)  # blocks computed so far
    serial = (torch.arange(cascade.shape[1]) < fired[:, None]).float()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
    draw(left, serial, SERIAL, "serial", "one block a cycle, from settled input")
    draw(right, cascade.clamp(0, 1), CASCADED, "cascaded", "every block from step 2 on, better at every step")
    left.set_ylabel("block", color=INK)
    left.set_yticks(range(1, cascade.shape[1] + 1))
    right.tick_params(labelleft=False)
    file = Path(__file__).parent.parent / "docs" / "schedules.svg"
    figure.savefig(file, facecolor="white", bbox_inches="tight", pad_inches=0.15, metadata={"Date": None})
    print(f"wrote docs/{file.name}")


if __name__ == "__main__":
    plt.rcParams |= {"svg.hashsalt": "cascaded", "font.family": "sans-serif"}
    main()
