"""Untrained networks and run folders with them, to be saved, loaded and damaged."""

import torch

from cascaded import Pretrained
from cascaded.training import checkpoint
from cascaded.training.log import MetricsFile
from cascaded.training.run_file import Inputs
from cascaded.training.runs import begin
from tests.tiny_runs import tiny_config

INPUTS = Inputs((1, 8, 8), (0.3,), (0.4,), tuple("0123456789"))
STEP = 10
"""The step of the checkpoint in a made run."""


def made(method="cascaded-td", seed=0, accuracy=(), **options):
    """A network with batch statistics for every step; options as for `tiny_config`."""
    net = Pretrained(tiny_config(method, seed, **options), INPUTS, accuracy)
    with torch.no_grad():
        net.net.train()(torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(seed)), schedule=net.schedule)
    return net.eval()


def made_run(folder, net, **metrics):
    """A run folder as training writes it, with one line of metrics."""
    folder.mkdir(parents=True)
    begin(folder, net.config, "images", net.inputs, {})
    checkpoint.save(folder, STEP, net.net.state_dict(), {}, {"step": STEP})
    MetricsFile(folder, 0).add({"epoch": 1, "step": STEP, "accuracy": [0.1], "test": list(net.accuracy), **metrics})
    return folder


def pixels(items=3):
    """Images for these networks."""
    return torch.randint(0, 256, (items, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
