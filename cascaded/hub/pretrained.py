"""A trained network that knows what it takes and what its answers mean, in the form that the hub shares."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard, PyTorchModelHubMixin
from jaxtyping import Float, Shaped
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_model
from torch import Tensor, nn

from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel
from cascaded.cascade.network import Cascade
from cascaded.data.augment import normalise
from cascaded.errors import InputError
from cascaded.files import write_json, write_whole
from cascaded.hub.config import check_folder, parse_config
from cascaded.hub.download import OPTIONS, fetched
from cascaded.hub.shipped import called
from cascaded.hub.similarity import check_answers, check_weights
from cascaded.progress import readable
from cascaded.training.config import RunConfig
from cascaded.training.load import check_range, describe_shape, load_run
from cascaded.training.loop import build, check_parameters
from cascaded.training.run_file import CONFIG, FORMAT, WEIGHTS, Inputs, RunFile
from cascaded.training.runs import last_metrics, read_run_file

FIELDS = ("format", *(field.name for field in fields(RunFile)))


class Pretrained(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="cascaded",
    pipeline_tag="image-classification",
    tags=["anytime-prediction", "cascaded-networks", "early-exit", "temporal-difference"],
):
    """A trained network, ready to answer: it takes images as they are and tells what its classes are called.

    `cascaded.load` finds one by name; `save_pretrained`, `from_pretrained` and `push_to_hub` are those of
    `huggingface_hub.PyTorchModelHubMixin`, but nothing is ever unpickled.

    Args:
        config: The configuration of its run, as a dictionary.
        inputs: What it takes: shape, mean, std and classes.
        images: A digest of its training images, where it is known.
        made_with: Versions of what it was made with.
        accuracy: Test accuracy at every step, where it is known.
        format: Of config.json.

    Attributes:
        config: The configuration of its run.
        inputs: What it takes and what its answers mean.
        accuracy: Test accuracy at every step; empty where it is not known. Whoever trains it further sets it anew.
        net: The network itself, in evaluation mode at first.
    """

    net: Cascade

    def __init__(
        self,
        config: Mapping[str, Any],
        inputs: Mapping[str, Any],
        images: str | None = None,
        made_with: Mapping[str, str] | None = None,
        accuracy: Sequence[float] = (),
        format: int = FORMAT,
    ):
        super().__init__()
        content = {"format": format, "config": config, "inputs": inputs, "images": images}
        file = parse_config({**content, "made_with": made_with or {}, "accuracy": accuracy})
        self.config: RunConfig = file.config
        self.inputs: Inputs = file.inputs
        self.accuracy: tuple[float, ...] = file.accuracy
        self.images, self.made_with = file.images, file.made_with
        self.net = build(self.config, len(self.classes), torch.Size(self.inputs.shape))
        self.eval()

    @classmethod
    def of_run(cls, folder: Path | str) -> Pretrained:
        """The network of a run as its newest checkpoint has it, with the accuracy that was measured at its end.

        Args:
            folder: A run, finished or not: `runs/td0/0`.
        """
        run = load_run(folder)
        last = last_metrics(Path(folder)) or {}
        known = last.get("test") if last.get("step") == run.step else None
        about = read_run_file(run.folder)
        found = cls(asdict(run.config), asdict(run.inputs), about.images, about.made_with, known or about.accuracy)
        found.net.load_state_dict(run.net.state_dict())
        return found

    @classmethod
    def of(cls, net: Cascade, config: RunConfig, inputs: Inputs, accuracy: Sequence[float] = ()) -> Pretrained:
        """A copy of a network that was trained in a loop of one's own, to be saved and shared.

        Args:
            net: One of the built-in networks: `resnet18(...)`.
            config: What it was trained on and how; method, arch and width must be those of `net`.
            inputs: What it takes and what its answers mean.
            accuracy: Test accuracy at every step, where it is known.
        """
        found = cls(asdict(config), asdict(inputs), accuracy=tuple(map(float, accuracy)))
        heads, classes, shape = found.net.heads, len(found.classes), describe_shape(found.inputs.shape)
        what = f"a {config.arch} of width {config.width} with {heads} heads, {classes} classes and {shape}"
        check_weights(net, found.net, what)
        found.net.load_state_dict(net.state_dict())
        check_answers(net, found.net, found.inputs.shape, found.schedule)
        return found

    # --- what it says

    @property
    def classes(self) -> tuple[str, ...]:
        """What its classes are called, in the order of the logits."""
        return self.inputs.classes

    @property
    def schedule(self) -> Schedule:
        """How it was trained to be run: `cascaded` or `serial`."""
        return self.config.get_method().schedule

    @property
    def steps(self) -> int:
        """Read-outs until it has settled, under its own schedule."""
        return len(self.net.cycles(self.schedule))

    def forward(
        self,
        images: Shaped[Tensor, "*time batch channels height width"],
        *,
        normalised: bool = False,
        kernel: Kernel | None = None,
        steps: int | None = None,
    ) -> Float[Tensor, "time batch classes"]:
        """Class scores at every step, under its own schedule.

        Args:
            images: Bytes, or floats in 0..1; they are normalised here. Other floats are refused.
            normalised: The images are floats that have been normalised already, with `inputs.mean` and `inputs.std`.
            kernel: How results are delayed; one step by default.
            steps: How many read-outs; until it has settled by default.
        """
        return self.net(self.prepare(images, normalised), kernel=kernel, steps=steps, schedule=self.schedule)

    def prepare(
        self, images: Shaped[Tensor, "*time batch channels height width"], normalised: bool = False
    ) -> Float[Tensor, "*time batch channels height width"]:
        """Images as the network itself takes them: normalised here, or already, as in `forward`."""
        if not isinstance(images, Tensor):
            raise InputError(f"images are a {type(images).__name__}: give a tensor, as of torch.as_tensor(images)")
        if images.dim() not in (4, 5) or images.shape[-3:] != self.inputs.shape:
            raise InputError(
                f"images have shape {tuple(images.shape)}, this network takes a batch of "
                f"{describe_shape(self.inputs.shape)}: bring them to that form"
            )
        if normalised:
            if not images.is_floating_point():
                raise InputError(f"images are {images.dtype}, which are not normalised: leave normalised=True out")
            return images.float()
        check_range(images, "pass normalised=True")
        flat = normalise(images.reshape(-1, *self.inputs.shape), self.inputs.mean, self.inputs.std)
        return flat.reshape(images.shape)

    def normalised(
        self, images: Shaped[Tensor, "*time batch channels height width"]
    ) -> Float[Tensor, "*time batch channels height width"]:
        """Bytes, or floats in 0..1, as the network itself takes them: still images or a film. Others are refused."""
        return self.prepare(images)

    # --- kept and found again

    @property
    def file(self) -> RunFile:
        """The content of `config.json`."""
        return RunFile(self.config, self.inputs, self.images, self.made_with, tuple(self.accuracy))

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        model_card_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> str | None:
        """Write model.safetensors, config.json and README.md, the model card, into a folder.

        A card that is there already is kept, as the hub does: it may have been edited.

        Args:
            save_directory: The folder; it is made where there is none.
            repo_id: What it is called on the hub, OWNER/NAME.
            push_to_hub: Whether to put it there as well.
            model_card_kwargs: `name` and `license` to be told by the card, and `notes` under its accuracies.
            options: Those of `push_to_hub`.
        """
        if unknown := sorted(set(options) - set(signature(super().push_to_hub).parameters)):
            raise TypeError(f"save_pretrained has no {', '.join(unknown)}: its options are those of push_to_hub")
        folder = Path(os.path.expanduser(save_directory))
        name = repo_id or (folder.name if push_to_hub else called(Path(folder.name)))
        told = {"name": name, **(model_card_kwargs or {})}
        try:
            super().save_pretrained(folder, model_card_kwargs=told)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be written ({error.strerror or error}): make room, or choose another folder"
            ) from error
        return self.push_to_hub(name, model_card_kwargs=told, **options) if push_to_hub else None

    def _save_pretrained(self, save_directory: Path) -> None:
        write_whole(save_directory / WEIGHTS, lambda part: save_model(self, str(part)))
        write_json(save_directory / CONFIG, self.file.to_json())

    def push_to_hub(self, repo_id: str, *, model_card_kwargs: dict[str, Any] | None = None, **options: Any) -> str:
        """Save it to the hub as OWNER/NAME; options as for `huggingface_hub.ModelHubMixin.push_to_hub`."""
        told = {"name": repo_id, **(model_card_kwargs or {})}
        return super().push_to_hub(repo_id, model_card_kwargs=told, **options)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Pretrained:
        """A network that `save_pretrained` or `push_to_hub` wrote.

        Args:
            pretrained_model_name_or_path: A folder, or OWNER/NAME on the hub.
            options: `revision`, `token`, `cache_dir`, `force_download`, `local_files_only` of `huggingface_hub`.
        """
        name = str(pretrained_model_name_or_path)
        there = {each: options.pop(each) for each in OPTIONS if each in options}
        here = Path(os.path.expanduser(name))
        folder = here if here.is_dir() else fetched(name, **there)
        check_folder(folder, name)
        return super().from_pretrained(str(folder), **options)

    @classmethod
    def _from_pretrained(
        cls, *, model_id: str, map_location: str = "cpu", strict: bool = True, **options: Any
    ) -> Pretrained:
        """The library's own way would look for a pickle where there are no safetensors."""
        told = {each: options[each] for each in FIELDS if each in options}
        file = Path(model_id) / WEIGHTS
        try:
            if strict:
                _check_parameters(file, parse_config(told))
            return cls._load_as_safetensor(cls(**told), str(file), map_location, strict)
        except (SafetensorError, RuntimeError, OSError, InputError) as error:
            reason = readable(str(error).splitlines()[-1].strip())
            raise InputError(
                f"{file} does not hold the weights that its {CONFIG} asks for ({reason}): bring its own back, or save "
                "the network again"
            ) from error

    def generate_model_card(self, *args: Any, **told: Any) -> ModelCard:
        """What `README.md` says of it: see `cascaded.hub.card`."""
        from cascaded.hub.card import model_card

        return model_card(self, **told)


def _check_parameters(file: Path, about: RunFile) -> None:
    """That a file holds the weights of a network, from its header alone."""
    with safe_open(file, "pt") as opened:
        names = [name for name in opened.keys() if name.startswith("net.")]  # noqa: SIM118
        found = {name.removeprefix("net."): opened.get_slice(name).get_shape() for name in names}
    check_parameters(about.config, len(about.inputs.classes), torch.Size(about.inputs.shape), found)
