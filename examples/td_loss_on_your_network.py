"""Train your own multi-exit network with the TD loss: stack the logits of its exits and pass them to `td_loss`.

With lambda 1 the target of every exit is the label. With lambda 0 the target of an exit is the prediction of the next
one, and only the last exit is trained on the label. Which is better depends on the network: here every exit has its own
head, as in a Shallow-Deep network, and lambda 1 gives the higher accuracy at the first exits. Also try values between.

    python examples/td_loss_on_your_network.py [EPOCHS]
"""

import sys

import torch
from torch import Tensor, nn

import cascaded
import cascaded.data

BATCH_SIZE, LR = 64, 0.01


class FourExits(nn.Module):
    """A convolutional network of four stages, with a head after each."""

    def __init__(self, width: int = 16, classes: int = 10):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
            for inputs in (1, width, width, width)
        )
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _ in self.stages)

    def forward(self, z: Tensor) -> Tensor:
        """Logits of each exit: (exits, batch, classes)."""
        exits = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            z = stage(z)
            exits.append(head(z.mean(dim=(2, 3))))
        return torch.stack(exits)


def accuracy_by_exit(lam: float, epochs: int) -> Tensor:
    """Train a network and return the test accuracy of each exit."""
    train, test = cascaded.data.load("digits"), cascaded.data.load("digits", "test")
    torch.manual_seed(0)  # both lambdas start from the same weights and see the same batches
    net = FourExits()
    optimizer = torch.optim.Adam(net.parameters(), LR)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=epochs * -(-len(train) // BATCH_SIZE))
    for _ in range(epochs):
        for batch in torch.randperm(len(train)).split(BATCH_SIZE):
            logits = net(train.images[batch] / 255)
            loss = cascaded.td_loss(logits, train.labels[batch], lam)  # replaces one cross-entropy per exit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        return (net.eval()(test.images / 255).argmax(dim=-1) == test.labels).double().mean(dim=1)


def main(epochs: int = 6) -> None:
    """Compare lambda 0 with lambda 1."""
    print("lambda   exit 1   exit 2   exit 3   exit 4")
    for lam in (0.0, 1.0):
        print(f"{lam:6.1f}" + "".join(f"{accuracy:9.1%}" for accuracy in accuracy_by_exit(lam, epochs)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
