"""Show a network a set of images, and keep what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.cascade.network import Cascade
from cascaded.cascade.readout import pool
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.learning.runs import locked
from cascaded.learning.seeds import generator_at
from cascaded.learning.trained import Trained
from cascaded.recording.about import is_recorded, origin, trace_file
from cascaded.recording.views import Still, Take, View
from cascaded.trace.store import Form, Recording

PIXELS = 256_000
"""Pixels of all frames that are shown at once: 250 images of CIFAR."""
KEEP_EVERY = 5.0
"""Seconds between two moments from which an interrupted recording could go on."""


def record(
    run: Trained,
    images: Images,
    view: View,
    *,
    items: Int64[Tensor, "items"] | None = None,
    embeddings: bool = False,
    half: bool = False,
    again: bool = False,
    told: Callable[[int], object] = lambda items: None,
) -> list[Path]:
    """Record traces of a network into its run's folder; what is there already is left as it is.

    Args:
        run: The network, from `load_run`.
        images: What it is shown.
        view: How it is shown, and how the network is run.
        items: Which of the images, by number; all by default.
        embeddings: Also keep what the head reads at the last step, and the head.
        half: Keep half precision, in half the space.
        again: Replace traces of the same name that were recorded from something else.
        told: Called with how many more items are done.
    """
    if embeddings and not isinstance(view, Still):
        asked = view.takes[0].ending[1:]
        raise InputError(f"embeddings are kept of still images, {asked} was asked for: leave one out")
    session = Session(run, images, view, torch.arange(len(images)) if items is None else items, embeddings)
    with locked(run.folder / "traces"):
        files, recordings = session.begin(half, again)
        if recordings:
            session.fill(recordings, told)
        else:
            told(session.total)
    return files


@dataclass(frozen=True)
class Session:
    """One network, some images, and how the one is shown the others."""

    run: Trained
    images: Images
    view: View
    shown: Int64[Tensor, "items"]
    embeddings: bool

    @property
    def total(self) -> int:
        """Items of a trace: every image, as often as it is shown."""
        return len(self.shown) * self.view.trials

    def begin(self, half: bool, again: bool) -> tuple[list[Path], dict[Take, Recording]]:
        """The files of all takes, and the recordings of those that are not there yet."""
        files, recordings = [], {}
        features = head_of(self.run.net, self.view.takes[0].steps).in_features if self.embeddings else None
        for take in self.view.takes:
            wanted = origin(self.run, self.images, self.view, take)
            files.append(trace_file(self.run, self.images, self.view, take, len(self.shown)))
            if again or not is_recorded(files[-1], wanted, self.total, self.embeddings):
                form = Form.of(take.steps, self.total, len(self.run.inputs.classes), features, half)
                recordings[take] = Recording(files[-1], form, wanted)
        return files, recordings

    def fill(self, recordings: dict[Take, Recording], told: Callable[[int], object]) -> None:
        """Run the network over what is missing."""
        done, saved = min(each.done for each in recordings.values()), time.monotonic()
        told(done)
        for trial, place in self.chunks():
            some = self.shown[place : place + self.together]
            start = trial * len(self.shown) + place
            if start < done:
                continue
            self.show(recordings, some, start, generator_at(self.view.draws, "noise", trial, place))
            told(len(some))
            if time.monotonic() - saved >= KEEP_EVERY:
                for each in recordings.values():
                    each.keep(start + len(some))
                saved = time.monotonic()
        for each in recordings.values():
            each.finish()

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Trial by trial, the place of the first of the images that are shown together."""
        for trial in range(self.view.trials):
            for place in range(0, len(self.shown), self.together):
                yield trial, place

    @property
    def together(self) -> int:
        """How many images there is room for at a time."""
        height, width = self.images.images.shape[-2:]
        return max(1, PIXELS // (height * width * self.view.held))

    @torch.no_grad()
    def show(self, recordings: dict[Take, Recording], some: Tensor, start: int, generator: torch.Generator) -> None:
        """Show some images, and write down what is said about them."""
        net = self.run.net
        parts = {"labels": self.images.labels[some].numpy(), "indices": self.images.indices[some].numpy()}
        shown = self.images.images[some].to(next(net.parameters()).device)
        with listening(net, self.embeddings) as heard:
            for take, logits in zip(self.view.takes, self.view.show(self.run, shown, generator), strict=True):
                if not logits.isfinite().all():
                    raise InputError(f"{self.run.folder} says what is not a number: it has diverged, train another")
                if heard:
                    head = head_of(net, take.steps).weight
                    parts |= {"embeddings": heard[-1].cpu().numpy(), "head": head.cpu().numpy()}
                if take in recordings:
                    recordings[take].write(start, logits=logits.cpu().numpy(), **parts)


@contextmanager
def listening(net: Cascade, wanted: bool = True) -> Iterator[list[Tensor]]:
    """Hear what the head reads at the last step that was computed; the newest is the last of the list."""
    heard: list[Tensor] = []
    if not wanted:
        yield heard
        return
    hook = net.readout.register_forward_pre_hook(lambda module, inputs: heard.append(pool(inputs[0].last())))
    try:
        yield heard
    finally:
        hook.remove()


def head_of(net: Cascade, step: int) -> torch.nn.Linear:
    """The head that reads a step."""
    head = net.readout.at(step)
    assert isinstance(head, torch.nn.Linear)
    return head
