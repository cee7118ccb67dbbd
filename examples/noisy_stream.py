"""Watch a stream in which every frame is half hidden: what one frame hides, the next may show.

A network that learned from single noisy images is stepped through a film, one frame at a time. With exponential
smoothing its blocks remember a little, so its answers get better while a digit stays, and follow when it changes. The
same weights without time judge every frame alone.

    python examples/noisy_stream.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor

import cascaded
import cascaded.data
from cascaded.data.augment import Augment, normalise
from cascaded.data.noise import Occlusion

BATCH, RATE, STAYS = 64, 0.1, 8
NOISE, MEMORY = Occlusion(patch=0.5), cascaded.ExponentialSmoothing(0.5)


def trained(epochs: int) -> tuple[cascaded.Cascade, tuple[float, ...], tuple[float, ...]]:
    """A network that has seen noisy images, one frame each; and the mean and deviation of its images."""
    digits, generator = cascaded.data.load("digits"), torch.Generator().manual_seed(0)
    mean, std = digits.statistics()
    spoil = Augment(pad=0, flip=False, cutout=0, noise=NOISE)
    net = cascaded.resnet((1, 1, 1, 1), width=16, in_channels=1, generator=generator)
    optimiser = torch.optim.SGD(net.parameters(), RATE, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=epochs * -(-len(digits) // BATCH))
    for _ in range(epochs):
        for some in torch.randperm(len(digits), generator=generator).split(BATCH):
            trace = net(spoil(digits.images[some], mean, std, generator))
            optimiser.zero_grad()
            cascaded.td_loss(trace, digits.labels[some], lam=0.0).backward()
            optimiser.step()
            schedule.step()
    return net.eval(), mean, std


def shown(images: Tensor, generator: torch.Generator) -> Tensor:
    """Three digits one after the other in every stream, each for some frames, every frame hidden elsewhere."""
    return torch.cat([NOISE.film(images.roll(-k, dims=0), STAYS, generator) for k in range(3)])


@torch.no_grad()
def watch(net: cascaded.Cascade, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """Step through all streams at once, print one of them, and count how often both ways are right."""
    alone, digits = net.serial(), cascaded.data.load("digits", "test")
    right, state = torch.zeros(2, STAYS), None
    print("frame   shows   says")
    for number, frames in enumerate(shown(digits.images / 255, torch.Generator().manual_seed(1))):
        frames, truth = normalise(frames, mean, std), digits.labels.roll(-(number // STAYS))
        logits, state = net.step(frames, state, kernel=MEMORY)
        sure, said = logits[0].softmax(dim=-1).max(dim=-1)
        print(f"{number + 1:5}   {truth[0]:5}   {said:4}  {'#' * round(20 * sure.item())}")
        for way, answers in enumerate((logits, alone(frames))):
            right[way, number % STAYS] += (answers.argmax(dim=-1) == truth).double().mean() / 3
    return right


def main(epochs: int = 5) -> None:
    """Train, watch, and compare."""
    right = watch(*trained(epochs))
    print("\nright, by how many frames a digit has been there")
    for name, row in zip(("stream", "each frame alone"), right, strict=True):
        print(f"{name:16}" + "".join(f"{each:6.0%}" for each in row))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
