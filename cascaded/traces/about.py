"""What a trace says of itself, what its file is called, and whether it is there already."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
from jaxtyping import Int64
from torch import Tensor

from cascaded.cascade.named import kernel_name
from cascaded.data.catalogue import SOURCES
from cascaded.data.images import Images
from cascaded.errors import InputError
from cascaded.traces.config import Noising, Origin
from cascaded.traces.protocols import Noisy, Take, View
from cascaded.traces.store import load_trace, read_header
from cascaded.training.load import Trained
from cascaded.training.loop import made_with


def origin(run: Trained, images: Images, view: View, take: Take, shown: Int64[Tensor, "items"]) -> Origin:
    """Where a trace comes from; what it cost is counted later, if it is recorded."""
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
        shown=hashlib.sha256(images.indices[shown].numpy().tobytes()).hexdigest(),
        classes=run.inputs.classes,
        known=known,
        schedule=view.schedule,
        kernel=kernel_name(view.kernel) if view.schedule == "cascaded" else "none",
        noise=take.noise,
        coarse_of=coarse_of(images) if known else (),
        coarse_classes=images.coarse_classes if known else (),
        made_with=made_with(),
    )


def coarse_of(images: Images) -> tuple[int, ...]:
    """For every class the coarser one; empty where the data has one level, or a class is in two groups or in none."""
    if images.coarse is None:
        return ()
    groups = np.unique(np.stack([images.labels.numpy(), images.coarse.numpy()]), axis=1)
    whole = np.array_equal(groups[0], np.arange(len(images.classes)))
    return tuple(groups[1].tolist()) if whole else ()


def trace_file(run: Trained, images: Images, view: View, take: Take, part: str = "") -> Path:
    """A name that tells what is in it: `traces/cifar10-test-ews0.9-70.safetensors`."""
    data = re.sub(r"[^\w.-]", "_", Path(images.name).name if "/" in images.name else images.name)
    if images.name not in SOURCES:  # folders of one name in two places
        data += "-" + hashlib.sha256(images.name.encode()).hexdigest()[:6]
    how = "serial" if view.schedule == "serial" else kernel_name(view.kernel).replace(":", "").replace(",", "_")
    steps = "" if isinstance(view, Noisy) else f"-{take.steps}"
    return run.folder / "traces" / f"{data}-{images.split}-{how}{steps}{take.ending}{part}.safetensors"


def is_recorded(file: Path, wanted: Origin, steps: int, items: int, embeddings: bool, half: bool) -> bool:
    """Whether the very trace is there; one of something else under its name is not lost without being asked for."""
    if not is_whole(file):
        return False
    there = read_header(file)
    names = ("weights", "data", "split", "images", "kernel", "schedule", "noise")
    pairs = {what: (getattr(there.origin, what), getattr(wanted, what)) for what in names}
    if there.origin.noise and wanted.noise:
        parts = [each.name for each in fields(Noising)]
        del pairs["noise"]
        pairs |= {f"noise {each}": (getattr(there.origin.noise, each), getattr(wanted.noise, each)) for each in parts}
    pairs |= {"steps": (there.steps, steps), "items": (there.items, items)}
    pairs |= {"rows": (there.origin.shown, wanted.shown)}
    pairs |= {"embeddings": (there.embeddings, there.embeddings or embeddings)}  # more than was asked for is enough
    pairs |= {"half": (there.half, there.half and half)}
    for what, (before, now) in pairs.items():
        if before != now:
            raise InputError(
                f"{file} was recorded with {what} {_short(before)}, now {_short(now)} is asked for: say --again to "
                "replace it"
            )
    return True


def is_whole(file: Path) -> bool:
    """Whether a trace is there that is what was recorded; a damaged one is recorded again."""
    try:
        load_trace(file)
    except InputError:
        return False
    return True


def _short(value: object) -> str:
    """A digest by its first letters."""
    text = str(value)
    return text if len(text) < 64 else f"{text[:12]}..."
