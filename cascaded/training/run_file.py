"""The content of `config.json`: the configuration of a run and what its network expects."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cascaded import PROTOCOL_VERSION, __version__
from cascaded.errors import InputError
from cascaded.files import from_json
from cascaded.training.config import RunConfig
from cascaded.training.inputs import Inputs

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FORMAT = 2


@dataclass(frozen=True)
class RunFile:
    """The content of `config.json`, of a run and of a saved network.

    Attributes:
        config: The configuration of the run.
        inputs: What the network expects.
        images: A digest of the training images; None if they are not known.
        made_with: Versions of cascaded, the protocol, torch and Python.
        accuracy: Test accuracy per step; empty if it is not known.
    """

    config: RunConfig
    inputs: Inputs
    images: str | None = None
    made_with: dict[str, str] = field(default_factory=dict)
    accuracy: tuple[float, ...] = ()

    def __post_init__(self):
        if not all(0 <= each <= 1 for each in self.accuracy):
            raise InputError(f"accuracy is {list(self.accuracy)}: give numbers from 0 to 1")

    def to_json(self) -> dict[str, Any]:
        """As `config.json` stores it."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, content: Any) -> RunFile:
        """What `to_json` gave; raises `ValueError` with what is wrong."""
        if not isinstance(content, dict) or not {"config", "inputs"} <= set(content):
            raise ValueError("it has no config and inputs")
        if content.get("format") != FORMAT:
            raise ValueError(f"format is {content.get('format')!r}, this version of cascaded reads {FORMAT}")
        return from_json({name: value for name, value in content.items() if name != "format"}, cls)


def made_with() -> dict[str, str]:
    """Versions of cascaded, the protocol, torch and Python."""
    import torch  # late: `cascaded report` reads run files without torch

    ours = {"cascaded": __version__, "protocol": str(PROTOCOL_VERSION)}
    return {**ours, "torch": str(torch.__version__), "python": platform.python_version()}


def protocol_version(made_with: Mapping[str, str]) -> int:
    """Version of the protocol that a file was made with; the first where the file does not have it."""
    known = made_with.get("protocol", "")
    return int(known) if known.isdecimal() else 1
