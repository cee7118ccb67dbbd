"""`cascaded record`: run networks once, keep what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError

if TYPE_CHECKING:
    from cascaded.learning.trained import Trained
    from cascaded.recording.views import View


@dataclass(frozen=True)
class Showing:
    """What a network is shown, and how it is run.

    Attributes:
        data: What it is shown; the run's own data by default. Anything that `cascaded train` takes.
        split: Which part. Of the run's own data `validation` is what was held out of the training images.
        kernel: osd (one-step delay), none, ews:0.9 (exponential smoothing) or taps:0,0.5,0.5.
        steps: How many read-outs; until it has settled by default, and 70 where it never does.
        schedule: cascaded or serial; the model's own by default. Under the serial one each frame of a noisy film is
            processed in full.
        noise: Spoil the images: focus, perlin, occlusion, resolution, translation or rotation.
        protocol: persistent, every frame is noisy; transient, some between ten clean ones before and after.
        trials: How often every image is shown under noise.
        noisy: How many frames transient noise lasts; one trace each.
        limit: Show only so many images, the same of every class.
        seed: Draws the noise.
    """

    data: str | None = None
    split: str = "test"
    kernel: str = "osd"
    steps: int | None = None
    schedule: Literal["cascaded", "serial"] | None = None
    noise: str | None = None
    protocol: Literal["persistent", "transient"] = "persistent"
    trials: int = 5
    noisy: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    limit: int | None = None
    seed: int = 0


def record(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...")],
    showing: Annotated[Showing, tyro.conf.arg(name="")],
    *,
    embeddings: bool = False,
    half: bool = False,
    again: bool = False,
    device: str = "auto",
    threads: int | None = None,
) -> None:
    """Record what trained networks say at every step. Analyses are then asked of what was said: `cascaded analyse`.

    Writes RUN/traces/DATA-SPLIT-KERNEL-STEPS.safetensors. What is there is skipped, what was interrupted goes on.

    Example: cascaded record runs/td0/0 --data cifar10 --split test --kernel ews:0.9 --steps 70 --embeddings

    Args:
        runs: Folders of runs, or folders that hold some.
        showing: What is shown, and how.
        embeddings: Also keep what the head reads at the last step: for centrality.
        half: Keep half precision, in half the space.
        again: Replace traces of the same name that were recorded from other weights or images.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: Cores that torch uses; all by default.
    """
    from cascaded.learning.runs import find_runs

    if not runs:
        raise InputError("no run is given: say which, as in cascaded record runs/td0/0")
    found = find_runs(runs)
    import torch

    from cascaded.learning.processes import choose_device
    from cascaded.learning.trained import load_run

    if threads is not None:
        torch.set_num_threads(max(1, threads))
    for folder in found:
        run = load_run(folder, choose_device(device))
        for file in record_run(run, showing, embeddings=embeddings, half=half, again=again):
            print(f"wrote {file}")
    print(f"next: cascaded analyse {' '.join(map(str, runs))}")


def record_run(
    run: Trained, showing: Showing, *, embeddings: bool = False, half: bool = False, again: bool = False
) -> list[Path]:
    """Record one network, with a progress bar."""
    from cascaded.progress import progress
    from cascaded.recording.record import record as record_traces
    from cascaded.recording.shown import shown_images

    view = make_view(run, showing)
    images, items = shown_images(run, showing.data, showing.split, showing.limit)
    what = f"{run.folder.as_posix()}: {images.name} {images.split}"
    with progress(what, len(items) * view.trials) as bar:
        options = {"embeddings": embeddings, "half": half, "again": again}
        return record_traces(run, images, view, items=items, told=bar.advance, **options)


def make_view(run: Trained, showing: Showing) -> View:
    """How a network is shown images, from the words of a command line."""
    import math

    from cascaded.cascade.inputs import chosen_schedule
    from cascaded.cascade.named import make_kernel
    from cascaded.recording.views import Persistent, Still, Transient

    kernel, net = make_kernel(showing.kernel), run.net
    schedule = chosen_schedule(showing.schedule or run.spec.method.schedule, net.heads)
    stages = len(net.blocks) + 1
    settled = stages if schedule == "serial" else max(stages, kernel.settles(stages))
    usual = 70 if math.isinf(settled) else int(settled)
    steps = usual if showing.steps is None else showing.steps
    if steps < 1:
        raise InputError(f"--steps is {steps}: ask for at least 1")
    if showing.noise is None:
        return Still(kernel, schedule, steps)
    noise = (showing.noise, showing.trials, showing.seed)
    if showing.protocol == "persistent":
        return Persistent(kernel, schedule, *noise, steps)
    view = Transient(kernel, schedule, *noise, showing.noisy)
    return view if showing.steps is None else replace(view, before=showing.steps, after=showing.steps)
