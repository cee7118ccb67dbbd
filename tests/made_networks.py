"""Networks that were never trained, and runs that hold them: to be saved, loaded and spoilt."""

from dataclasses import asdict

import torch

from cascaded import Pretrained
from cascaded.training import checkpoint
from cascaded.training.runs import Metrics, begin
from tests.tiny_runs import tiny_config

INPUTS = {"shape": [1, 8, 8], "mean": [0.3], "std": [0.4], "classes": list("0123456789")}
STEP = 10
"""How many steps a made run claims to have been trained for."""


def made(model="cascaded-td", seed=0, accuracy=(), **options):
    """A network with statistics of its own for every step; options as for a tiny configuration."""
    net = Pretrained(asdict(tiny_config(model, seed, **options)), INPUTS, accuracy=accuracy)
    with torch.no_grad():
        net.net.train()(torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(seed)), schedule=net.schedule)
    return net.eval()


def made_run(folder, net, **told):
    """The folder of a run as training leaves it behind, with a line of metrics."""
    folder.mkdir(parents=True)
    begin(folder, net.config, "images", net.inputs, {})
    checkpoint.save(folder, STEP, net.net.state_dict(), {}, {"step": STEP})
    Metrics(folder, 0).add(**{"epoch": 1, "step": STEP, "accuracy": [0.1], "test": list(net.accuracy), **told})
    return folder


def pixels(items=3):
    """Images for it."""
    return torch.randint(0, 256, (items, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
