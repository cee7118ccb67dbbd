"""Show a network a set of images, and keep what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from cascaded.cascade.network import Cascade
from cascaded.cascade.readout import pool
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.traces.about import is_recorded, origin, trace_file
from cascaded.traces.config import Origin
from cascaded.traces.protocols import Still, Take, View
from cascaded.traces.store import Form, Recording, note_of
from cascaded.training.load import Trained
from cascaded.training.runs import locked
from cascaded.training.seeds import generator_at

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
    part: str = "",
    told: Callable[[int], object] = lambda items: None,
) -> dict[Path, bool]:
    """Record traces of a network into its run's folder; what is there already is left as it is.

    Returns the files, and whether each was recorded now.

    Args:
        run: The network, from `load_run`.
        images: What it is shown.
        view: How it is shown, and how the network is run.
        items: Which of the images, by number; all by default.
        embeddings: Also keep what the head reads at the last step, and the head.
        half: Keep half precision, in half the space.
        again: Record anew what is there, also where it is of something else.
        part: What to add to the names where `items` are not all.
        told: Called with how many more items are done.
    """
    if embeddings and not isinstance(view, Still):
        asked = view.takes[0].ending[1:]
        raise InputError(f"embeddings are kept of still images, {asked} was asked for: leave one out")
    session = Session(run, images, view, torch.arange(len(images)) if items is None else items, embeddings, half)
    with locked(run.folder / "traces"):
        files, recordings = session.begin(part, again)
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
    half: bool

    @property
    def total(self) -> int:
        """Items of a trace: every image, as often as it is shown."""
        return len(self.shown) * self.view.trials

    def begin(self, part: str, again: bool) -> tuple[dict[Path, bool], dict[Take, Recording]]:
        """The files of all takes, whether each is to be recorded, and the recordings of those that are."""
        files = {take: trace_file(self.run, self.images, self.view, take, part) for take in self.view.takes}
        origins = {take: origin(self.run, self.images, self.view, take, self.shown) for take in self.view.takes}
        # all are looked at before the first is laid out: one that is refused leaves nothing behind
        waiting = [take for take, file in files.items() if again or not self.is_there(file, take, origins[take])]
        for take in files.keys() - set(waiting):
            note_of(files[take]).unlink(missing_ok=True)  # of a recording that was killed once all was done
        recordings = {take: self.recording(files[take], take, origins[take]) for take in waiting}
        return {file: take in recordings for take, file in files.items()}, recordings

    def is_there(self, file: Path, take: Take, wanted: Origin) -> bool:
        """Whether the very trace was recorded before."""
        return is_recorded(file, wanted, take.steps, self.total, self.embeddings, self.half)

    def recording(self, file: Path, take: Take, wanted: Origin) -> Recording:
        """A trace to fill; one that was interrupted goes on if it was shown the same images in the same portions."""
        features = head_of(self.run.net, take.steps).in_features if self.embeddings else None
        form = Form.of(take.steps, self.total, len(self.run.inputs.classes), features, self.half)
        view = self.view
        costs = {"updates": view.updates(self.run, take.steps), "operations": view.operations(self.run, take.steps)}
        told = replace(wanted, **{name: tuple(each) for name, each in costs.items()})
        return Recording(file, form, told, portions=self.together)

    def fill(self, recordings: dict[Take, Recording], told: Callable[[int], object]) -> None:
        """Run the network over what is missing."""
        done, saved = min(each.done for each in recordings.values()), time.monotonic()
        told(done)
        for trial, place in self.chunks():
            some = self.shown[place : place + self.together]
            start = trial * len(self.shown) + place
            if start + len(some) <= done:
                continue
            self.show(recordings, some, start, trial)
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
    def show(self, recordings: dict[Take, Recording], some: Tensor, start: int, trial: int) -> None:
        """Show some images, and write down what is said about them. The noise of an image follows from its row."""
        net, rows = self.run.net, self.images.indices[some]
        parts = {"labels": self.images.labels[some].numpy(), "indices": rows.numpy()}
        shown = self.images.images[some].to(next(net.parameters()).device)
        generators = [generator_at(self.view.draws, "noise", trial, row) for row in rows.tolist()]
        with listening(net, self.embeddings) as heard:
            for take, logits in zip(self.view.takes, self.view.show(self.run, shown, generators), strict=True):
                self.check(logits)
                if heard:
                    head = head_of(net, take.steps).weight
                    parts |= {"embeddings": heard[-1].cpu().numpy(), "head": head.cpu().numpy()}
                if take in recordings:
                    recordings[take].write(start, logits=logits.cpu().numpy(), **parts)

    def check(self, logits: Tensor) -> None:
        """What is said are numbers, and the trace can hold them."""
        if not logits.isfinite().all():
            raise InputError(f"{self.run.folder} says what is not a number: it has diverged, train another")
        if self.half and not logits.half().isfinite().all():
            raise InputError(f"{self.run.folder} says numbers beyond half precision: leave out --half")


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
