"""Train a small cascaded network on digits, then stop on each image at a confidence threshold.

The network is trained with TD(0): the target of every step is the prediction of the next one, which makes early
predictions accurate. At test time each image stops at the first step whose confidence exceeds the threshold.

    python examples/train_and_stop_early.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor

import cascaded
import cascaded.data
from cascaded.data.augment import normalize

BATCH_SIZE, LR = 64, 0.1


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalized training images and labels, normalized test images and labels."""
    train, test = cascaded.data.load("digits"), cascaded.data.load("digits", "test")
    mean, std = train.statistics()
    return normalize(train.images, mean, std), train.labels, normalize(test.images, mean, std), test.labels


def train_network(images: Tensor, labels: Tensor, epochs: int) -> cascaded.Cascade:
    """Train six residual blocks, whose output is final after seven steps, like any other module."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet((2, 2, 2), width=16, in_channels=1, generator=generator)
    optimizer = torch.optim.SGD(net.parameters(), LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=epochs * -(-len(images) // BATCH_SIZE))
    for _ in range(epochs):
        for batch in torch.randperm(len(images), generator=generator).split(BATCH_SIZE):
            loss = cascaded.td_loss(net(images[batch]), labels[batch], lam=0.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def main(epochs: int = 4) -> None:
    """Train, then compare early exit with running all steps."""
    images, labels, test_images, test_labels = digits()
    net = train_network(images, labels, epochs)
    print("threshold   accuracy   mean steps")
    for threshold in (0.5, 0.9, 0.99):
        early = cascaded.early_exit(net, test_images, threshold)
        accuracy = (early.predictions == test_labels).double().mean()
        print(f"{threshold:9}   {accuracy:8.1%}   {early.steps.double().mean():10.2f}")
    accuracy = (net.final_logits(test_images).argmax(dim=-1) == test_labels).double().mean()
    print(f"{'none':>9}   {accuracy:8.1%}   {net.settle_steps:10.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
