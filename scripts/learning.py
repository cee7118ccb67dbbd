"""What CE, TD(1) and TD(0) do to every step of five kinds of networks, at about equal cost.

Image classifiers are trained by `cascaded train` on CIFAR-10, the U-Net and the language model by a loop of their own.
Cross-entropy, whose step is cheaper, gets more epochs. The first seed of every network comes before the others.

    python -m scripts.learning [--out out/learning] [--num-workers 1] [NETWORK ...]
    python -m scripts.learning --status [--out out/learning]

Interrupted at any moment, the same command resumes. After every training, OUT/steps.csv has the metric per step of all
that are finished, OUT/masks.npz masks of the U-Net. `scripts.learned` makes figures and tables of copies of them in
results/learning.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from torch import Tensor, nn

import cascaded
from cascaded.analysis.places import bits_per_character, mean_iou
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.data.shapes import CLASSES, shapes
from cascaded.data.text import CHARACTERS, characters
from cascaded.errors import at_least
from cascaded.files import write_whole
from cascaded.models.densenet import densenet
from cascaded.models.gpt import GPT
from cascaded.models.unet import UNet
from cascaded.models.vit import ViT
from cascaded.progress import minutes, table
from cascaded.training.config import ExecutionConfig, RunConfig, recipe_for
from cascaded.training.loop import StoppedError, train
from cascaded.training.runs import LockedError, is_locked, last_metrics, locked
from cascaded.training.seeds import generator_at

METHODS = {"CE": None, "TD(1)": 1.0, "TD(0)": 0.0}
"""Lambda of the TD loss; None for cross-entropy of the last step."""
LAYERS = r"layers\.\d+"
STEPS, MASKS = "steps.csv", "masks.npz"
SHOWN = 2
"""Test images of the U-Net whose masks are saved."""
CHECKPOINT_SECONDS = 60.0
SMOKE_ITEMS = 64


def small_vit(num_classes: int, image_size: int, in_channels: int) -> ViT:
    """A ViT of fewer, wider layers and more tokens."""
    return ViT(num_classes, image_size, patch=4, depth=6, width=96, in_channels=in_channels)


def small_densenet(num_classes: int, in_channels: int) -> nn.Module:
    """A plain dense network of three stages of three blocks, which is converted."""
    return densenet((3, 3, 3), 12, num_classes=num_classes, in_channels=in_channels, pool=True).serial()


@dataclass(frozen=True)
class Training:
    """One network, trained with one method and one seed.

    Attributes:
        network: Name of the network, one of `CASES`.
        method: One of `METHODS`.
        seed: Seed of weights and batches.
        out: The folder of all trainings.
        smoke: Train for one epoch on few items, to test this script.
    """

    network: str
    method: str
    seed: int
    out: Path
    smoke: bool = False

    @property
    def folder(self) -> Path:
        """The folder of this training."""
        words = f"{self.network}/{self.method}/{self.seed}".lower()
        return self.out / words.translate(str.maketrans({" ": "-", ",": None, "(": None, ")": None}))

    @property
    def lam(self) -> float | None:
        """Lambda of the TD loss; None for cross-entropy."""
        return METHODS[self.method]

    @property
    def epochs(self) -> int:
        """Passes over the training data."""
        return 1 if self.smoke else CASES[self.network].epochs[self.lam is None]

    @property
    def items(self) -> int | None:
        """How many items to train on; None for all."""
        return SMOKE_ITEMS if self.smoke else None

    @property
    def result(self) -> Path:
        """The file that is there when the training is finished."""
        return self.folder / "result.json"


@dataclass(frozen=True)
class Case:
    """A network with its data.

    Attributes:
        metric: What is measured at every step.
        epochs: Of the TD loss and of cross-entropy.
        run: Trains and returns the metric per step.
        seeds: How many.
    """

    metric: str
    epochs: tuple[int, int]
    run: Callable[[Training], list[float]]
    seeds: int = 1


# --- one training


def classify(config: RunConfig, training: Training) -> list[float]:
    """Test accuracy per step of a run of `cascaded train`."""
    loss = {"method": "cascaded-ce"} if training.lam is None else {"method": "cascaded-td", "lam": training.lam}
    if training.smoke:
        config = replace(config, data="digits", batch_size=32, max_images=training.items)
    config = replace(config, epochs=training.epochs, seed=training.seed, **loss)
    config = replace(config, fill_statistics=training.lam is None and "densenet" in config.arch)
    last = train(config, training.folder / "run", ExecutionConfig(device="cpu", threads=1), resume=True)
    return (last or {})["test"]


def segment(training: Training) -> list[float]:
    """Mean IoU per step of a U-Net on generated shapes; some of its masks are saved for the figure."""
    torch.manual_seed(training.seed)
    images, masks = shapes("train", training.items)
    net = cascaded.convert(UNet(len(CLASSES), depth=3, width=8), images[:2])
    fit(training, net, images, masks, lr=1e-2, batch_size=16, class_dim=2)
    images, masks = shapes("test", training.items)
    with torch.no_grad():
        predictions = torch.cat([net(part).argmax(dim=2) for part in images.split(100)], dim=1)
    few = {"images": images[:SHOWN, 0], "masks": masks[:SHOWN].byte(), "predictions": predictions[:, :SHOWN].byte()}
    _save_arrays(training.folder / MASKS, {name: each.numpy() for name, each in few.items()})
    return mean_iou(predictions, masks, len(CLASSES)).tolist()


def read_on(training: Training) -> list[float]:
    """Bits per character per step of a language model."""
    torch.manual_seed(training.seed)
    inputs, targets = characters("train", 64, training.items)
    net = cascaded.convert(GPT(len(CHARACTERS), 64), inputs[:2], joins=LAYERS)
    fit(training, net, inputs, targets, lr=3e-3, batch_size=16)
    inputs, targets = characters("test", 64, training.items or 1000)
    with torch.no_grad():
        parts = zip(inputs.split(50), targets.split(50), strict=True)
        bits = [len(labels) * bits_per_character(net(part), labels) for part, labels in parts]
    return (torch.stack(bits).sum(dim=0) / len(inputs)).tolist()


def fit(
    training: Training,
    net: ConvertedModel,
    inputs: Tensor,
    targets: Tensor,
    *,
    lr: float,
    batch_size: int,
    class_dim: int = -1,
) -> None:
    """Train a converted network with AdamW, from its last checkpoint if there is one."""
    optimizer = torch.optim.AdamW(net.parameters(), lr, weight_decay=0.05)
    per_epoch = -(-len(inputs) // batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=training.epochs * per_epoch)
    parts: dict[str, Any] = {"net": net, "optimizer": optimizer, "schedule": schedule}
    file, step = training.folder / "checkpoint.pt", 0
    if file.exists():
        found = torch.load(file, weights_only=True)
        step = found["step"]
        for name, part in parts.items():
            part.load_state_dict(found[name])
    net.train()
    saved = time.monotonic()
    while step < training.epochs * per_epoch:
        epoch, place = divmod(step, per_epoch)
        order = torch.randperm(len(inputs), generator=generator_at(training.seed, "order", epoch))
        batch = order[place * batch_size : (place + 1) * batch_size]
        loss = _loss(net, inputs[batch], targets[batch], training.lam, class_dim)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        step += 1
        if time.monotonic() - saved >= CHECKPOINT_SECONDS or step == training.epochs * per_epoch:
            state = {name: part.state_dict() for name, part in parts.items()} | {"step": step}
            write_whole(file, partial(torch.save, state))
            _write_json(training.folder / "progress.json", step / per_epoch)
            print(f"epoch {step / per_epoch:.1f}/{training.epochs}, loss {loss.item():.3f}", flush=True)
            saved = time.monotonic()
    net.eval()


def _loss(net: ConvertedModel, inputs: Tensor, targets: Tensor, lam: float | None, class_dim: int) -> Tensor:
    """The TD loss over all steps, or cross-entropy of the last one, which costs one pass."""
    if lam is None:
        return cascaded.ce_loss(net.final_logits(inputs)[None], targets, class_dim=class_dim)
    return cascaded.td_loss(net(inputs), targets, lam, class_dim=class_dim)


def by_train(arch: str, **changes: object) -> Callable[[Training], list[float]]:
    """Runs of an architecture on CIFAR-10."""
    return partial(
        classify, replace(recipe_for("laptop", arch), data="cifar10", arch=arch, val_fraction=0.0, **changes)
    )


FEWER = {"optimizer": "adamw", "lr": 2e-3, "weight_decay": 0.05, "max_images": 25_000, "batch_size": 32}
CASES = {  # in the order of their training; epochs for about the same processor time on one thread, in minutes:
    "U-Net": Case("mean IoU", (12, 30), segment),  # 2.5
    "Highway": Case("accuracy", (5, 16), by_train("highway", width=256, lr=0.02)),  # 2
    "GPT": Case("bits per character", (1, 3), read_on, seeds=3),  # 5
    "DenseNet": Case("accuracy", (2, 11), by_train("scripts.learning:small_densenet")),  # 6
    "ViT": Case("accuracy", (2, 10), by_train("vit", joins=LAYERS, precision="bfloat16"), seeds=3),  # 8
    "ViT, 64 tokens": Case("accuracy", (1, 4), by_train("scripts.learning:small_vit", joins=LAYERS, **FEWER)),  # 6
}


# --- all trainings


def trainings(networks: Sequence[str], out: Path, smoke: bool = False) -> list[Training]:
    """All trainings, in order: those with seed 0 first."""
    seeds = range(max(CASES[name].seeds for name in networks))
    return [
        Training(name, method, seed, out, smoke)
        for seed in seeds
        for name in networks
        if seed < CASES[name].seeds
        for method in METHODS
    ]


def work(training: Training) -> None:
    """Train, unless it is finished; then write its metric per step."""
    with locked(training.folder):
        if training.result.exists():
            return
        print(f"{training.network}, {training.method}, seed {training.seed}: {training.epochs} epochs", flush=True)
        case = CASES[training.network]
        with _processor_time(training.folder / "seconds.json") as seconds:
            values = case.run(training)
        row = {"network": training.network, "metric": case.metric, "method": training.method, "seed": training.seed}
        row |= {"epochs": training.epochs, "cpu_seconds": round(seconds()), "value": values}
        _write_json(training.result, row)


@contextmanager
def _processor_time(file: Path) -> Iterator[Callable[[], float]]:
    """Processor time of a training over all sessions: written every few seconds, as a session may be killed."""
    before, start, done = _read_json(file, 0.0), time.process_time(), threading.Event()

    def seconds() -> float:
        return before + time.process_time() - start

    def keep_writing() -> None:
        while not done.wait(10):
            _write_json(file, seconds())

    thread = threading.Thread(target=keep_writing, daemon=True)
    thread.start()
    try:
        yield seconds
    finally:
        done.set()
        thread.join()
        _write_json(file, seconds())


def collect(out: Path) -> None:
    """Write one row per network, method, seed and step, and the masks of the U-Net, of what is finished."""
    found = [each for each in trainings(list(CASES), out) if each.result.exists()]
    if not found:
        return
    rows = pd.DataFrame([_read_json(each.result, {}) for each in found]).explode("value", ignore_index=True)
    rows.insert(4, "step", rows.groupby(["network", "method", "seed"]).cumcount() + 1)
    text = rows.astype({"value": float}).to_csv(index=False, float_format="%.5g", lineterminator="\n")
    write_whole(out / STEPS, lambda part: part.write_text(text))
    masks = {each.method: np.load(each.folder / MASKS) for each in found if each.network == "U-Net"}
    if masks:
        first = next(iter(masks.values()))
        predictions = {method: own["predictions"] for method, own in masks.items()}
        _save_arrays(out / MASKS, {"images": first["images"], "masks": first["masks"], **predictions})


def print_status(planned: Sequence[Training]) -> None:
    """One row per training: finished, running, interrupted or waiting, with its epochs and its processor time."""
    rows, finished = [], 0
    for each in planned:
        row = _read_json(each.result, None)
        finished += row is not None
        seconds = _read_json(each.folder / "seconds.json", None)
        state = "finished" if row else "waiting" if seconds is None else "interrupted"
        if not row and is_locked(each.folder):
            state = "running"
        cells = {"network": each.network, "method": each.method, "seed": str(each.seed), "state": state}
        cells |= {"epochs": f"{_epochs_done(each):.3g}/{each.epochs}"}
        cells |= {"processor time": "" if seconds is None else minutes(seconds)}
        rows.append(cells | {"last step": f"{row['value'][-1]:.3f}" if row else ""})
    console = Console(highlight=False)
    console.print(table(rows, numbers=("seed", "epochs", "processor time", "last step")))
    console.print(f"{finished} of {len(planned)} trainings are finished")


def _epochs_done(training: Training) -> float:
    if training.result.exists():
        return training.epochs
    run = training.folder / "run"
    last = last_metrics(run) if run.exists() else None
    return last["epoch"] if last else _read_json(training.folder / "progress.json", 0)


def _save_arrays(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    def write(part: Path) -> None:
        with part.open("wb") as opened:  # numpy adds a suffix to a name, but not to an open file
            np.savez_compressed(opened, **arrays)

    write_whole(file, write)


def _write_json(file: Path, content: Any) -> None:
    write_whole(file, lambda part: part.write_text(json.dumps(content)))


def _read_json(file: Path, default: Any) -> Any:
    return json.loads(file.read_text()) if file.exists() else default


def _start_workers(count: int, words: Sequence[str]) -> None:
    """The same command in several processes; each trains what no other does."""
    command = [sys.executable, "-m", "scripts.learning", *words, "--num-workers", "1"]
    workers = [subprocess.Popen(command) for _ in range(count)]
    try:
        codes = [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.terminate()
    if any(codes):
        sys.exit(f"{sum(map(bool, codes))} of {count} workers failed: run the same command again to resume")


def main(words: Sequence[str] | None = None) -> None:
    """Train what is missing, or print what there is."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"{', '.join(CASES)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/learning"), help="folder (default: %(default)s)")
    parser.add_argument("--num-workers", type=int, default=1, help="processes, one thread each (default: 1)")
    parser.add_argument("--status", action="store_true", help="print what is finished, and train nothing")
    parser.add_argument("--smoke", action="store_true", help="one epoch on 64 items each, in OUT/smoke")
    options = parser.parse_args(words)
    if unknown := [name for name in options.networks if name not in CASES]:
        parser.error(f"there is no network {unknown[0]!r}: give some of {', '.join(CASES)}")
    at_least(1, num_workers=options.num_workers)
    out = options.out / "smoke" if options.smoke else options.out
    planned = trainings([name for name in CASES if name in (options.networks or CASES)], out, options.smoke)
    if options.status:
        print_status(planned)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped: run the same command again to resume"))
    if options.num_workers > 1:
        _start_workers(options.num_workers, words)
        return
    torch.set_num_threads(1)
    for each in planned:
        with suppress(LockedError):  # another process trains it
            work(each)
            with locked(out):  # one process writes at a time
                collect(out)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, StoppedError):
        sys.exit("stopped: run the same command again to resume")
