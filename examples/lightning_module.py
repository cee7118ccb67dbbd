"""Train a converted model in a Lightning module: `training_step` returns the TD loss over all steps.

pip install 'cascaded[trainers]'
python examples/lightning_module.py [EPOCHS]
"""

import sys

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import cascaded
import cascaded.data
from cascaded.models.highway import Highway


class Anytime(lightning.LightningModule):
    """A converted network and its training.

    Args:
        net: The converted network.
        lam: Lambda of the TD loss.
    """

    def __init__(self, net: nn.Module, lam: float):
        super().__init__()
        self.net, self.lam = net, lam

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        """The loss of a batch."""
        images, labels = batch
        return cascaded.td_loss(self.net(images), labels, self.lam)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), 3e-3)


def main(epochs: int = 10) -> None:
    """Train a Highway network on digits, then print the accuracy at every step."""
    lightning.seed_everything(0, verbose=False)
    train, test = cascaded.data.load("digits"), cascaded.data.load("digits", "test")
    net = cascaded.convert(Highway(depth=4, width=32), test.images[:2] / 255)
    batches = DataLoader(TensorDataset(train.images / 255, train.labels), batch_size=32, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Anytime(net, lam=0.0), batches)
    with torch.no_grad():
        right = net.eval()(test.images / 255).argmax(dim=-1) == test.labels
    print("step   accuracy")
    for step, accuracy in enumerate(right.double().mean(dim=1).tolist(), start=1):
        print(f"{step:4}   {accuracy:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
