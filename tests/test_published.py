"""Equal to the published code, step for step: logits that it gave for weights and images written down as formulas.

The numbers in `published.json` were computed with the modules of google-research's `cascaded_networks`, transcribed
outside this project: its ResNet-18 at width 4, in double precision and training mode, carried on to step 9. Its batch
norms run with eps 0.1. Its step 0, the resting step, is left out.
"""

import json
from pathlib import Path

import pytest
import torch

import cascaded

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())


def wave(shape, k):
    """Numbers between -1 and 1 that anybody can compute."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) * (0.37 + 0.011 * k) + k).sin().view(shape)


def fill(convolutions, norms, head):
    """Weights by formula, in the order of the network."""
    with torch.no_grad():
        for k, conv in enumerate(convolutions):
            fan_out = conv.weight.shape[0] * conv.weight.shape[2] ** 2
            conv.weight.copy_(wave(conv.weight.shape, k) * 2 / fan_out**0.5)
        for k, norm in enumerate(norms):
            norm.weight.copy_(1 + 0.3 * wave(norm.weight.shape, 2 * k))
            norm.bias.copy_(0.3 * wave(norm.bias.shape, 2 * k + 1))
        head.weight.copy_(wave(head.weight.shape, 3))
        head.bias.copy_(wave(head.bias.shape, 5))


def network():
    net = cascaded.resnet18(width=4, norm=cascaded.Norm(eps=0.1)).double()
    branches = [m for block in net.blocks for m in block.branch]
    skips = [m for block in net.blocks for m in block.skip.modules()]
    layers = [*net.stem, *branches, *skips]
    convolutions = [m for m in layers if isinstance(m, torch.nn.Conv2d)]
    fill(convolutions, [m for m in layers if isinstance(m, cascaded.TimeBatchNorm)], net.readout.linear)
    return net


@pytest.mark.parametrize(
    ("name", "kernel", "frames"),
    [
        ("one-step delay, still", cascaded.OneStepDelay(), None),
        ("one-step delay, film", cascaded.OneStepDelay(), 9),
        ("smoothing 0.9, still", cascaded.ExponentialSmoothing(0.9), None),
        ("smoothing 0.9, film", cascaded.ExponentialSmoothing(0.9), 12),
    ],
)
def test_equal_to_the_published_code_step_for_step(name, kernel, frames):
    expected = torch.tensor(PUBLISHED[name], dtype=torch.float64)
    x = wave((frames or 1, 3, 3, 16, 16), 7)
    trace = network()(x if frames else x[0], kernel=kernel, steps=len(expected))
    torch.testing.assert_close(trace, expected, rtol=1e-9, atol=1e-9)
