"""Run a network on a set of images and store its logits at every step."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from cascaded.cascade.network import PIECE
from cascaded.cascade.readout import pool
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.models.classifier import Classifier
from cascaded.models.networks import Network
from cascaded.traces.capture import record_activations
from cascaded.traces.config import Provenance, RecordingConfig
from cascaded.traces.protocols import Protocol, make_protocol
from cascaded.traces.select import limit_images, select_images
from cascaded.traces.store import load_trace
from cascaded.traces.trace import short
from cascaded.traces.writer import Recording, make_form, note_of
from cascaded.training.load import Trained
from cascaded.training.run_file import made_with
from cascaded.training.runs import locked
from cascaded.training.seeds import generator_at

OnProgress = Callable[[int, int], object]
"""Called with the number of items that are done and the number of all items."""
PIXELS = 256_000
"""Pixels of all frames that are presented at once: 250 images of CIFAR."""
SAVE_SECONDS = 5.0
"""Seconds between two points from which an interrupted recording can resume."""


def record(
    run: Trained,
    config: RecordingConfig,
    *,
    images: Images | None = None,
    items: Int64[Tensor, "items"] | None = None,
    overwrite: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> dict[Path, bool]:
    """Record a network into its run's folder; finished recordings are skipped, interrupted ones resume.

    Returns the files, and whether each was written now.

    Args:
        run: The network, from `load_run`.
        config: Which images are presented, how, and what is stored.
        images: Images in memory, instead of the data and split of the configuration; it is stored with theirs.
        items: Which of these images, by number; all by default.
        overwrite: Replace recordings that exist.
        on_progress: Called with the numbers of finished and of all items.
    """
    protocol = make_protocol(run, config)
    if images is None:
        images, items = select_images(run, config.data, config.split)
    items = torch.arange(len(images)) if items is None else items
    some = limit_images(images, items, config.max_images)
    resolved = replace(protocol.config, data=images.name, split=images.split, max_images=None, activations=None)
    max_images = config.max_images if len(some) < len(items) else None
    session = Session(run, images, some, Protocol(run, replace(resolved, max_images=max_images)))
    with locked(run.folder / "traces"):
        files, recordings = session.begin(overwrite)
        if recordings:
            session.fill(recordings, on_progress)
        else:
            on_progress(session.total, session.total)
    if config.activations is not None:
        chosen = limit_images(images, items, config.activations)
        source = provenance(run, images, chosen)
        file, new = record_activations(run, images.select(chosen), resolved, source, overwrite)
        files[file] = new
    return files


@dataclass(frozen=True)
class Session:
    """One network, some images, and the protocol by which they are presented."""

    run: Trained
    images: Images
    items: Int64[Tensor, "items"]
    protocol: Protocol

    @property
    def trials(self) -> int:
        """Number of times that every image is presented."""
        return self.protocol.config.trials or 1

    @property
    def total(self) -> int:
        """Items per trace: every image, once per trial."""
        return len(self.items) * self.trials

    @property
    def chunk(self) -> int:
        """Number of images that are presented at a time."""
        height, width = self.images.images.shape[-2:]
        frames = self.protocol.frames_in_memory
        if isinstance(self.run.net, Classifier):  # all steps are computed at once
            frames = max(frames, math.ceil(self.protocol.steps / PIECE))
        return max(1, PIXELS // (height * width * frames))

    def begin(self, overwrite: bool) -> tuple[dict[Path, bool], dict[int, Recording]]:
        """All files and whether each is to be recorded, and the recordings, by the number of their variant."""
        variants, source = self.protocol.variants, provenance(self.run, self.images, self.items)
        files = [self.run.folder / "traces" / f"{config.name}.safetensors" for config in variants]
        # all are checked before the first is laid out: one that is refused leaves nothing behind
        pairs = list(zip(files, variants, strict=True))
        missing = [overwrite or not is_recorded(file, config, source) for file, config in pairs]
        recordings = {}
        for number, (file, config) in enumerate(pairs):
            if missing[number]:
                recordings[number] = self.recording(file, config, source)
            else:
                note_of(file).unlink(missing_ok=True)  # of a recording that was killed at its very end
        return dict(zip(files, missing, strict=True)), recordings

    def recording(self, file: Path, config: RecordingConfig, source: Provenance) -> Recording:
        """A trace to fill; an interrupted one resumes if images and chunks are the same."""
        steps = config.total_steps
        features = self.head(steps).in_features if config.embeddings else None
        form = make_form(config, self.total, len(self.run.inputs.classes), features)
        updates, operations = self.protocol.cost(steps)
        source = replace(source, updates=tuple(updates), operations=tuple(operations))
        return Recording(file, form, config, source, chunk=self.chunk)

    def fill(self, recordings: dict[int, Recording], on_progress: OnProgress) -> None:
        """Run the network on everything that is missing."""
        done, saved = min(each.done for each in recordings.values()), time.monotonic()
        on_progress(done, self.total)
        for trial in range(self.trials):
            for place in range(0, len(self.items), self.chunk):
                some = self.items[place : place + self.chunk]
                start = trial * len(self.items) + place
                end = start + len(some)
                if end <= done:
                    continue
                self.present(recordings, some, start, trial)
                on_progress(end, self.total)
                if time.monotonic() - saved >= SAVE_SECONDS:
                    for each in recordings.values():
                        each.keep(end)
                    saved = time.monotonic()
        for each in recordings.values():
            each.finish()

    @torch.no_grad()
    def present(self, recordings: dict[int, Recording], some: Tensor, start: int, trial: int) -> None:
        """Present some images and write the logits. The noise on an image depends on its row and the trial only."""
        net, rows, seed = self.run.net, self.images.indices[some], self.protocol.config.seed
        arrays = {"labels": self.images.labels[some].numpy(), "indices": rows.numpy()}
        pixels = self.images.images[some].to(next(net.parameters()).device)
        generators = [generator_at(seed, "noise", trial, row) for row in rows.tolist()]
        captured = deque(maxlen=1)
        with _head_inputs(net, captured):
            for number, logits in enumerate(self.protocol.present(pixels, generators)):
                self.check(logits)
                if self.protocol.config.embeddings:
                    embeddings, head = self.embeddings(pixels, captured), self.head(len(logits)).weight
                    arrays |= {"embeddings": embeddings.cpu().numpy(), "head": head.cpu().numpy()}
                if number in recordings:
                    recordings[number].write(start, logits=logits.cpu().numpy(), **arrays)

    def embeddings(self, pixels: Tensor, captured: deque[Any]) -> Float[Tensor, "batch features"]:
        """The input of the output layer at the last step; of a converted model, that of its final output."""
        if isinstance(self.run.net, Classifier):
            return self.run.net.final_features(self.run.normalized(pixels))[0]
        return pool(captured[0].last())

    def head(self, step: int) -> torch.nn.Linear:
        """The output layer at a step."""
        net, device = self.run.net, next(self.run.net.parameters()).device
        if isinstance(net, Classifier):
            return net.final_features(torch.zeros(1, *self.run.inputs.shape, device=device))[1]
        head = net.readout.at(step)
        assert isinstance(head, torch.nn.Linear)
        return head

    def check(self, logits: Tensor) -> None:
        """Refuse logits that are not finite, or not in the precision that is stored."""
        if not logits.isfinite().all():
            raise InputError(f"the outputs of {self.run.folder} are not finite: it has diverged, train another")
        if self.protocol.config.dtype == "float16" and not logits.half().isfinite().all():
            raise InputError(f"the outputs of {self.run.folder} are too large for float16: use --dtype float32")


def _head_inputs(net: Network, captured: deque[Any]) -> AbstractContextManager[Any]:
    """Keep the input of the output layer, at its last call."""
    if isinstance(net, Classifier):
        return nullcontext()
    return net.readout.register_forward_pre_hook(lambda module, inputs: captured.append(inputs[0]))


def provenance(run: Trained, images: Images, items: Int64[Tensor, "items"]) -> Provenance:
    """The provenance of a recording; the cost per step is added when it is recorded."""
    config, own, digest = run.config, images.classes == run.inputs.classes, images.fingerprint()
    presented = hashlib.sha256(digest.encode() + images.indices[items].numpy().tobytes()).hexdigest()
    return Provenance(
        run=run.folder.as_posix(),
        method=config.method,
        lam=getattr(config.get_method().loss, "lam", None),
        seed=config.seed,
        fold=config.fold,
        weights=run.weights,
        images=digest,
        items=presented,
        classes=run.inputs.classes,
        in_distribution=own,
        coarse_of=coarse_of(images) if own else (),
        coarse_classes=images.coarse_classes if own else (),
        made_with=made_with(),
    )


def coarse_of(images: Images) -> tuple[int, ...]:
    """Coarse class of every class; empty for data with one level, or if a class is in two coarse classes or in none."""
    if images.coarse is None:
        return ()
    pairs = np.unique(np.stack([images.labels.numpy(), images.coarse.numpy()]), axis=1)
    complete = np.array_equal(pairs[0], np.arange(len(images.classes)))
    return tuple(pairs[1].tolist()) if complete else ()


def is_recorded(file: Path, config: RecordingConfig, source: Provenance) -> bool:
    """Whether this trace exists and is intact; a different trace of the same name is refused, not replaced.

    A trace that only lacks embeddings is recorded again: nothing is lost, the logits are the same.
    """
    try:
        there = load_trace(file)
    except InputError:
        return False
    embeddings = config.embeddings
    config = replace(config, embeddings=there.config.embeddings)
    if there.config.dtype == "float32":
        config = replace(config, dtype="float32")
    pairs = [(each.name, getattr(there.config, each.name), getattr(config, each.name)) for each in fields(config)]
    names = ("weights", "images", "items")
    pairs += [(name, getattr(there.provenance, name), getattr(source, name)) for name in names]
    for name, before, now in pairs:
        if before != now:
            raise InputError(
                f"{file} was recorded with {name} {short(before)}, not {short(now)}: add --overwrite to replace it"
            )
    return there.config.embeddings or not embeddings
