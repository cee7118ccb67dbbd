"""A trained network, from the folder of its run: ready to answer, without the images it was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from cascaded.cascade.network import Cascade
from cascaded.data.augment import normalise
from cascaded.errors import InputError
from cascaded.training import checkpoint
from cascaded.training.config import Spec
from cascaded.training.loop import build, check_parameters
from cascaded.training.runs import Inputs, read_inputs, read_spec, resume_command, weights_digest
from cascaded.training.trainer import Position

OVERSHOOT = 1e-3
"""How far floats may lie outside 0..1: rounding of a resize or of half precision, a quarter of a grey level."""


@dataclass(frozen=True)
class Trained:
    """A trained network and what is known of it.

    Attributes:
        folder: Where its run is kept.
        spec: What the run is.
        inputs: What the network takes and what its answers mean.
        net: The network, in evaluation mode.
        weights: SHA-256 of its weights and statistics.
        step: How many steps it was trained for.
    """

    folder: Path
    spec: Spec
    inputs: Inputs
    net: Cascade
    weights: str
    step: int

    def normalised(
        self, images: Shaped[Tensor, "*time batch channels height width"]
    ) -> Float[Tensor, "*time batch channels height width"]:
        """Bytes, or floats in 0..1, as the network takes them: still images or a film. Other floats are refused."""
        if images.shape[-3:] != self.inputs.shape:
            raise InputError(
                f"images are {told_shape(images.shape[-3:])}, {self.folder} was trained on "
                f"{told_shape(self.inputs.shape)}: bring them to that form"
            )
        check_range(images, "give them to run.net")
        flat = normalise(images.reshape(-1, *images.shape[-3:]), self.inputs.mean, self.inputs.std)
        return flat.reshape(images.shape)


def load_run(folder: Path | str, device: torch.device | str = "cpu") -> Trained:
    """The network of a run as its newest checkpoint has it, in evaluation mode.

    Args:
        folder: A run: `runs/td0/0`.
        device: Where to put the network.
    """
    folder = Path(folder)
    if not (folder / "spec.json").exists():
        raise InputError(f"{folder} holds no run, there is no spec.json: give OUT/SEED of a cascaded train")
    spec, inputs = read_spec(folder), read_inputs(folder)
    found = checkpoint.newest(folder)
    if found is None:
        raise InputError(f"{folder} has no checkpoint yet: wait for the first one, or run {resume_command(folder)}")
    shape = torch.Size(inputs.shape)
    try:
        check_parameters(spec, len(inputs.classes), shape, {name: each.shape for name, each in found.model.items()})
    except InputError as error:
        raise InputError(f"the checkpoint in {folder} is of another network ({error}): bring its own back") from error
    net = build(spec, len(inputs.classes), shape)
    try:
        net.load_state_dict(found.model)
    except RuntimeError as error:
        told = str(error).splitlines()[-1].strip()
        raise InputError(f"the checkpoint in {folder} is of another network ({told}): bring its own back") from error
    step = Position.from_json(found.position).step
    return Trained(folder, spec, inputs, net.to(device).eval(), weights_digest(folder, step) or "", step)


def check_range(images: Tensor, if_normalised: str) -> None:
    """Refuse floats outside 0..1: normalised once more, they would be nothing that the network has ever seen.

    Args:
        images: Bytes, or floats.
        if_normalised: What to do with images that are normalised already, in the words of the error.
    """
    if not images.is_floating_point() or images.is_meta or not images.numel() or torch.compiler.is_compiling():
        return  # what is compiled or exported has no values to look at yet
    low, high = (float(each) for each in images.detach().aminmax())
    if not (low >= -OVERSHOOT and high <= 1 + OVERSHOOT):  # neither holds for NaN
        raise InputError(
            f"images are floats from {low:.4g} to {high:.4g}, this network takes bytes (torch.uint8) or floats from 0 "
            f"to 1: divide 0..255 by 255, clamp what a resize overshot, or if they are normalised already "
            f"{if_normalised}"
        )


def digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of tensors and their names."""
    told = hashlib.sha256()
    for name in sorted(tensors):
        told.update(name.encode())
        told.update(tensors[name].detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return told.hexdigest()


def told_shape(shape: tuple[int, ...] | torch.Size) -> str:
    """`3 channels of 32 x 32`."""
    if len(shape) != 3:
        return " x ".join(map(str, shape)) + " without channels"
    channels, height, width = shape
    return f"{channels} channel{'s' if channels > 1 else ''} of {height} x {width}"
