"""A U-Net whose masks sharpen step by step: mean IoU per step on generated shapes.

At step 1 a pixel's class follows from the few pixels around it: the deep layers, which see the whole image, arrive one
level per step. `--ce` trains the last step only; `--lam 1` trains every step on the labels.

    python examples/anytime_unet.py [--lam LAM | --ce] [--epochs N] [--quick]
"""

from collections.abc import Sequence

import torch
from anytime import chosen_loss, evaluated, parse, print_steps, train

import cascaded
from cascaded.analysis.places import mean_iou
from cascaded.data.shapes import CLASSES, shapes
from cascaded.models.unet import UNet


def main(words: Sequence[str] | None = None) -> None:
    """Train, then print the mean IoU at every step."""
    options = parse(__doc__ or "", words)
    items, test_items = (600, 50) if options.quick else (None, None)
    images, masks = shapes("train", items)
    torch.manual_seed(options.seed)
    model = UNet(len(CLASSES), depth=2, width=8) if options.quick else UNet(len(CLASSES), depth=3, width=8)
    net = cascaded.convert(model, images[:2])
    epochs = options.epochs or (3 if options.quick else 8)
    train(
        net, images, masks, chosen_loss(options, class_dim=2), epochs=epochs, lr=1e-2, batch_size=16, seed=options.seed
    )
    parts = [(logits.argmax(dim=2), labels) for logits, labels in evaluated(net, *shapes("test", test_items))]
    predictions, labels = torch.cat([part for part, _ in parts], dim=1), torch.cat([part for _, part in parts])
    print_steps("mean IoU", mean_iou(predictions, labels, len(CLASSES)), "%")


if __name__ == "__main__":
    main()
