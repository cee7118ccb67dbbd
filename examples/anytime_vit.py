"""A vision transformer that predicts at every step: accuracy per step on CIFAR-10.

Whole layers are delayed: 12 layers give 13 steps. Where CIFAR-10 cannot be loaded, and with `--quick`, the images are
scikit-learn's digits. `--ce` trains the last step only; `--lam 1` trains every step on the labels.

    python examples/anytime_vit.py [--lam LAM | --ce] [--epochs N] [--quick]
"""

from collections.abc import Sequence

import torch
from anytime import chosen_loss, evaluated, parse, print_steps, train
from torch import Tensor

import cascaded
import cascaded.data
from cascaded.data.augment import flip, normalize, reflect_crop
from cascaded.errors import InputError
from cascaded.models.vit import ViT


def load(quick: bool) -> tuple[str, cascaded.data.Images, cascaded.data.Images]:
    """The name of the data, training images and test images."""
    name = "digits" if quick else "cifar10"
    try:
        return name, cascaded.data.load(name), cascaded.data.load(name, "test")
    except InputError as error:
        print(f"CIFAR-10 cannot be loaded ({error}): digits instead")
        return load(quick=True)


def main(words: Sequence[str] | None = None) -> None:
    """Train, then print the accuracy at every step."""
    options = parse(__doc__ or "", words)
    name, images, test = load(options.quick)
    mean, std = images.statistics()
    torch.manual_seed(options.seed)
    small = {"image_size": 8, "patch": 2, "depth": 4, "width": 32, "in_channels": 1}
    model = ViT(len(images.classes), **small) if name == "digits" else ViT(len(images.classes))
    net = cascaded.convert(model, normalize(images.images[:2], mean, std), joins=r"layers\.\d+")

    def prepared(batch: Tensor, generator: torch.Generator) -> Tensor:
        if name != "digits":
            batch = flip(reflect_crop(batch, 4, generator), generator)
        return normalize(batch, mean, std)

    epochs = options.epochs or (6 if options.quick else 10)
    train(
        net,
        images.images,
        images.labels,
        chosen_loss(options),
        epochs=epochs,
        lr=3e-3,
        batch_size=32 if name == "digits" else 128,
        seed=options.seed,
        augment=prepared,
    )
    tested = evaluated(net, normalize(test.images, mean, std), test.labels)
    right = torch.cat([logits.argmax(dim=-1) == labels for logits, labels in tested], dim=1)
    print_steps("accuracy", right.double().mean(dim=1), "%")


if __name__ == "__main__":
    main()
