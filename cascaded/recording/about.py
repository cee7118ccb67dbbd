"""What a trace says of itself, what its file is called, and whether it is there already."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from cascaded.cascade.named import kernel_name
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.learning.trained import Trained
from cascaded.learning.training import made_with
from cascaded.recording.views import Noisy, Take, View
from cascaded.trace.origin import Origin
from cascaded.trace.store import read_header


def origin(run: Trained, images: Images, view: View, take: Take) -> Origin:
    """Where a trace comes from."""
    spec, known = run.spec, images.classes == run.inputs.classes
    return Origin(
        run=run.folder.as_posix(),
        model=spec.model,
        lam=getattr(spec.method.loss, "lam", None),
        seed=spec.seed,
        fold=spec.fold,
        weights=run.weights,
        data=images.name,
        split=images.split,
        images=images.fingerprint(),
        classes=run.inputs.classes,
        known=known,
        schedule=view.schedule,
        kernel=kernel_name(view.kernel) if view.schedule == "cascaded" else "none",
        noise=take.noise,
        coarse_of=coarse_of(images) if known else (),
        coarse_classes=images.coarse_classes if known else (),
        updates=tuple(view.updates(run, take.steps)),
        operations=tuple(view.operations(run, take.steps)),
        made_with=made_with(),
    )


def coarse_of(images: Images) -> tuple[int, ...]:
    """For every class the coarser one; empty where the data has one level, or a class is in two groups or in none."""
    if images.coarse is None:
        return ()
    groups = np.unique(np.stack([images.labels.numpy(), images.coarse.numpy()]), axis=1)
    whole = np.array_equal(groups[0], np.arange(len(images.classes)))
    return tuple(groups[1].tolist()) if whole else ()


def trace_file(run: Trained, images: Images, view: View, take: Take, shown: int) -> Path:
    """A name that tells what is in it: `traces/cifar10-test-ews0.9-70.safetensors`."""
    data = re.sub(r"[^\w.-]", "_", Path(images.name).name if "/" in images.name else images.name)
    how = "serial" if view.schedule == "serial" else kernel_name(view.kernel).replace(":", "").replace(",", "_")
    steps = "" if isinstance(view, Noisy) else f"-{take.steps}"
    part = "" if shown == len(images) or images.split == "validation" else f"-{shown}images"
    return run.folder / "traces" / f"{data}-{images.split}-{how}{steps}{take.ending}{part}.safetensors"


def is_recorded(file: Path, wanted: Origin, items: int, embeddings: bool) -> bool:
    """Whether the very trace is there; one of something else under its name is not lost without being asked for."""
    if not file.exists():
        return False
    there = read_header(file)
    names = ("weights", "data", "split", "images", "kernel", "schedule", "noise")
    pairs = {what: (getattr(there.origin, what), getattr(wanted, what)) for what in names}
    pairs |= {"steps": (there.steps, len(wanted.updates)), "items": (there.items, items)}
    pairs |= {"embeddings": (there.embeddings or not embeddings, True)}
    for what, (before, now) in pairs.items():
        if before != now:
            raise InputError(
                f"{file} was recorded with {what} {_short(before)}, now {_short(now)} is asked for: say --again to "
                "replace it"
            )
    return True


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 90 else f"{text[:12]}..."
