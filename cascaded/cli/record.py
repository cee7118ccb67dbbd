"""`cascaded record`: run networks once, keep what they say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from cascaded.traces.protocols import View
    from cascaded.training.load import Trained


class UndelayedError(InputError):
    """A kernel for a network that runs serially: among several networks it can be passed over."""


@dataclass(frozen=True)
class Showing:
    """What a network is shown, and how it is run.

    Attributes:
        data: What it is shown. Anything that `cascaded train` takes.
        split: Which part. Of the run's own data `validation` is what was held out of the training images.
        kernel: osd (one-step delay), none, ews:0.9 (exponential smoothing) or taps:0,0.5,0.5.
        steps: How many read-outs. Under transient noise, how many clean ones before and after it.
        schedule: cascaded or serial. Under the serial one each frame of a noisy film is processed in full.
        noise: Spoil the images: focus, perlin, occlusion, resolution, translation or rotation.
        protocol: persistent, every frame is noisy; transient, some between clean ones before and after.
        trials: How often every image is shown under noise.
        noisy: How many frames transient noise lasts, one trace each.
        limit: Show only so many images, the same of every class; all of them where there are no more.
        seed: Draws the noise.
    """

    data: Annotated[str | None, help_default("the run's own data")] = None
    split: Annotated[str | None, help_default("test, or validation where there is no test split")] = None
    kernel: str = "osd"
    steps: Annotated[
        int | None, help_default("until it has settled, 70 if it never does; 10 under transient noise")
    ] = None
    schedule: Annotated[Literal["cascaded", "serial"] | None, help_default("the model's own")] = None
    noise: Annotated[str | None, help_default("no noise")] = None
    protocol: Annotated[Literal["persistent", "transient"] | None, help_default("persistent")] = None
    trials: Annotated[int | None, help_default("5")] = None
    noisy: Annotated[tuple[int, ...], help_default("1 2 3 4 5 6")] = ()
    limit: Annotated[int | None, help_default("all images")] = None
    seed: int = 0

    def check(self) -> None:
        """What is wrong with these words whatever the network, said before anything is loaded or trained."""
        from cascaded.cascade.named import make_kernel
        from cascaded.data.noise import make_noise

        make_kernel(self.kernel)
        for name, least in {"steps": 1, "limit": 1, "seed": 0}.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"--{name} is {value}: give at least {least}")
        if self.noise is not None:
            make_noise(self.noise)
        elif given := next((name for name in ("protocol", "trials") if getattr(self, name) is not None), None):
            told = getattr(self, given)
            raise InputError(f"--{given} is {told} and there is no --noise: say which, such as occlusion")
        if self.noisy and self.protocol != "transient":
            raise InputError(f"--noisy is {list(self.noisy)}, frames of transient noise: say --protocol transient")


def record(
    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...", help_behavior_hint="(required)")],
    showing: Annotated[Showing, tyro.conf.arg(name="")],
    *,
    embeddings: bool = False,
    states: Annotated[int | None, help_default("none")] = None,
    half: bool = False,
    again: bool = False,
    device: str = "auto",
    threads: Annotated[int | None, help_default("all cores")] = None,
) -> None:
    """Record what trained networks say at every step. Analyses are then asked of what was said: `cascaded analyse`.

    Writes RUN/traces/DATA-SPLIT-KERNEL-STEPS.safetensors. What is there is skipped, what was interrupted goes on.

    Example: cascaded record runs/td0/0 --data cifar10 --split test --kernel ews:0.9 --steps 70 --embeddings

    Args:
        runs: Folders of runs, or folders that hold some.
        showing: What is shown, and how.
        embeddings: Also keep what the head reads at the last step: for centrality.
        states: Also keep what every block holds at every step, for so many of the images, in RUN/states: the report's
            explorer shows them.
        half: Keep half precision, in half the space.
        again: Record anew what is there, also where it is of other weights or images.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: Cores that torch uses.
    """
    from cascaded.training.runs import find_runs

    if not runs:
        raise InputError(f"no run is given: say which, as in {program()} record runs/td0/0")
    found = find_runs(runs)
    showing.check()
    check_states(states, showing.noise)
    from cascaded.training.distributed import choose_device
    from cascaded.training.load import load_run

    use_threads(threads)
    for folder in found:
        run = load_run(folder, choose_device(device))
        try:
            files = record_run(run, showing, embeddings=embeddings, states=states, half=half, again=again)
        except UndelayedError as error:
            if len(found) == 1:
                raise
            print(f"passed over: {error}")
            continue
        for file, new in files.items():
            print(f"wrote {file}" if new else f"there already: {file}")
    print(f"next: {program()} analyse {' '.join(shlex.quote(str(run)) for run in runs)}")


def use_threads(threads: int | None) -> None:
    """How many cores torch uses; as many as it likes where nothing is said."""
    import torch

    if threads is not None and threads < 1:
        raise InputError(f"--threads is {threads}: give at least 1")
    if threads is not None:
        torch.set_num_threads(threads)


def check_states(count: int | None, noise: str | None) -> None:
    """States can be asked for."""
    if count is not None and count < 1:
        raise InputError(f"--states is {count}: give a number of images of at least 1")
    if count is not None and noise is not None:
        raise InputError(f"--states are of still images, --noise is {noise}: leave one out")


def record_run(
    run: Trained,
    showing: Showing,
    *,
    embeddings: bool = False,
    states: int | None = None,
    half: bool = False,
    again: bool = False,
) -> dict[Path, bool]:
    """Record one network, with a progress bar: the files, and whether each was recorded now."""
    from cascaded.progress import counted, progress
    from cascaded.traces.activations import record_states
    from cascaded.traces.protocols import Still
    from cascaded.traces.record import record as record_traces
    from cascaded.traces.shown import shown_images
    from cascaded.training.runs import is_done

    view = make_view(run, showing)
    images, items = shown_images(run, showing.data, showing.split)
    limit = None if (showing.limit or 0) >= len(items) else showing.limit
    if limit is not None:
        images, items = shown_images(run, showing.data, showing.split, limit)
    what = f"{run.folder.as_posix()}: {images.name} {images.split}"
    with _interrupted(), progress(what, len(items) * view.trials) as bar:
        if showing.split is None and images.split != "test":
            bar.say(f"{images.name} has no test split: the {counted(len(items), 'validation image')} are recorded")
        if not is_done(run.folder):
            bar.say(f"{run.folder} is not trained to the end: its network of step {run.step} is recorded")
        part = "" if limit is None else f"-{limit}images"
        options = {"embeddings": embeddings, "half": half, "again": again, "part": part}
        files = record_traces(run, images, view, items=items, told=bar.advance, **options)
        if states is not None and isinstance(view, Still):
            bar.advance(0, f"{what}: states")
            file, new = record_states(run, images, view, items, states, again)
            files[file] = new
        return files


@contextmanager
def _interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt("interrupted: the same command goes on") from stopped


def make_view(run: Trained, showing: Showing) -> View:
    """How a network is shown images, from the words of a command line."""
    import math

    from cascaded.cascade.inputs import chosen_schedule
    from cascaded.cascade.named import make_kernel
    from cascaded.traces.protocols import LONGEST, Persistent, Still, Transient

    kernel, net = make_kernel(showing.kernel), run.net
    schedule = chosen_schedule(showing.schedule or run.spec.method.schedule, net.heads)
    stages = len(net.blocks) + 1
    if schedule == "serial" and showing.kernel != Showing.kernel:
        raise UndelayedError(
            f"--kernel is {showing.kernel}, {run.folder} is run serially, where nothing is delayed: leave it out"
            + ("" if net.heads == "shallow_deep" else ", or say --schedule cascaded")
        )
    if schedule == "serial" and showing.noise is None and (showing.steps or 1) > stages:
        raise InputError(f"--steps is {showing.steps}, {run.folder} is done after {stages} cycles: ask for no more")
    settled = stages if schedule == "serial" else max(stages, kernel.settles(stages))
    usual = 70 if math.isinf(settled) else int(settled)
    steps = showing.steps or usual
    if showing.noise is None:
        return Still(kernel, schedule, steps)
    noise = (showing.noise, 5 if showing.trials is None else showing.trials, showing.seed)
    if showing.protocol != "transient":
        return Persistent(kernel, schedule, *noise, steps)
    view = Transient(kernel, schedule, *noise, showing.noisy or tuple(range(1, LONGEST + 1)))
    return view if showing.steps is None else replace(view, before=showing.steps, after=showing.steps)
