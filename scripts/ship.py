"""Add a run to the networks shipped with the package, and list them all in docs/pretrained.md.

Run: .venv/bin/python scripts/ship.py runs/td0/0 cifar10-td0 (needs the test images of its data), or without arguments
to write the model cards and the page again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from cascaded.files import write_json, write_whole
from cascaded.hub.card import COLUMNS, shipped_networks
from cascaded.hub.locate import NETWORKS, shipped
from cascaded.hub.pretrained import Pretrained
from cascaded.progress import progress
from cascaded.training.data import load_split
from cascaded.training.rounded import half
from cascaded.training.run_file import CONFIG, WEIGHTS
from cascaded.training.step import accuracy

PAGE = Path(__file__).parent.parent / "docs" / "pretrained.md"
BEGIN, END = "<!-- networks -->\n\n", "\n<!-- end of networks -->"
NOTES = "Convolution weights are stored in half precision and computed in single precision."


def ship(run: Path, name: str, into: Path = NETWORKS) -> Pretrained:
    """Save a run with the test accuracy of its rounded weights.

    Args:
        run: A run, such as `runs/td0/0`.
        name: The name of the network.
        into: The folder of all networks.
    """
    net = Pretrained.of_run(run)
    weights = {key: torch.from_numpy(half(each.cpu().numpy())) for key, each in net.state_dict().items()}
    net.load_state_dict(weights)
    net.accuracy = tuple(test_accuracy(net))
    write_whole(into / name / WEIGHTS, lambda part: save_file(weights, part))
    write_json(into / name / CONFIG, net.run_file.to_json())
    write_card(into / name)
    return net


def test_accuracy(net: Pretrained) -> list[float]:
    """Accuracy per step on the test images of its own data."""
    images = load_split(net.config, "test")

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        with progress("test images", len(images)) as bar:
            for pixels, labels in zip(images.images.split(500), images.labels.split(500), strict=True):
                yield net.prepare(pixels), labels
                bar.advance(len(labels))

    return accuracy(net.net, batches(), net.schedule)


def card_text(folder: Path) -> str:
    """The model card of a shipped network."""
    card = Pretrained.of_run(folder).generate_model_card(name=folder.name, license="mit", notes=NOTES)
    return f"{card}\n"


def write_card(folder: Path) -> None:
    """Write the model card of a shipped network."""
    write_whole(folder / "README.md", lambda part: part.write_text(card_text(folder), encoding="utf-8"))


def page() -> str:
    """docs/pretrained.md with a table of the shipped networks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    aligned = ["---" if place < 3 else "---:" for place in range(len(COLUMNS))]
    rows = [COLUMNS, tuple(aligned), *((f"`{name}`", *others) for name, *others in shipped_networks())]
    return before + BEGIN + "".join(f"| {' | '.join(row)} |\n" for row in rows) + END + after


def main() -> None:
    """Ship a run, and update the model cards and the page."""
    if len(sys.argv) > 1:
        run, name = sys.argv[1:]
        net = ship(Path(run), name)
        print(f"shipped {run} as {name}, test accuracy {net.accuracy[-1]:.2%}")
    for name in shipped():
        write_card(NETWORKS / name)
    write_whole(PAGE, lambda part: part.write_text(page()))
    print(f"wrote {PAGE.relative_to(PAGE.parent.parent)} and the model cards of {', '.join(shipped())}")


if __name__ == "__main__":
    main()
