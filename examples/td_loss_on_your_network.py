"""Train a multi-exit network of your own with the TD loss: stack what its exits say, and nothing else changes.

With lambda 1 every exit is told the true label. With lambda 0 an exit learns to say what the next one will, and the
truth is told to the last alone. Which is better depends on the network: here every exit has a head of its own, as in a
Shallow-Deep network, and the truth serves the first exits better. Try a lambda between the two as well.

    python examples/td_loss_on_your_network.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor, nn

import cascaded
import cascaded.data

BATCH, RATE = 64, 0.01


class FourExits(nn.Module):
    """A plain convolutional network of four stages, with a head behind each."""

    def __init__(self, width: int = 16, classes: int = 10):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
            for inputs in (1, width, width, width)
        )
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _ in self.stages)

    def forward(self, z: Tensor) -> Tensor:
        """What each exit says: (exits, batch, classes)."""
        exits = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            z = stage(z)
            exits.append(head(z.mean(dim=(2, 3))))
        return torch.stack(exits)


def accuracy_by_exit(lam: float, epochs: int) -> Tensor:
    """Train a network, and see how often each of its exits is right on test images."""
    train, test = cascaded.data.load("digits"), cascaded.data.load("digits", "test")
    torch.manual_seed(0)  # both lambdas start from the same weights and see the same batches
    net = FourExits()
    optimiser = torch.optim.Adam(net.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=epochs * -(-len(train) // BATCH))
    for _ in range(epochs):
        for some in torch.randperm(len(train)).split(BATCH):
            said = net(train.images[some] / 255)
            loss = cascaded.td_loss(said, train.labels[some], lam)  # instead of a cross-entropy an exit
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        return (net.eval()(test.images / 255).argmax(dim=-1) == test.labels).double().mean(dim=1)


def main(epochs: int = 6) -> None:
    """Compare the two ends of lambda."""
    print("lambda   exit 1   exit 2   exit 3   exit 4")
    for lam in (0.0, 1.0):
        print(f"{lam:6.1f}" + "".join(f"{each:9.1%}" for each in accuracy_by_exit(lam, epochs)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
