"""What CE, TD(1) and TD(0) do to every step of five kinds of networks: results/learning.csv.

Image classifiers are trained by `cascaded train`, the U-Net and the language model by the loop of the examples. The
three methods of a network take about the same processor time: cross-entropy, whose step is cheaper, gets more epochs.

    python -m scripts.learning [NETWORK ...] [--out out/learning]

Finished networks are skipped, interrupted ones of `cascaded train` resume; run it twice for two at a time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import save_file
from torch import nn

import cascaded
from cascaded.analysis.places import bits_per_character, mean_iou
from cascaded.data.shapes import CLASSES, shapes
from cascaded.data.text import CHARACTERS, characters
from cascaded.files import write_whole
from cascaded.models.densenet import densenet
from cascaded.models.gpt import GPT
from cascaded.models.unet import UNet
from cascaded.models.vit import ViT
from cascaded.training.config import RunConfig, recipe_for
from cascaded.training.loop import train
from cascaded.training.runs import LockedError, locked
from examples import anytime

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "results" / "learning.csv"
METHODS = {"CE": None, "TD(1)": 1.0, "TD(0)": 0.0}
"""Lambda of the TD loss; None for cross-entropy of the last step."""
LAYERS = r"layers\.\d+"


def small_vit(num_classes: int, image_size: int, in_channels: int) -> ViT:
    """A ViT of fewer, wider layers and more tokens."""
    return ViT(num_classes, image_size, patch=4, depth=6, width=96, in_channels=in_channels)


def small_densenet(num_classes: int, in_channels: int) -> nn.Module:
    """A plain dense network of three stages of three blocks, which is converted."""
    return densenet((3, 3, 3), 12, num_classes=num_classes, in_channels=in_channels, pool=True).serial()


@dataclass(frozen=True)
class Case:
    """A network with its data.

    Attributes:
        metric: What is measured at every step.
        epochs: Of the TD loss and of cross-entropy.
        run: Trains with lambda, epochs and seed in a folder; returns the metric per step.
        seeds: How many.
    """

    metric: str
    epochs: tuple[int, int]
    run: Callable[[float | None, int, int, Path], list[float]]
    seeds: int = 1


def classify(config: RunConfig, lam: float | None, epochs: int, seed: int, folder: Path) -> list[float]:
    """Test accuracy per step of a run of `cascaded train`."""
    loss = {"method": "cascaded-ce"} if lam is None else {"method": "cascaded-td", "lam": lam}
    last = train(replace(config, epochs=epochs, seed=seed, **loss), folder / str(seed), resume=True)
    return (last or {})["test"]


def segment(lam: float | None, epochs: int, seed: int, folder: Path) -> list[float]:
    """Mean IoU per step of a U-Net on generated shapes; its weights are saved for the figure of its masks."""
    images, masks = shapes("train")
    torch.manual_seed(seed)
    model = UNet(len(CLASSES), depth=3, width=8)
    net = cascaded.convert(model, images[:2])
    anytime.train(net, images, masks, loss_of(lam, class_dim=2), epochs=epochs, lr=1e-2, batch_size=16, seed=seed)
    save_file(model.state_dict(), folder / "model.safetensors")
    parts = [(logits.argmax(dim=2), labels) for logits, labels in anytime.evaluated(net, *shapes("test"))]
    predictions, labels = torch.cat([part for part, _ in parts], dim=1), torch.cat([part for _, part in parts])
    return mean_iou(predictions, labels, len(CLASSES)).tolist()


def read_on(lam: float | None, epochs: int, seed: int, folder: Path) -> list[float]:
    """Bits per character per step of a language model."""
    inputs, targets = characters("train", 64)
    torch.manual_seed(seed)
    net = cascaded.convert(GPT(len(CHARACTERS), 64), inputs[:2], joins=LAYERS)
    anytime.train(net, inputs, targets, loss_of(lam), epochs=epochs, lr=3e-3, batch_size=32, seed=seed)
    tested = anytime.evaluated(net, *characters("test", 64, 1000), size=50)
    bits = [len(labels) * bits_per_character(logits, labels) for logits, labels in tested]
    return (torch.stack(bits).sum(dim=0) / 1000).tolist()


def loss_of(lam: float | None, class_dim: int = -1) -> Callable[..., torch.Tensor]:
    """The TD loss, or cross-entropy of the last step."""
    if lam is None:
        return partial(cascaded.ce_loss, class_dim=class_dim)
    return partial(cascaded.td_loss, lam=lam, class_dim=class_dim)


def by_train(arch: str, **changes: object) -> Callable[[float | None, int, int, Path], list[float]]:
    """Runs of an architecture on CIFAR-10."""
    return partial(classify, replace(recipe_for("laptop", arch), data="cifar10", arch=arch, **changes))


ADAM = {"optimizer": "adamw", "lr": 2e-3, "weight_decay": 0.05}
CASES = {
    "Highway": Case("accuracy", (10, 35), by_train("highway", width=256, lr=0.02)),
    "U-Net": Case("mean IoU", (12, 36), segment),
    "DenseNet": Case("accuracy", (4, 12), by_train("scripts.learning:small_densenet")),
    "ViT": Case("accuracy", (3, 20), by_train("vit", joins=LAYERS, batch_size=128), seeds=3),
    "GPT": Case("bits per character", (2, 8), read_on, seeds=3),
    "ViT, 64 tokens": Case("accuracy", (2, 8), by_train("scripts.learning:small_vit", joins=LAYERS, **ADAM)),
}


def work(name: str, method: str, seed: int, out: Path) -> None:
    """Train one network, unless it is done or another process does."""
    case, lam = CASES[name], METHODS[method]
    folder = out / name.replace(" ", "-").replace(",", "") / method
    done = folder / f"{seed}.json"
    epochs = case.epochs[lam is None]
    with locked(folder):
        if done.exists():
            return
        print(f"{name}, {method}, seed {seed}: {epochs} epochs", flush=True)
        start = time.process_time()
        values = case.run(lam, epochs, seed, folder)
        row = {"network": name, "metric": case.metric, "method": method, "seed": seed, "epochs": epochs}
        row |= {"cpu_seconds": round(time.process_time() - start), "values": values}
        write_whole(done, lambda part: part.write_text(json.dumps(row)))


def collect(out: Path) -> pd.DataFrame:
    """One row per network, seed and step."""
    rows = [json.loads(file.read_text()) for file in sorted(out.glob("*/*/*.json"))]
    table = pd.DataFrame([row for row in rows if row["network"] in CASES]).explode("values", ignore_index=True)
    table["step"] = table.groupby(["network", "method", "seed"]).cumcount() + 1
    return table.rename(columns={"values": "value"}).sort_values(["network", "method", "seed", "step"])


def main(words: Sequence[str] | None = None) -> None:
    """Train what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", choices=[*CASES, []], help="which networks (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/learning"))
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    for name in options.networks or CASES:
        for seed in range(CASES[name].seeds):
            for method in METHODS:
                with suppress(LockedError):  # another process is training it
                    work(name, method, seed, options.out)
    TABLE.parent.mkdir(exist_ok=True)
    collect(options.out).to_csv(TABLE, index=False, float_format="%.5g")
    print(f"wrote {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
