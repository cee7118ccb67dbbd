"""Folders of runs with traces made by hand: input for analyses, without a network."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cascaded import Provenance, RecordingConfig, RunConfig, Trace, save_trace
from cascaded.results.table import write
from cascaded.training.runs import Inputs, begin

CLASSES = ("ant", "bee", "cat", "dog")
INPUTS = Inputs((1, 8, 8), (0.5,), (0.25,), CLASSES)


def facts(**values) -> dict[str, Any]:
    """The config and provenance of a trace from fields of either; `seed` is that of the run."""
    config, provenance = _divided({"schedule": "cascaded", **values})
    return {"config": RecordingConfig(**config), "provenance": Provenance(**provenance)}


def with_facts(trace: Trace, **values) -> Trace:
    """The same trace with other fields of its config or provenance; `seed` is that of the run."""
    config, provenance = _divided(values)
    return replace(trace, config=replace(trace.config, **config), provenance=replace(trace.provenance, **provenance))


def _divided(values: dict[str, Any]) -> list[dict[str, Any]]:
    names = {each.name for each in fields(Provenance)}
    return [{name: value for name, value in values.items() if (name in names) is own} for own in (False, True)]


def made_trace(seed=0, items=40, steps=6, classes=4, good=2.0, indices=None, embeddings=False, **more) -> Trace:
    """A trace whose accuracy and confidence grow over time; better with a higher `good`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(items) % classes
    logits = rng.normal(size=(steps, items, classes)).astype(np.float32)
    logits[:, np.arange(items), labels] += good * np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    values = {"data": "digits", "split": "test", "classes": CLASSES[:classes], "kernel": "ews:0.9", "weights": "w"}
    values |= {"steps": steps, "schedule": "cascaded", "updates": (1,) * steps, "operations": (10,) * steps, **more}
    source = f"{values['data']} {'train' if values['split'] == 'validation' else values['split']}"
    values = {"images": hashlib.sha256(source.encode()).hexdigest(), **values}
    arrays = {}
    if embeddings:
        head = rng.normal(size=(classes, 5)).astype(np.float32)
        arrays = {"embeddings": (head[labels] + rng.normal(size=(items, 5))).astype(np.float32), "head": head}
    return Trace(logits, labels, indices, **facts(**values), **arrays)


def noisy_trace(protocol="persistent", frames=6, trials=2, items=8, seed=0, **options) -> Trace:
    """A trace under noise, every image in every trial; transient noise has three clean steps before and after it."""
    steps = frames if protocol == "persistent" else 6 + frames
    noise = {"noise": "focus", "protocol": protocol, "trials": trials, "kernel": "osd", "steps": frames}
    if protocol == "transient":
        noise |= {"steps": 3, "noise_frames": (frames,)}
    indices = np.tile(np.arange(items), trials)
    costs = {"updates": (1,) * steps, "operations": (10,) * steps}
    trace = made_trace(seed, items * trials, steps, indices=indices, **costs, **options)
    trace = with_facts(trace, **noise)
    return replace(trace, labels=np.tile(np.arange(items) % 4, trials))


def made_run(folder: Path, traces: dict[str, Trace] | None = None, made_with=None, **config) -> Path:
    """The folder of a run, with traces by name."""
    begin(folder, RunConfig(**config), "abc", INPUTS, made_with=made_with or {})
    for name, trace in (traces or {}).items():
        trace = with_facts(trace, run=folder.as_posix(), seed=config.get("seed", 0))
        save_trace(trace, folder / "traces" / f"{name}.safetensors")
    return folder


def made_runs(folder: Path, table: pd.DataFrame) -> Path:
    """A run for every run of a results table, with its results."""
    for name, rows in table.groupby("run"):
        first = rows.iloc[0]
        lam = None if pd.isna(first["lam"]) else float(first["lam"])
        run = made_run(folder / str(name), data=first["data"], method=first["method"], lam=lam, seed=int(first["seed"]))
        for analysis, own in rows.groupby("analysis"):
            write(run, str(analysis), own, {})
    return folder
