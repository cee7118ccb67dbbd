"""Classify a stream of frames, one step per frame, in which a randomly placed square hides part of every frame.

The network is trained on single noisy images. On the stream its blocks use exponential smoothing, so each prediction
combines the current frame with earlier ones: accuracy rises while the digit stays the same, and the prediction follows
when the digit changes. For comparison, the serial network with the same weights classifies each frame separately.

    python examples/noisy_stream.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor

import cascaded
import cascaded.data
from cascaded.data.augment import Augment, normalize
from cascaded.data.noise import Occlusion

BATCH_SIZE, LR = 64, 0.1
FRAMES_PER_DIGIT = 8
NOISE, KERNEL = Occlusion(), cascaded.ExponentialSmoothing(0.5)


def train_network(epochs: int) -> tuple[cascaded.Cascade, tuple[float, ...], tuple[float, ...]]:
    """Train a network on noisy images; also return the mean and standard deviation of the training images."""
    digits, generator = cascaded.data.load("digits"), torch.Generator().manual_seed(0)
    mean, std = digits.statistics()
    augment = Augment(pad=0, flip=False, cutout=0, noise=NOISE)
    net = cascaded.resnet((1, 1, 1, 1), width=16, in_channels=1, generator=generator)
    optimizer = torch.optim.SGD(net.parameters(), LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=epochs * -(-len(digits) // BATCH_SIZE))
    for _ in range(epochs):
        for batch in torch.randperm(len(digits), generator=generator).split(BATCH_SIZE):
            trace = net(augment(digits.images[batch], mean, std, generator))
            optimizer.zero_grad()
            cascaded.td_loss(trace, digits.labels[batch], lam=0.0).backward()
            optimizer.step()
            schedule.step()
    return net.eval(), mean, std


def noisy_frames(images: Tensor, generator: torch.Generator) -> Tensor:
    """One stream per image: three digits in turn, eight frames each, each frame with its own hidden square."""
    return torch.cat([NOISE.film(images.roll(-k, dims=0), FRAMES_PER_DIGIT, generator) for k in range(3)])


@torch.no_grad()
def evaluate(net: cascaded.Cascade, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """Accuracy per frame since the digit changed, (network, frame); prints the predictions for the first stream."""
    serial, digits = net.serial(), cascaded.data.load("digits", "test")
    accuracy, state = torch.zeros(2, FRAMES_PER_DIGIT), None
    print("frame   label   prediction   confidence")
    images = normalize(digits.images, mean, std)
    for number, frames in enumerate(noisy_frames(images, torch.Generator().manual_seed(1))):
        labels = digits.labels.roll(-(number // FRAMES_PER_DIGIT))
        logits, state = net.step(frames, state, kernel=KERNEL)
        confidence, prediction = logits[0].softmax(dim=-1).max(dim=-1)
        print(f"{number + 1:5}   {labels[0]:5}   {prediction:10}   {'#' * round(20 * confidence.item())}")
        for row, outputs in enumerate((logits, serial(frames))):
            accuracy[row, number % FRAMES_PER_DIGIT] += (outputs.argmax(dim=-1) == labels).double().mean() / 3
    return accuracy


def main(epochs: int = 5) -> None:
    """Train, then compare accuracy with and without earlier frames."""
    accuracy = evaluate(*train_network(epochs))
    print("\naccuracy at each frame after the digit changed")
    for name, row in zip(("stream", "single frames"), accuracy, strict=True):
        print(f"{name:16}" + "".join(f"{value:6.0%}" for value in row))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
