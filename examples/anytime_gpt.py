"""A language model of characters that predicts at every step: bits per character per step.

The text is the docstrings of Python's standard library. Whole layers are delayed, so that the output at step t has
passed through t - 1 layers. `--ce` trains the last step only; `--lam 1` trains every step on the text.

    python examples/anytime_gpt.py [--lam LAM | --ce] [--epochs N] [--quick]
"""

from collections.abc import Sequence

import torch
from anytime import chosen_loss, evaluated, parse, print_steps, train

import cascaded
from cascaded.analysis.places import bits_per_character
from cascaded.data.text import CHARACTERS, characters
from cascaded.models.gpt import GPT


def main(words: Sequence[str] | None = None) -> None:
    """Train, then print the bits per character at every step."""
    options = parse(__doc__ or "", words)
    context, items, test_items = (32, 800, 50) if options.quick else (64, None, 1000)
    inputs, targets = characters("train", context, items)
    torch.manual_seed(options.seed)
    size = {"depth": 2, "width": 32} if options.quick else {"depth": 6, "width": 96}
    net = cascaded.convert(GPT(len(CHARACTERS), context, **size), inputs[:2], joins=r"layers\.\d+")
    epochs = options.epochs or (1 if options.quick else 2)
    train(net, inputs, targets, chosen_loss(options), epochs=epochs, lr=3e-3, batch_size=32, seed=options.seed)
    tested = evaluated(net, *characters("test", context, test_items), size=50)
    bits = torch.stack([len(labels) * bits_per_character(logits, labels) for logits, labels in tested])
    print_steps("bits per character", bits.sum(dim=0) / test_items, "bits")


if __name__ == "__main__":
    main()
