"""MetaCog: a small network that reads the outputs of another one and detects out-of-distribution images.

    score(x) = w2 . dropout(relu(W1 x + b1)) + b2        loss = BCE(sigmoid(score), 1 if known else 0)

In- and out-of-distribution images are shuffled together as they are; if there are more of one kind, that kind weighs
more, as in the paper. Everything random comes from one seed. Trials start from the same weights and differ in the order
of the images and in dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from cascaded.errors import InputError
from cascaded.training.seeds import generator_at

CHUNK = 8192


@dataclass(frozen=True)
class MetaCogConfig:
    """How a MetaCog is built and trained. The defaults are the paper's.

    Attributes:
        hidden: Units of the hidden layer.
        dropout: Fraction of them that is dropped in a training step.
        lr: Adam's learning rate.
        weight_decay: Added to the gradient.
        epochs: Passes over all items.
        batch_size: Items per training step.
        standardize: Shift and scale every feature to mean 0 and deviation 1 over the training items.
        seed: Seed of initial weights, order and dropout.
    """

    hidden: int = 256
    dropout: float = 0.5
    lr: float = 1e-3
    weight_decay: float = 5e-4
    epochs: int = 300
    batch_size: int = 256
    standardize: bool = False
    seed: int = 42

    def __post_init__(self):
        if min(self.hidden, self.epochs, self.batch_size) < 1 or not (0 <= self.dropout < 1 and self.lr > 0):
            raise InputError(f"{self} cannot be trained: give sizes of at least 1, a dropout below 1, an lr above 0")


class MetaCog(nn.Module):
    """One hidden layer and one logit, above 0 where an image is likely known.

    Args:
        features: How many numbers describe an item.
        hidden: Units of the hidden layer.
        generator: Where the initial weights come from.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int, hidden: int, generator: Generator):
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))
        # first without storage: torch's own weights would come from the global random state, and change it
        self.hidden = nn.Linear(features, hidden, device="meta").to_empty(device="cpu")
        self.out = nn.Linear(hidden, 1, device="meta").to_empty(device="cpu")
        draw_weights(self.hidden, features**-0.5, generator)
        draw_weights(self.out, hidden**-0.5, generator)

    def prepare(self, features: Float[Tensor, "items features"]) -> Float[Tensor, "items features"]:
        """Features as the network reads them: raw, or standardized if it was trained so."""
        return (features - self.mean) / self.deviation

    def forward(
        self, prepared: Float[Tensor, "items features"], kept: Float[Tensor, "items hidden"] | None = None
    ) -> Float[Tensor, "items"]:
        """The logits; `kept` multiplies the hidden units, for dropout."""
        z = F.relu(self.hidden(prepared))
        return self.out(z if kept is None else z * kept).squeeze(-1)

    @torch.no_grad()
    def scores(self, features: Float32[np.ndarray, "items features"]) -> Float64[np.ndarray, "items"]:
        """How likely each item is known, as a logit: probabilities near 1 would round to ties."""
        expected = len(self.mean)
        if features.ndim != 2 or features.shape[1] != expected:
            raise InputError(
                f"features have shape {features.shape}, this MetaCog was trained on {expected} per item: describe the "
                "items as for its training"
            )
        chunks = torch.from_numpy(features).split(CHUNK)
        return torch.cat([self(self.prepare(each)) for each in chunks]).double().numpy()


def train_metacog(
    features: Float32[np.ndarray, "items features"],
    known: Bool[np.ndarray, "items"],
    config: MetaCogConfig | None = None,
    trial: int = 0,
) -> MetaCog:
    """Train a MetaCog on items that are known and others that are not.

    Args:
        features: What describes the items.
        known: Which of them are of the data the network was trained for.
        config: How; None takes the paper's.
        trial: Which of several trainings from the same initial weights: each has an order and dropout of its own.
    """
    from torch.optim import Adam  # takes longer to import than all of torch

    config = config or MetaCogConfig()
    _check(features, known)
    net = MetaCog(features.shape[1], config.hidden, Generator().manual_seed(config.seed))
    generator = generator_at(config.seed, "order", trial)
    random = np.random.default_rng([config.seed, trial])  # dropout: draws as many numbers in a quarter of the time
    if config.standardize:
        _fit_standard(net, features)
    x, y = net.prepare(torch.from_numpy(features)), torch.from_numpy(known).float()
    adam = Adam(net.parameters(), config.lr, weight_decay=config.weight_decay, fused=True)
    for _ in range(config.epochs):
        for items in torch.randperm(len(x), generator=generator).split(config.batch_size):
            kept = _kept(len(items), config, random)
            loss = F.binary_cross_entropy_with_logits(net(x.index_select(0, items), kept), y[items])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return net.requires_grad_(False)


def draw_weights(layer: nn.Module, bound: float, generator: Generator) -> None:
    """Fill a layer as torch does by default, uniformly from -bound to bound, but from a generator of one's own."""
    for each in layer.parameters():
        nn.init.uniform_(each, -bound, bound, generator=generator)


def _kept(items: int, config: MetaCogConfig, random: np.random.Generator) -> Float[Tensor, "items hidden"] | None:
    """Dropout by hand, for torch's own draws from the global random state: 0 or 1 / (1 - p), with mean 1."""
    if not config.dropout:
        return None
    kept = random.random((items, config.hidden), dtype=np.float32) >= config.dropout
    return torch.from_numpy(kept.astype(np.float32)).div_(1 - config.dropout)


def _fit_standard(net: MetaCog, features: Float32[np.ndarray, "items features"]) -> None:
    """Mean and deviation of every feature; one that does not vary by more than rounding is only centered."""
    mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    rounding = 4 * np.finfo(np.float32).eps * np.abs(mean)
    net.mean.copy_(torch.from_numpy(mean))
    net.deviation.copy_(torch.from_numpy(np.where(deviation > rounding, deviation, 1)))


def _check(features: Float32[np.ndarray, "items features"], known: Bool[np.ndarray, "items"]) -> None:
    if features.ndim != 2 or known.shape != features.shape[:1]:
        raise InputError(
            f"features have shape {features.shape} and known {known.shape}: give (items, features) and (items,)"
        )
    if not known.any() or known.all():
        raise InputError(f"{int(known.sum())} of {len(known)} items are known: give some of both kinds")
