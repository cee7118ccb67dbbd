"""What goes on inside a network while it answers: some images, and what every block holds at every step."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.traces.config import Origin

FORMAT = "1"
SIDE = 8
"""Pixels of a map's side."""


@dataclass(frozen=True)
class States:
    """Some images, and what the stem and every block of one network hold at every step.

    Attributes:
        origin: The network, the data, and how the one was shown the other.
        images: What was shown, as bytes.
        labels: The true classes.
        indices: Which rows of their source they are.
        logits: What was said.
        maps: What the stem and every block hold: mean absolute activation over channels, made small. White is the
            highest that this stage reaches with any image at any step.
        nearness: How far each of them has come from its first state to that of the last step recorded, from 0 to 1.
            Under the serial schedule: whether it has been computed.
        cascaded: The same as a mean over images, blocks alone, under the cascaded schedule with a one-step delay;
            empty for a network that was not trained for it.
        serial: Which blocks have been computed at every cycle of the serial schedule: 0 or 1.
    """

    origin: Origin
    images: UInt8[np.ndarray, "items channels height width"]
    labels: Int64[np.ndarray, "items"]
    indices: Int64[np.ndarray, "items"]
    logits: Float32[np.ndarray, "time items classes"]
    maps: UInt8[np.ndarray, "time items stages side side"]
    nearness: Float32[np.ndarray, "time items stages"]
    cascaded: Float32[np.ndarray, "cycles blocks"]
    serial: Float32[np.ndarray, "cycles blocks"]

    def __post_init__(self):
        steps, items = self.logits.shape[:2]
        shapes = {"maps": self.maps.shape[:2], "nearness": self.nearness.shape[:2]}
        shapes |= {name: (steps, len(getattr(self, name))) for name in ("images", "labels", "indices")}
        for name, shape in shapes.items():
            if shape != (steps, items):
                raise InputError(f"{name} is of (steps, images) {shape}, logits of {(steps, items)}: record them again")


ARRAYS = tuple(each.name for each in fields(States) if each.name != "origin")


def save_states(states: States, file: Path) -> None:
    """Write states, whole or not at all."""
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(getattr(states, name)) for name in ARRAYS}
    told = {"states": FORMAT, "origin": json.dumps(states.origin.to_json())}
    write_whole(file, lambda part: save_file(arrays, part, metadata=told))


def load_states(file: Path) -> States:
    """States from their file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "np") as opened:
            told, names = opened.metadata() or {}, set(opened.keys())
            if told.get("states") != FORMAT or not names >= set(ARRAYS):
                raise InputError(f"{file} holds no states of format {FORMAT}: record them again with --states")
            arrays = {name: opened.get_tensor(name) for name in ARRAYS}
        return States(origin=Origin.from_json(json.loads(told["origin"])), **arrays)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} cannot be read ({error}): record it again with --states") from error
