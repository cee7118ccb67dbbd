"""Load the trained network of a run, or a saved one; its training images are not needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Shaped
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from cascaded.cascade.norm import TimeBatchNorm
from cascaded.data.augment import normalize
from cascaded.errors import InputError, first_line
from cascaded.models.classifier import Classifier
from cascaded.models.networks import Network, make_network
from cascaded.models.own import make_model
from cascaded.training import checkpoint
from cascaded.training.checkpoint import Position
from cascaded.training.config import RunConfig
from cascaded.training.inputs import Inputs, check_span, describe_shape
from cascaded.training.run_file import CONFIG, WEIGHTS
from cascaded.training.runs import checkpoint_places, read_run_file, resume_command
from cascaded.training.seeds import drawing_at, generator_at

LARGE = 128
"""Images of this size and larger get the large stem, 7x7 with stride 2."""


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Attributes:
        folder: The folder of its run.
        config: The configuration of the run.
        inputs: What the network expects and what its outputs mean.
        net: The network, in evaluation mode.
        weights: SHA-256 of the file with its weights and norm statistics.
        step: How many steps it was trained for; 0 for a saved network.
    """

    folder: Path
    config: RunConfig
    inputs: Inputs
    net: Network
    weights: str
    step: int

    def normalized(
        self, images: Shaped[Tensor, "*time batch channels height width"]
    ) -> Float[Tensor, "*time batch channels height width"]:
        """Normalize bytes, or floats from 0 to 1, of images or of frame sequences. Other floats are refused."""
        if images.shape[-3:] != self.inputs.shape:
            raise InputError(
                f"images are {describe_shape(images.shape[-3:])}, {self.folder} was trained on "
                f"{describe_shape(self.inputs.shape)}: resize them to that"
            )
        check_range(images, "give them to run.net")
        flat = normalize(images.reshape(-1, *images.shape[-3:]), self.inputs.mean, self.inputs.std)
        return flat.reshape(images.shape)


def load_run(folder: Path | str, device: torch.device | str = "cpu") -> Trained:
    """The network of a run, from its newest checkpoint, or a saved network; in evaluation mode.

    If the run was trained with `--arch package.module:function`, that function is imported from your own path. A saved
    network, which may be a stranger's, never imports code.

    Args:
        folder: A run, such as `runs/td0/0`, or a folder with config.json and model.safetensors.
        device: Where to put the network.
    """
    folder = Path(folder)
    file = read_run_file(folder)
    config, inputs = file.config, file.inputs
    if config.is_code and not checkpoint_places(folder):
        raise code_refused(folder, config)
    if config.is_code and Path.cwd().resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{folder} names the function {config.arch}, and code there is never imported: go up")
    tensors, weights, step = _read_weights(folder)
    shape, classes = torch.Size(inputs.shape), len(inputs.classes)
    net = build(config, classes, shape) if config.is_code else None  # what the user's code raises is not about weights
    try:
        if net is None:
            check_parameters(config, classes, shape, {name: each.shape for name, each in tensors.items()})
            net = build(config, classes, shape)
        load_weights(net, tensors, config)
    except (InputError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"the weights in {folder} are of another network ({reason}): bring back those of its {CONFIG}"
        ) from error
    return Trained(folder, config, inputs, net.to(device).eval(), weights, step)


def _read_weights(folder: Path) -> tuple[dict[str, Tensor], str, int]:
    """Tensors by name, the SHA-256 of their file and, for a run, the step of the checkpoint."""
    if (found := checkpoint.newest(folder)) is not None:
        return found.model, found.weights, Position.from_json(found.position).step
    if not (folder / WEIGHTS).exists():
        raise InputError(
            f"{folder} has no checkpoint yet, and no {WEIGHTS} (other weights are never unpickled): wait for the first "
            f"one, or run {resume_command(folder)}"
        )
    try:
        content = (folder / WEIGHTS).read_bytes()
        tensors = load(content)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder / WEIGHTS} cannot be read ({error}): it is damaged, bring it back") from error
    return {name.removeprefix("net."): each for name, each in tensors.items()}, hashlib.sha256(content).hexdigest(), 0


def load_weights(net: Network, tensors: Mapping[str, Tensor], config: RunConfig) -> None:
    """Load weights and norm statistics: all rows, or those of the last step where the configuration has no others."""
    net.load_state_dict(tensors)
    for module in net.modules():
        if isinstance(module, TimeBatchNorm) and not config.has_step_statistics:
            module.keep_final_statistics()


def code_refused(folder: Path, config: RunConfig) -> InputError:
    """The error for a folder that may be a stranger's and names code."""
    return InputError(
        f"{folder} names the function {config.arch}, and code is imported for your own training runs only: give the "
        "run that it was trained in to cascaded.load_run"
    )


def build(config: RunConfig, classes: int, shape: torch.Size, training: bool = False) -> Network:
    """The network of a run, with its initial weights, for images of a shape.

    Args:
        config: The configuration of the run.
        classes: Number of classes.
        shape: Channels, height and width of an image.
        training: The mode in which a model is converted; it is converted again if the other is needed.
    """
    if config.is_converted:
        model = plain_model(config, classes, shape).train(training)
        try:
            return Classifier(model, tuple(shape), classes, config.joins)
        except InputError as error:
            raise InputError(f"{config.arch} cannot be converted: {error}") from error
    assert config.width is not None
    return make_network(
        config.arch,
        num_classes=classes,
        width=config.width,
        pool=config.pool,
        stem="small" if shape[-1] < LARGE else "large",
        in_channels=shape[0],
        heads=config.get_method().heads,
        generator=generator_at(config.seed, "weights"),
    )


def plain_model(config: RunConfig, classes: int, shape: torch.Size) -> nn.Module:
    """The model of a run that is converted, with its initial weights. Its own code draws from the global generator."""
    with drawing_at(config.seed, "weights"):
        return make_model(config.arch, classes, tuple(shape), config.width)


def check_parameters(config: RunConfig, classes: int, shape: torch.Size, found: Mapping[str, Sequence[int]]) -> None:
    """Check that weights fit a configuration before memory is allocated: a file may ask for a network of any size.

    Args:
        config: The configuration in the file.
        classes: The number of classes in the file.
        shape: Of an image.
        found: Names and shapes of the weights in the file.
    """
    try:
        with torch.device("meta"):
            wanted = dict(_shell(config, classes, shape).named_parameters())  # buffers grow with the steps seen
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = first_line(error)
        raise InputError(f"no such network can be built, {reason}") from error
    for name, tensor in wanted.items():
        if name not in found or tuple(found[name]) != tuple(tensor.shape):
            has = f"shape {tuple(found[name])}" if name in found else "none"
            raise InputError(f"{name} has {has}, the network needs {tuple(tensor.shape)}")


def _shell(config: RunConfig, classes: int, shape: torch.Size) -> nn.Module:
    """A module with the parameters of a network. Nothing is computed, as a conversion would."""
    if config.is_converted:
        return nn.ModuleDict({"model": plain_model(config, classes, shape)})
    return build(config, classes, shape)


def check_range(images: Tensor, if_normalized: str) -> None:
    """Refuse floats outside 0..1, which may be normalized already.

    Args:
        images: Bytes, or floats.
        if_normalized: What to do with images that are normalized already, for the error.
    """
    if not images.is_floating_point() or images.is_meta or not images.numel() or torch.compiler.is_compiling():
        return  # tensors that are compiled or exported have no values
    low, high = images.detach().aminmax()
    check_span(float(low), float(high), "torch.uint8", if_normalized)
