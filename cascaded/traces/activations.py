"""Activations of every block at every step for some images, in a file: the data of the report's explorer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import msgspec
import numpy as np
from jaxtyping import Float32, Int64, UInt8
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.traces.config import Provenance, RecordingConfig

FORMAT = "2"
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
    serial: Float32[np.ndarray, "steps blocks"]

    def __post_init__(self):
        steps, items = self.logits.shape[:2]
        shapes = {"maps": self.maps.shape[:2], "convergence": self.convergence.shape[:2]}
        shapes |= {name: (steps, len(getattr(self, name))) for name in ("images", "labels", "indices")}
        for name, shape in shapes.items():
            if shape != (steps, items):
                raise InputError(f"{name} has (steps, images) {shape}, logits {(steps, items)}: record them again")


ARRAYS = tuple(each.name for each in fields(Activations) if each.name not in ("config", "provenance"))


def save_activations(activations: Activations, file: Path) -> None:
    """Write activations, completely or not at all."""
    arrays = {name: np.ascontiguousarray(getattr(activations, name)) for name in ARRAYS}
    metadata = {"activations": FORMAT}
    for name in ("config", "provenance"):
        metadata[name] = msgspec.json.encode(getattr(activations, name)).decode()
    write_whole(file, lambda part: save_file(arrays, part, metadata=metadata))


def load_activations(file: Path) -> Activations:
    """Activations from their file."""
    try:
        with safe_open(file, "np") as opened:
            metadata, names = opened.metadata() or {}, set(opened.keys())
            if metadata.get("activations") != FORMAT or not names >= set(ARRAYS):
                raise InputError(f"{file} has no activations of format {FORMAT}: record it again with --activations")
            arrays = {name: opened.get_tensor(name) for name in ARRAYS}
        config = msgspec.json.decode(metadata["config"], type=RecordingConfig)
        provenance = msgspec.json.decode(metadata["provenance"], type=Provenance)
        return Activations(config=config, provenance=provenance, **arrays)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} cannot be read ({error}): record it again with --activations") from error
