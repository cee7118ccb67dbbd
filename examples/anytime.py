"""What the `anytime_*.py` examples share: their options, a training loop, and a table of a metric per step."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

import cascaded

Loss = Callable[[Tensor, Tensor], Tensor]


def parse(description: str, words: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of an example, from the command line by default."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--lam", type=float, default=0.0, help="lambda of the TD loss, from 0 to 1 (default: 0)")
    parser.add_argument("--ce", action="store_true", help="train the last step only, with cross-entropy")
    parser.add_argument("--epochs", type=int, help="epochs to train (default: the example's own)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and batches (default: 0)")
    parser.add_argument("--quick", action="store_true", help="a small network on few items, in seconds")
    return parser.parse_args(words)


def chosen_loss(options: argparse.Namespace, class_dim: int = -1) -> Loss:
    """The TD loss, or cross-entropy of the last step."""
    if options.ce:
        return partial(cascaded.ce_loss, class_dim=class_dim)
    return partial(cascaded.td_loss, lam=options.lam, class_dim=class_dim)


def train(
    net: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
    *,
    epochs: int,
    lr: float,
    batch_size: int = 64,
    seed: int = 0,
    augment: Callable[[Tensor, torch.Generator], Tensor] = lambda batch, _: batch,
) -> None:
    """Train a converted network like any other module."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=epochs * -(-len(inputs) // batch_size))
    net.train()
    for epoch in range(1, epochs + 1):
        total = 0.0
        for batch in torch.randperm(len(inputs), generator=generator).split(batch_size):
            value = loss(net(augment(inputs[batch], generator)), targets[batch])
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += len(batch) * value.item()
        print(f"epoch {epoch}   loss {total / len(inputs):.3f}", flush=True)
    net.eval()


def evaluated(net: nn.Module, inputs: Tensor, targets: Tensor, size: int = 100) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs `(time, items, ...)` and targets, some items at a time: all outputs may not fit in memory."""
    with torch.no_grad():
        for part, labels in zip(inputs.split(size), targets.split(size), strict=True):
            yield net(part), labels


def print_steps(name: str, values: Tensor, unit: str) -> None:
    """One row per step."""
    print(f"step   {name}")
    for step, value in enumerate(values.tolist(), start=1):
        print(f"{step:4}   {value:.1%}" if unit == "%" else f"{step:4}   {value:.3f} {unit}")
