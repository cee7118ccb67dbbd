"""The networks that come with the package: which there are, and how a run becomes one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cascaded.hub.config import CARD
from cascaded.training.runs import CONFIG, WEIGHTS

if TYPE_CHECKING:
    from torch import Tensor

    from cascaded.hub.pretrained import Pretrained

NETWORKS = Path(__file__).parent / "networks"
"""A folder a network, in the form of `save_pretrained`."""


def names() -> list[str]:
    """What the networks that come with the package are called."""
    return sorted(config.parent.name for config in NETWORKS.glob(f"*/{CONFIG}"))


def called(folder: Path) -> str:
    """What loads a folder: a name alone leads to the package first."""
    return f"./{folder}" if str(folder) in names() else str(folder)


HEADINGS = ("name", "model", "data", "file", "step 1", "step 3", "last step")


def listed() -> list[tuple[str, ...]]:
    """A row a network, under `HEADINGS`: the last three are test accuracies."""
    from cascaded.hub.card import model_name
    from cascaded.hub.pretrained import Pretrained

    rows = []
    for name in names():
        net = Pretrained.from_pretrained(NETWORKS / name)
        about = (model_name(net.config), net.config.data, size(NETWORKS / name))
        rows.append((name, *about, *(percent(net.accuracy, step) for step in (1, 3, net.steps))))
    return rows


def size(folder: Path) -> str:
    """How large the weights in a folder are: `1.6 MB`."""
    return f"{(folder / WEIGHTS).stat().st_size / 1e6:.1f} MB"


def percent(accuracy: Sequence[float], step: int) -> str:
    """An accuracy as people read it; empty where it is not known."""
    return f"{accuracy[step - 1]:.1%}" if step <= len(accuracy) else ""


def ship(run: Path, name: str, *, half: bool = True, into: Path = NETWORKS) -> Pretrained:
    """Make a run one of the networks that come with the package, with the accuracy of what is in the file.

    Args:
        run: A run: `runs/td0/0`.
        name: What the network will be called.
        half: Keep the kernels of convolutions in half precision: nearly all of the file, and half of its size. Norms
            and heads stay exact. The network computes in single precision all the same.
        into: The folder of all networks.
    """
    from safetensors.torch import save_file

    from cascaded.files import write_json, write_whole
    from cascaded.hub.pretrained import Pretrained

    net = Pretrained.of_run(run)
    weights = {key: kept(tensor, half) for key, tensor in net.state_dict().items()}
    net.load_state_dict(weights)
    net.accuracy = tuple(measured(net))
    notes = "Convolutions are kept in half precision and computed in single." if half else ""
    card = net.generate_model_card(name=name, license="mit", notes=notes)
    folder = into / name
    write_whole(folder / WEIGHTS, lambda part: save_file(weights, part))
    write_json(folder / CONFIG, net.file.to_json())
    write_whole(folder / CARD, lambda part: part.write_text(str(card), encoding="utf-8"))
    return net


def kept(tensor: Tensor, half: bool) -> Tensor:
    """A weight as the file keeps it."""
    tensor = tensor.detach().cpu().contiguous()
    return tensor.half() if half and tensor.dim() == 4 else tensor


def measured(net: Pretrained) -> list[float]:
    """Accuracy at every step on the test images of its own data."""
    from cascaded.progress import progress
    from cascaded.training.data import load_split
    from cascaded.training.step import accuracy

    images = load_split(net.config, "test")

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        with progress("test images", len(images)) as bar:
            for shown, labels in zip(images.images.split(500), images.labels.split(500), strict=True):
                yield net.normalised(shown), labels
                bar.advance(len(labels))

    return accuracy(net.net, batches(), net.schedule)
