"""What the demo trains, shows and asks: the models, the recipe, and sizes that fit five minutes on two cores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import read_json, write_json
from cascaded.traces.config import RecordingConfig
from cascaded.training.config import RECIPES, RunConfig
from cascaded.training.method import get_method
from cascaded.training.sweep import Job, plan

DATA, OTHER = "cluttered-digits", "photographs"
MODELS = (("cascaded-td", "0"), ("cascaded-td", "1"), ("serial-td-multihead", None), ("cascaded-ce", None))
"""Models and lambdas. Those that take longest come first, so that no core is idle at the end."""
FINE = "ews:0.9"
NOISE = "occlusion"
BATCH = 64


@dataclass(frozen=True)
class Plan:
    """The sizes of a demo; all that its results depend on, besides the seeds.

    Attributes:
        models: Models and their lambdas.
        epochs: Passes over the training images.
        limit: How many training images are used; None for all.
        test: How many test images are shown in whole steps; None for all.
        fine: How many of them are shown in fine time.
        steps: How many steps that is.
        validation: How many held-out images, and photographs of that split.
        other: How many photographs to test with.
        noisy: How many test images are shown under noise.
        watched: How many test images the explorer has.
        learned: Epochs of what learns from traces: the stopper and MetaCog.
    """

    models: tuple[tuple[str, str | None], ...] = MODELS
    epochs: int = 4
    limit: int | None = None
    test: int | None = None
    fine: int = 400
    steps: int = 70
    validation: int = 150
    other: int = 200
    noisy: int = 100
    watched: int = 20
    learned: int = 30

    def config(self) -> RunConfig:
        """Data, network and recipe, the same for all runs: a ResNet-18 of 8 channels, settled at step 9."""
        return replace(
            RECIPES["laptop"],
            data=DATA,
            width=8,
            max_images=self.limit,
            epochs=self.epochs,
            batch_size=min(BATCH, self.limit or BATCH),
            lr=0.08,
        )

    def jobs(self, seeds: Sequence[int], out: Path) -> list[Job]:
        """The runs of all seeds, model by model."""
        return [
            job
            for model, lam in self.models
            for job in plan(self.config(), (model,), (lam,) if lam else (), seeds, out)
        ]

    def shown(self, job: Job) -> list[RecordingConfig]:
        """What the network of a run is shown."""
        test = RecordingConfig(max_images=self.test)
        persistent = RecordingConfig(noise=NOISE, trials=1, max_images=self.noisy)
        own = [
            RecordingConfig(split="validation", max_images=self.validation),
            persistent,
            replace(persistent, protocol="transient"),
        ]
        if get_method(job.config.method).schedule == "serial":  # where nothing is delayed, time is as fine as it gets
            return [replace(test, embeddings=True, activations=self.watched), *own]
        return [replace(test, activations=self.watched), *own, *self._in_fine_time()]

    def _in_fine_time(self) -> list[RecordingConfig]:
        fine = RecordingConfig(kernel=FINE, steps=self.steps)
        own = [(None, "test", self.fine), (None, "validation", self.validation)]
        other = [(OTHER, "test", self.other), (OTHER, "validation", self.validation)]
        return [
            replace(fine, data=data, split=split, max_images=limit, embeddings=data is None)
            for data, split, limit in own + other
        ]


FULL = Plan()
QUICK = Plan(
    (("cascaded-td", "0"), ("serial-td-multihead", None)),
    epochs=1,
    limit=128,
    test=40,
    fine=40,
    steps=12,
    validation=40,
    other=40,
    noisy=10,
    watched=10,
    learned=2,
)
"""A rehearsal: everything happens, and hardly anything is learned."""


def keep(plan: Plan, out: Path) -> None:
    """Say in a demo's folder what it is; a folder that holds another one is refused, so that none are mixed."""
    file, asked = out / "demo.json", json.loads(json.dumps(asdict(plan)))  # as it is read back
    if file.exists() and list(out.glob("runs/*/*/config.json")):
        if differences := _differences(read_json(file), asked):
            told = ", ".join(differences)
            raise InputError(f"{out} holds another demo ({told}): ask for that one, or choose another --out")
    else:
        write_json(file, asked)


def _differences(there: Any, asked: dict[str, Any]) -> list[str]:
    """How what is asked for differs from what is there: `epochs 5 -> 1`."""
    known = there if isinstance(there, dict) else {}
    names = sorted(known.keys() | asked.keys())
    return [f"{name} {known.get(name)} -> {asked.get(name)}" for name in names if known.get(name) != asked.get(name)]
