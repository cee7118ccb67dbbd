"""Record the activations of the stem and of every block at every step, for some images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.cascade.film import SETTLED, still
from cascaded.cascade.named import make_kernel
from cascaded.cascade.network import Cascade
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.models.networks import Network
from cascaded.traces.activations import SIDE, Activations, load_activations, save_activations
from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.training.load import Trained
from cascaded.training.runs import locked

CHUNK = 8
"""Images that are computed at once: all steps of all blocks are in memory."""

Stages = list[Float[Tensor, "time batch _ _ _"]]
"""The activations of the stem, then of each block."""


def record_activations(
    run: Trained, images: Images, config: RecordingConfig, provenance: Provenance, overwrite: bool = False
) -> tuple[Path, bool]:
    """Record the activations of a network for all of some images into RUN/activations.

    Returns the file, and whether it was written now.

    Args:
        run: The network.
        images: The images.
        config: How the network is run, resolved.
        provenance: Network and images.
        overwrite: Replace a recording that exists.
    """
    if not provenance.in_distribution:
        raise InputError(
            f"{images.name} has other classes than {run.folder} was trained on, the explorer needs its own: leave out "
            "--activations"
        )
    config = replace(config, data=images.name, split=images.split, activations=len(images), embeddings=False)
    file = run.folder / "activations" / f"{config.name}.safetensors"
    with locked(run.folder / "traces"):
        if not overwrite and _is_recorded(file, provenance):
            return file, False
        save_activations(compute_activations(run, images, config, provenance), file)
    return file, True


def _is_recorded(file: Path, wanted: Provenance) -> bool:
    """Whether the file has the same network and images; others are replaced, which takes seconds."""
    try:
        there = load_activations(file).provenance
    except InputError:
        return False
    return (there.weights, there.items) == (wanted.weights, wanted.items)


@torch.no_grad()
def compute_activations(run: Trained, images: Images, config: RecordingConfig, provenance: Provenance) -> Activations:
    """The activations of a network for all of some images, under a resolved configuration."""
    device, parts = next(run.net.parameters()).device, []
    for some in torch.arange(len(images)).split(CHUNK):
        logits, stages = stages_of(run.net, run.normalized(images.images[some].to(device)), config)
        serial = config.schedule == "serial"
        convergence = computed(len(stages), len(logits), len(some)) if serial else convergence_of(stages)
        maps = torch.stack([downscale(each) for each in stages], dim=2)
        parts.append((logits.cpu(), maps.cpu(), convergence.cpu()))
    logits, maps, convergence = (torch.cat(each, dim=1) for each in zip(*parts, strict=True))
    cascaded, serial = both_schedules(run, images.images[:CHUNK].to(device))
    arrays = {"logits": logits, "maps": as_bytes(maps), "convergence": convergence, "cascaded": cascaded}
    arrays |= {"serial": serial, "images": images.images, "labels": images.labels, "indices": images.indices}
    return Activations(config, provenance, **{name: each.cpu().numpy() for name, each in arrays.items()})


def stages_of(net: Network, images: Tensor, config: RecordingConfig) -> tuple[Tensor, Stages]:
    """The logits, and the activations of the stem and of every block."""
    assert config.steps is not None
    assert isinstance(net, Cascade)
    if config.schedule == "serial":
        return net(images, steps=config.steps, schedule="serial"), serial_stages(net, images, config.steps)
    with capture_blocks(net) as captured:
        logits = net(images, kernel=make_kernel(config.kernel), steps=config.steps)
    return logits, [torch.cat(pieces) for pieces in captured]


@contextmanager
def capture_blocks(net: Cascade) -> Iterator[list[list[Tensor]]]:
    """Collect the input of the first block and the output of every block; long sequences arrive in pieces."""
    captured: list[list[Tensor]] = [[] for _ in range(len(net.blocks) + 1)]

    def first(block: nn.Module, inputs: tuple[Any, ...]) -> None:
        captured[0].append(inputs[0].unfold())

    with ExitStack() as hooks:
        hooks.enter_context(net.chain[0].register_forward_pre_hook(first))
        for pieces, block in zip(captured[1:], net.blocks, strict=True):
            each = lambda _, inputs, outputs, pieces=pieces: pieces.append(outputs[0].unfold())  # noqa: E731
            hooks.enter_context(block.register_forward_hook(each))
        yield captured


def serial_stages(net: Cascade, images: Tensor, steps: int) -> Stages:
    """Activations per step of the serial schedule: computed blocks keep theirs, later ones pass their input through.

    With Shallow-Deep heads, which do not read skip paths, blocks that have not been computed are zero.
    """
    z = net.stem(still(net.arrange(images), steps=1, start=SETTLED))
    done, cycles = [], []
    for number in range(1, len(net.blocks) + 2):
        z = replace(z, start=number)
        z = net.chain[number - 2].forward_settled(z) if number > 1 else z
        done.append(z.frames)
        ahead, features = [], z
        for block in net.chain[number - 1 :]:
            features = block.skip_only(features)
            ahead.append(torch.zeros_like(features.frames) if net.heads == "shallow_deep" else features.frames)
        cycles.append([*done, *ahead])
    cycles += [cycles[-1]] * (steps - len(cycles))
    return [torch.stack(stage) for stage in zip(*cycles[:steps], strict=True)]


def convergence_of(stages: Stages) -> Float[Tensor, "time batch stages"]:
    """Closeness of each stage to its last value: 1 - |z_t - z_T| / |z_1 - z_T|, from 0 to 1."""
    parts = []
    for z in stages:
        distance = (z - z[-1]).flatten(2).norm(dim=2)
        parts.append(1 - distance / distance[0].clamp(min=1e-12))
    return torch.stack(parts, dim=2).clamp(0, 1)


def computed(stages: int, steps: int, batch: int) -> Float[Tensor, "time batch stages"]:
    """Under the serial schedule: 1 for stages that have been computed, the stem at step 1, block k at step k + 1."""
    done = torch.arange(stages) <= torch.arange(steps)[:, None]
    return done.float()[:, None].expand(steps, batch, stages)


def both_schedules(run: Trained, images: Tensor) -> tuple[Tensor, Tensor]:
    """Convergence of each block at every step under both schedules, as a mean over images."""
    net, blocks = run.net, run.net.serial_steps - 1
    serial = computed(blocks + 1, blocks + 1, 1)[:, 0, 1:]
    if run.config.get_method().schedule == "serial":  # its normalization statistics are those of final features only
        return torch.zeros(0, blocks), serial
    _, stages = stages_of(net, run.normalized(images), RecordingConfig(steps=blocks + 1))
    return convergence_of(stages).mean(dim=1)[:, 1:], serial


def downscale(z: Float[Tensor, "time batch channels height width"]) -> Float[Tensor, "time batch side side"]:
    """Mean absolute activation over channels, in one small size for all stages."""
    mean = z.abs().mean(dim=2)
    mode = "area" if min(mean.shape[-2:]) >= SIDE else "nearest"
    return F.interpolate(mean, (SIDE, SIDE), mode=mode)


def as_bytes(maps: Float[Tensor, "time items stages side side"]) -> Tensor:
    """From 0 to 255, the highest value of a stage."""
    highest = maps.amax(dim=(0, 1, 3, 4), keepdim=True).clamp(min=1e-12)
    return (255 * maps / highest).round().to(torch.uint8)
