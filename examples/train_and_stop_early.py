"""Train a small cascaded network on digits, then let each image leave as soon as the network is sure of it.

Every step learns from what the next one says (TD(0)), so that good answers come early; how many steps an image takes
is then up to the image.

    python examples/train_and_stop_early.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor

import cascaded
import cascaded.data
from cascaded.data.augment import normalise

BATCH, RATE = 64, 0.1


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and test images as a network takes them, each with its labels."""
    train, test = cascaded.data.load("digits"), cascaded.data.load("digits", "test")
    mean, std = train.statistics()
    return normalise(train.images, mean, std), train.labels, normalise(test.images, mean, std), test.labels


def trained(images: Tensor, labels: Tensor, epochs: int) -> cascaded.Cascade:
    """Six residual blocks, settled after seven steps, and trained as any other module."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet((2, 2, 2), width=16, in_channels=1, generator=generator)
    optimiser = torch.optim.SGD(net.parameters(), RATE, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=epochs * -(-len(images) // BATCH))
    for _ in range(epochs):
        for some in torch.randperm(len(images), generator=generator).split(BATCH):
            loss = cascaded.td_loss(net(images[some]), labels[some], lam=0.0)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net.eval()


def main(epochs: int = 4) -> None:
    """Train, answer early, and compare with waiting to the end."""
    images, labels, test_images, test_labels = digits()
    net = trained(images, labels, epochs)
    print("confidence    right   mean steps")
    for threshold in (0.5, 0.9, 0.99):
        early = cascaded.early_exit(net, test_images, threshold)
        right = (early.predictions == test_labels).double().mean()
        print(f"above {threshold:<4}   {right:6.1%}   {early.steps.double().mean():10.2f}")
    waited = (net.final_logits(test_images).argmax(dim=-1) == test_labels).double().mean()
    print(f"waited       {waited:6.1%}   {net.settle_steps:10.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
