"""Folders of runs with traces made by hand: what analyses are asked of, without a network."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from cascaded import Origin, Spec, Trace, save_trace
from cascaded.traces.config import Noising
from cascaded.training.runs import Inputs, begin

CLASSES = ("ant", "bee", "cat", "dog")
INPUTS = Inputs((1, 8, 8), (0.5,), (0.25,), CLASSES)


def made_trace(seed=0, items=40, steps=6, classes=4, good=2.0, indices=None, embeddings=False, **origin) -> Trace:
    """A trace that grows surer, and mostly right, over time; better with a higher `good`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(items) % classes
    logits = rng.normal(size=(steps, items, classes)).astype(np.float32)
    logits[:, np.arange(items), labels] += good * np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    told = {"data": "digits", "split": "test", "classes": CLASSES[:classes], "kernel": "ews:0.9", "weights": "w"}
    told = {**told, "updates": (1,) * steps, "operations": (10,) * steps, **origin}
    source = f"{told['data']} {'train' if told['split'] == 'validation' else told['split']}"
    told = {"images": hashlib.sha256(source.encode()).hexdigest(), **told}
    more = {}
    if embeddings:
        head = rng.normal(size=(classes, 5)).astype(np.float32)
        more = {"embeddings": (head[labels] + rng.normal(size=(items, 5))).astype(np.float32), "head": head}
    return Trace(logits, labels, indices, Origin(**told), **more)


def noisy_trace(protocol="persistent", frames=6, trials=2, items=8, seed=0, **options) -> Trace:
    """A trace under noise, every image in every trial."""
    steps = frames if protocol == "persistent" else 6 + frames
    onset = 1 if protocol == "persistent" else 4
    noise = Noising("focus", protocol, onset, frames, trials)
    indices = np.tile(np.arange(items), trials)
    trace = made_trace(seed, items * trials, steps, indices=indices, noise=noise, kernel="osd", **options)
    return replace(trace, labels=np.tile(np.arange(items) % 4, trials))


def made_run(folder: Path, traces: dict[str, Trace] | None = None, **spec) -> Path:
    """The folder of a run, with traces by name."""
    begin(folder, Spec(**{"data": "digits", **spec}), "abc", INPUTS, made_with={})
    for name, trace in (traces or {}).items():
        origin = replace(trace.origin, run=folder.as_posix(), seed=spec.get("seed", 0))
        save_trace(replace(trace, origin=origin), folder / "traces" / f"{name}.safetensors")
    return folder
