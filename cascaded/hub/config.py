"""`config.json`: what a saved network is, so that it can be built before its weights are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.files import check_types, fits, read_json
from cascaded.progress import readable
from cascaded.training.config import Spec
from cascaded.training.recipe import Recipe
from cascaded.training.runs import Inputs

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
"""The files of a saved network, as huggingface_hub calls them."""


@dataclass(frozen=True)
class Config:
    """What a saved network is.

    Attributes:
        spec: The run that it comes from.
        inputs: What it takes and what its answers mean.
        accuracy: Test accuracy at every step; empty where it is not known.
    """

    spec: Spec
    inputs: Inputs
    accuracy: tuple[float, ...] = ()

    @classmethod
    def from_json(cls, spec: Mapping[str, Any], inputs: Mapping[str, Any], accuracy: Sequence[float] = ()) -> Config:
        """What `to_json` gave, checked: files from the hub may say anything."""
        try:
            _check_types(spec, inputs, accuracy)
            config = cls(
                Spec.from_json(dict(spec)),
                Inputs(**{name: tuple(value) for name, value in inputs.items()}),
                tuple(float(each) for each in accuracy),
            )
            _ = config.spec.method
            _check(config)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"what is told of the network does not describe one ({readable(str(error))}): save it again with "
                "save_pretrained"
            ) from error
        return config

    def to_json(self) -> dict[str, Any]:
        """As `config.json` has it: the arguments of `Pretrained`."""
        return {"spec": self.spec.to_json(), "inputs": asdict(self.inputs), "accuracy": list(self.accuracy)}


def _check_types(spec: Mapping[str, Any], inputs: Mapping[str, Any], accuracy: Sequence[float]) -> None:
    for told, kind in ((spec, Spec), (spec["recipe"], Recipe), (inputs, Inputs)):
        check_types(told, kind)
    if not fits(accuracy, tuple[float, ...]):
        raise ValueError("accuracies are not finite numbers")


def _check(config: Config) -> None:
    spec, inputs = config.spec, config.inputs
    shape, statistics = inputs.shape, (inputs.mean, inputs.std)
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"shape is {list(shape)}, not channels, height and width")
    # single precision has to hold them
    if any(len(each) != shape[0] or max(map(abs, each)) > 1e30 for each in statistics) or min(inputs.std) < 1e-30:
        raise ValueError(f"mean {list(inputs.mean)} and deviation {list(inputs.std)} are not of {shape[0]} channels")
    if not inputs.classes:
        raise ValueError("its classes have no names")
    if not all(0 <= each <= 1 for each in config.accuracy):
        raise ValueError(f"accuracies are {list(config.accuracy)}, not from 0 to 1")
    for name in ("limit", "size"):
        if (value := getattr(spec, name)) is not None and value < 1:
            raise ValueError(f"{name} is {value}, not at least 1")
    if spec.fold and not 1 <= spec.fold[0] <= spec.fold[1] > 1:
        raise ValueError(f"fold is {list(spec.fold)}, not which of how many")
    if spec.lam == ():
        raise ValueError("lam is empty")


def check_files(name: str, files: set[str]) -> None:
    """That a network's files are among some; a pickle does not count as weights."""
    if CONFIG not in files:
        raise InputError(f"{name} holds no saved network, there is no {CONFIG}: write one with save_pretrained")
    if WEIGHTS not in files:
        raise InputError(
            f"{name} holds no {WEIGHTS}, and other weights, such as pytorch_model.bin, are never unpickled: save the "
            "network again with save_pretrained of cascaded"
        )


def check_folder(folder: Path, name: str | None = None) -> None:
    """A folder that holds a network in the form of `save_pretrained`, before anything is built from it.

    Args:
        folder: Where its files are.
        name: What it is called in messages, where that is not the folder.
    """
    name = name or str(folder)
    check_files(name, {file.name for file in folder.iterdir()})
    told = read_json(folder / CONFIG)
    if not isinstance(told, dict) or not {"spec", "inputs"} <= set(told):
        raise InputError(
            f"{CONFIG} of {name} does not tell spec and inputs, it is of another library or damaged: give a network "
            "that save_pretrained of cascaded wrote"
        )
    try:
        Config.from_json(told["spec"], told["inputs"], told.get("accuracy", ()))
    except InputError as error:
        raise InputError(f"{CONFIG} of {name}: {error}") from error
