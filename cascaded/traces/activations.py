"""Watch a network at work: what the stem and every block hold at every step, for some images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from cascaded.cascade.film import SETTLED, Film, still
from cascaded.cascade.kernels import OneStepDelay
from cascaded.cascade.network import Cascade
from cascaded.data.images import Images
from cascaded.data.split import limited
from cascaded.errors import InputError
from cascaded.traces.about import origin, trace_file
from cascaded.traces.config import Origin
from cascaded.traces.protocols import Still
from cascaded.traces.states_file import SIDE, States, load_states, save_states
from cascaded.training.load import Trained
from cascaded.training.runs import locked

TOGETHER = 8
"""Images that are watched at once: all steps of all blocks are in memory."""

Stages = list[Float[Tensor, "time batch channels height width"]]
"""What the stem holds, then what each block does."""


def record_states(
    run: Trained, images: Images, view: Still, items: Int64[Tensor, "items"], count: int, again: bool = False
) -> tuple[Path, bool]:
    """Record the states of a network for some images, the same of every class, into RUN/states.

    Returns the file, and whether it was written now.

    Args:
        run: The network.
        images: What it is shown some of.
        view: How the network is run.
        items: Those that may be chosen from, by number.
        count: How many images.
        again: Record anew what is there.
    """
    if images.classes != run.inputs.classes:
        raise InputError(
            f"{images.name} has other classes than {run.folder} was trained on, states are shown with its own: leave "
            "out --states"
        )
    chosen = items[limited(images.labels[items], min(count, len(items)))]
    file = trace_file(run, images, view, view.takes[0])
    file = run.folder / "states" / file.name
    wanted = origin(run, images, view, view.takes[0], chosen)
    with locked(run.folder / "traces"):
        if not again and _is_there(file, wanted):
            return file, False
        save_states(watched(run, images.select(chosen), view, wanted), file)
    return file, True


def _is_there(file: Path, wanted: Origin) -> bool:
    """Whether states of the same network and images are there; others are replaced, they are made in seconds."""
    try:
        there = load_states(file).origin
    except InputError:
        return False
    names = ("weights", "images", "shown", "schedule", "kernel")
    return all(getattr(there, name) == getattr(wanted, name) for name in names)


@torch.no_grad()
def watched(run: Trained, images: Images, view: Still, told: Origin) -> States:
    """States of a network for all of some images."""
    device = next(run.net.parameters()).device
    parts = []
    for some in torch.arange(len(images)).split(TOGETHER):
        shown = run.normalised(images.images[some].to(device))
        logits, stages = stages_of(run.net, shown, view)
        nearness = nearness_of(stages) if view.schedule == "cascaded" else fired(len(stages), view.steps, len(some))
        parts.append((logits.cpu(), torch.stack([small(each) for each in stages], dim=2).cpu(), nearness.cpu()))
    logits, maps, nearness = (torch.cat(each, dim=1) for each in zip(*parts, strict=True))
    cascaded, serial = both_schedules(run, images.images[:TOGETHER].to(device))
    arrays = {"logits": logits, "maps": as_bytes(maps), "nearness": nearness, "cascaded": cascaded, "serial": serial}
    arrays |= {"images": images.images, "labels": images.labels, "indices": images.indices}
    return States(origin=told, **{name: each.cpu().numpy() for name, each in arrays.items()})


def stages_of(net: Cascade, images: Tensor, view: Still) -> tuple[Tensor, Stages]:
    """What is said, and what stem and blocks hold."""
    if view.schedule == "serial":
        return net(images, steps=view.steps, schedule="serial"), serial_stages(net, images, view.steps)
    with watching(net) as heard:
        logits = net(images, kernel=view.kernel, steps=view.steps)
    return logits, [torch.cat(films) for films in heard]


@contextmanager
def watching(net: Cascade) -> Iterator[list[list[Tensor]]]:
    """Hear what every block of a cascade takes and gives; a long film comes in pieces."""
    heard: list[list[Tensor]] = [[] for _ in range(len(net.blocks) + 1)]

    def take(block: nn.Module, taken: tuple[Film, ...]) -> None:
        heard[0].append(taken[0].unfold())

    hooks = [net.chain[0].register_forward_pre_hook(take)]
    for films, block in zip(heard[1:], net.blocks, strict=True):
        give = lambda _, taken, given, films=films: films.append(given[0].unfold())  # noqa: E731
        hooks.append(block.register_forward_hook(give))
    try:
        yield heard
    finally:
        for hook in hooks:
            hook.remove()


def serial_stages(net: Cascade, images: Tensor, steps: int) -> Stages:
    """Cycle by cycle: blocks that have been computed hold, what comes after them passes through open skip paths.

    Heads on each block's own features read no skip paths: there, what has not been computed is nothing.
    """
    z = net.stem(still(net.arrange(images), steps=1, start=SETTLED))
    done, cycles = [], []
    for number in range(1, len(net.blocks) + 2):
        z = replace(z, start=number)
        z = net.chain[number - 2].fire(z) if number > 1 else z
        done.append(z.frames)
        ahead, features = [], z
        for block in net.chain[number - 1 :]:
            features = block.bypass(features)
            ahead.append(torch.zeros_like(features.frames) if net.heads == "shallow_deep" else features.frames)
        cycles.append([*done, *ahead])
    cycles += [cycles[-1]] * (steps - len(cycles))
    return [torch.stack(stage) for stage in zip(*cycles[:steps], strict=True)]


def nearness_of(stages: Stages) -> Float[Tensor, "time batch stages"]:
    """How far each stage has come: 1 - |z_t - z_T| / |z_1 - z_T|, from 0 to 1."""
    found = []
    for film in stages:
        distance = (film - film[-1]).flatten(2).norm(dim=2)
        found.append(1 - distance / distance[0].clamp(min=1e-12))
    return torch.stack(found, dim=2).clamp(0, 1)


def fired(stages: int, steps: int, batch: int) -> Float[Tensor, "time batch stages"]:
    """Under the serial schedule: 1 for what has been computed, the stem at cycle 1, block k at cycle k + 1."""
    computed = torch.arange(stages) <= torch.arange(steps)[:, None]
    return computed.float()[:, None].expand(steps, batch, stages)


def both_schedules(run: Trained, images: Tensor) -> tuple[Tensor, Tensor]:
    """How far each block has come at every cycle, as a mean over images, under both schedules."""
    net, blocks = run.net, len(run.net.blocks)
    serial = fired(blocks + 1, blocks + 1, 1)[:, 0, 1:]
    if run.spec.method.schedule == "serial":  # its statistics are of settled steps alone
        return torch.zeros(0, blocks), serial
    _, stages = stages_of(net, run.normalised(images), Still(OneStepDelay(), "cascaded", blocks + 1))
    return nearness_of(stages).mean(dim=1)[:, 1:], serial


def small(film: Float[Tensor, "time batch channels height width"]) -> Float[Tensor, "time batch side side"]:
    """Mean absolute activation over channels, brought to one small size."""
    mean = film.abs().mean(dim=2)
    mode = "area" if min(mean.shape[-2:]) >= SIDE else "nearest"
    return F.interpolate(mean, (SIDE, SIDE), mode=mode)


def as_bytes(maps: Float[Tensor, "time items stages side side"]) -> Tensor:
    """From black, nothing, to white, the highest that a stage reaches."""
    highest = maps.amax(dim=(0, 1, 3, 4), keepdim=True).clamp(min=1e-12)
    return (255 * maps / highest).round().to(torch.uint8)
