"""Activations of every block at every step for some images, in a file: the data of the report's explorer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import msgspec
import numpy as np
from jaxtyping import Float32, Int64, UInt8

from cascaded.errors import InputError
from cascaded.files import read_tensors, write_tensors
from cascaded.traces.config import Provenance, RecordingConfig

FORMAT = 3
SIDE = 8
"""Pixels per side of an activation map."""


@dataclass(frozen=True)
class Activations:
    """Some images, and the activations of the stem and of every block of one network at every step.

    Attributes:
        config: How the images were presented; `activations` is their number.
        provenance: The network and the data.
        images: The images, as bytes.
        labels: Their true classes.
        indices: Their rows in the data set.
        logits: The outputs.
        maps: Mean absolute activation over channels, resized. 255 is the highest value of a stage over all images and
            steps.
        convergence: Closeness of each stage to its value at the last step, from 0 (as at the first step) to 1. Under
            the serial schedule: 1 once it has been computed.
        cascaded: Convergence of the blocks under the cascaded schedule with a one-step delay, as a mean over images;
            empty for a network that was trained serially.
        serial: 1 for blocks that have been computed at each step of the serial schedule, else 0.
    """

    config: RecordingConfig
    provenance: Provenance
    images: UInt8[np.ndarray, "items channels height width"]
    labels: Int64[np.ndarray, "items"]
    indices: Int64[np.ndarray, "items"]
    logits: Float32[np.ndarray, "time items classes"]
    maps: UInt8[np.ndarray, "time items stages side side"]
    convergence: Float32[np.ndarray, "time items stages"]
    cascaded: Float32[np.ndarray, "steps blocks"]
    serial: Float32[np.ndarray, "serial_steps blocks"]

    def __post_init__(self):
        steps, items = self.logits.shape[:2]
        shapes = {"maps": self.maps.shape[:2], "convergence": self.convergence.shape[:2]}
        shapes |= {name: (steps, len(getattr(self, name))) for name in ("images", "labels", "indices")}
        for name, shape in shapes.items():
            if shape != (steps, items):
                raise InputError(f"{name} has (steps, images) {shape}, logits {(steps, items)}: give equal ones")

    def select(self, items: Int64[np.ndarray, "chosen"]) -> Activations:
        """Some of the images, by number."""
        per_image = {name: getattr(self, name)[items] for name in ("images", "labels", "indices")}
        per_step = {name: getattr(self, name)[:, items] for name in ("logits", "maps", "convergence")}
        return replace(self, **per_image, **per_step)


ARRAYS = tuple(each.name for each in fields(Activations) if each.name not in ("config", "provenance"))


def save_activations(activations: Activations, file: Path) -> None:
    """Write activations, completely or not at all."""
    metadata = {"activations": FORMAT, "config": activations.config, "provenance": activations.provenance}
    write_tensors(file, {name: getattr(activations, name) for name in ARRAYS}, metadata)


def load_activations(file: Path) -> Activations:
    """Activations from their file."""
    metadata, arrays = read_tensors(file, "record it again with --activations")
    if metadata.get("activations") != FORMAT or set(arrays) != set(ARRAYS):
        raise InputError(f"{file} has no activations of format {FORMAT}: record it again with --activations")
    try:
        config = msgspec.convert(metadata["config"], RecordingConfig)
        return Activations(config, msgspec.convert(metadata["provenance"], Provenance), **arrays)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file} cannot be read ({error}): record it again with --activations") from error
