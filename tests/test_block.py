"""Layers of a block: which ones a cascade can run, all steps at once or one at a time."""

import pytest
import torch
from torch import nn

import cascaded
from cascaded import Layers, ResidualBlock, TimeBatchNorm
from tests.refused import refused

MIXES_STEPS = [nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.BatchNorm2d(2, track_running_stats=False), nn.BatchNorm3d(2)]
MIXES_STEPS += [nn.SyncBatchNorm(2), nn.LazyBatchNorm2d(), nn.InstanceNorm2d(2, track_running_stats=True)]
MIXES_STEPS += [nn.LazyInstanceNorm2d(track_running_stats=True)]
NAMES = [type(norm).__name__ for norm in MIXES_STEPS]


class Nested(nn.Module):
    """A module of a user's own."""

    def __init__(self, layer):
        super().__init__()
        self.inner = nn.ModuleList([nn.Sequential(nn.ReLU(), layer)])

    def forward(self, x):
        return self.inner[0](x)


class PlainBlock(cascaded.cascade.block.Block):
    """A block of a user's own kind, with a layer that is in no `Layers`."""

    def __init__(self, layer):
        super().__init__(Layers(), Layers(), channels=2)
        self.layer = layer


WAYS_IN = {
    "made": Layers,
    "inside a sequence": lambda norm: Layers(nn.Sequential(nn.Conv2d(2, 2, 1), norm)),
    "inside a module": lambda norm: Layers(nn.ReLU(), Nested(norm)),
    "inside layers": lambda norm: Layers(Layers(norm)),
    "appended": lambda norm: Layers(nn.ReLU()).append(norm),
    "extended": lambda norm: Layers(nn.ReLU()).extend([norm]),
    "inserted": lambda norm: Layers(nn.ReLU()).insert(0, norm),
    "set": lambda norm: Layers(nn.ReLU()).__setitem__(0, norm),
    "registered": lambda norm: Layers().register_module("norm", norm),
}


@pytest.mark.parametrize("norm", MIXES_STEPS, ids=NAMES)
@pytest.mark.parametrize("way", WAYS_IN)
def test_norms_that_mix_the_steps_are_refused_however_they_enter(norm, way):
    refused(rf"^{type(norm).__name__} .*: use cascaded\.TimeBatchNorm, which", WAYS_IN[way], norm)


@pytest.mark.parametrize("norm", MIXES_STEPS, ids=NAMES)
def test_a_skip_path_with_such_a_norm_is_refused(norm):
    message = r"leave the norm of a skip path out, or use nn\.GroupNorm"
    refused(message, ResidualBlock, nn.Sequential(nn.Conv2d(2, 2, 1), norm), Layers(), 2)


def cascade(*blocks):
    options = {"num_classes": 3, "heads": "shared", "kernel": cascaded.OneStepDelay()}
    return cascaded.Cascade(Layers(nn.Conv2d(1, 2, 1)), blocks, in_channels=1, stem_channels=2, **options)


def test_a_cascade_refuses_what_was_changed_after_its_layers_were_made():
    inner = nn.Sequential(nn.Conv2d(2, 2, 1))
    block = ResidualBlock(nn.Identity(), Layers(inner), 2)
    inner.append(nn.BatchNorm2d(2))
    for each in (block, PlainBlock(nn.BatchNorm2d(2))):
        refused(r"BatchNorm2d .*: use cascaded\.TimeBatchNorm", cascade, each)


def test_the_fix_for_an_instance_norm_and_for_a_time_batch_norm_that_would_not_see_the_steps():
    refused("or set track_running_stats=False", Layers, nn.InstanceNorm2d(2, track_running_stats=True))
    inside = nn.Sequential(nn.Conv2d(2, 2, 1), TimeBatchNorm(2))
    refused(r"TimeBatchNorm is inside a Sequential, .*use cascaded\.Layers in place", Layers, inside)


@pytest.mark.parametrize(
    "norm",
    [
        lambda: TimeBatchNorm(2),
        lambda: Layers(nn.Conv2d(2, 2, 1), TimeBatchNorm(2)),
        lambda: nn.InstanceNorm2d(2, affine=True),
        lambda: nn.GroupNorm(1, 2),
        lambda: nn.Sequential(nn.Conv2d(2, 2, 1), nn.GELU()),
    ],
)
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_layers_that_are_accepted_give_the_same_unrolled_and_stepped(norm, training):
    torch.manual_seed(0)
    blocks = [ResidualBlock(nn.Identity(), Layers(nn.Conv2d(2, 2, 3, padding=1), norm()), 2) for _ in range(2)]
    net, film = cascade(*blocks).double(), torch.randn(5, 4, 1, 6, 6, dtype=torch.float64)
    net(film)
    trace, state = net.train(training)(film), None
    for frame, expected in zip(film, trace, strict=True):
        logits, state = net.step(frame, state)
        torch.testing.assert_close(logits, expected)
    serial = net.eval().serial()(film[0])
    torch.testing.assert_close(net(film[0], schedule="serial")[-1], serial)
