"""The content of an exported folder. Nothing here imports torch."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cascaded.errors import InputError
from cascaded.files import from_json, read_json, sha256
from cascaded.training.inputs import Inputs

CONFIG, WEIGHTS, FULL_PASS = "config.json", "weights.bin", "serial.onnx"
FORMAT = "cascaded export 1"
MAX_STEPS = 100_000
"""A configuration with more steps is damaged."""
NEXT = "next."
"""An output that replaces a tensor of the state has its name after this word."""
BATCH = "batch"
"""Name of the one axis whose length may change."""
Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class StepFile:
    """An ONNX file that computes one step, or several that are alike.

    Attributes:
        file: Its name.
        first: The first step that it computes.
        last: The last one; None for all later ones.
        reads: Shapes of its inputs by name: `frame`, and tensors of the state. One that does not read the frame
            computes a step at which the frame is the same as at all steps before.
        writes: Shapes of its outputs by name: `logits`, and after `next.` the tensors of the state that it changes.
    """

    file: str
    first: int
    last: int | None
    reads: dict[str, Shape]
    writes: dict[str, Shape]

    def computes(self, step: int) -> bool:
        """Whether it computes a step."""
        return self.first <= step and (self.last is None or step <= self.last)


@dataclass(frozen=True)
class Steps:
    """The steps of a schedule.

    Attributes:
        steps: Number of steps until the output for a still image is final; None if it converges only in the limit.
        files: The files, those for repeated frames first: the first one that fits a step computes it.
        accuracy: Test accuracy per step; empty if it is not known.
        operations: Operations per image at every step; empty if the number of steps is not known, or with `exits`.
        exits: The network's own steps after which there is an output, if not after all: step 1 of the export ends with
            the first of them, and so on.
    """

    steps: int | None
    files: tuple[StepFile, ...]
    accuracy: tuple[float, ...] = ()
    operations: tuple[int, ...] = ()
    exits: tuple[int, ...] = ()

    def __post_init__(self):
        if self.steps is not None and not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"steps is {self.steps}: give 1 to {MAX_STEPS:,}")

    def find(self, step: int, same: bool) -> StepFile | None:
        """The file for a step.

        Args:
            step: Number of the step, from 1.
            same: Whether the frame is the same as at all steps before.
        """
        fits = (each for each in self.files if each.computes(step) and (same or "frame" in each.reads))
        return next(fits, None)


@dataclass(frozen=True)
class ExportConfig:
    """The content of `config.json` in an exported folder.

    Attributes:
        inputs: Input shape, normalization and class names.
        kernel: The delay kernel.
        heads: `shared`, `per_step` or `shallow_deep`.
        schedule: The network's own schedule.
        schedules: The files of every schedule.
        files: SHA-256 of every file, by name.
        opset: Version of the ONNX operators.
        made_with: Versions of cascaded, the protocol, torch and Python.
        precision: `float32`, or `int8`: layers compute in 8 bits, and every file has its own weights.
    """

    inputs: Inputs
    kernel: str
    heads: str
    schedule: Literal["cascaded", "serial"]
    schedules: dict[str, Steps]
    files: dict[str, str]
    opset: int
    made_with: dict[str, str] = field(default_factory=dict)
    precision: Literal["float32", "int8"] = "float32"

    def __post_init__(self):
        weights = {WEIGHTS} if self.precision == "float32" else set[str]()
        named = {FULL_PASS, *weights, *(each.file for steps in self.schedules.values() for each in steps.files)}
        if missing := sorted(named - set(self.files)):
            raise InputError(f"it has no digest of {', '.join(missing)}")
        if outside := sorted(name for name in self.files if Path(name).name != name):
            raise InputError(f"{', '.join(outside)} is not the name of a file")
        if self.schedule not in self.schedules:
            raise InputError(f"it has no files of the {self.schedule} schedule")

    @property
    def digest(self) -> str:
        """SHA-256 of all files: two exports with the same one compute the same."""
        return hashlib.sha256("".join(sorted(self.files.values())).encode("utf-8", "replace")).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As `config.json` stores it."""
        return {"format": FORMAT, **asdict(self)}


def read_export(folder: Path) -> ExportConfig:
    """Read the configuration of an exported folder, and check that its files are those that were exported."""
    again = "export the network again with `cascaded export`"
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} has no {CONFIG} and is not an exported network: give the folder of an export")
    content = read_json(folder / CONFIG)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{folder / CONFIG} is not that of an exported network ({FORMAT}): {again}")
    try:
        config = from_json({name: value for name, value in content.items() if name != "format"}, ExportConfig)
    except (ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{folder / CONFIG} is damaged ({error}): {again}") from error
    for name, digest in config.files.items():
        try:
            found = sha256(folder / name)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder / name} cannot be read ({error}): {again}") from error
        if found != digest:
            raise InputError(f"{folder / name} is damaged, or does not belong to {CONFIG}: {again}")
    return config
