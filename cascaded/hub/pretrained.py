"""A trained network with its input normalization and class names, in the format of the Hugging Face hub."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard, PyTorchModelHubMixin
from jaxtyping import Float, Shaped
from safetensors.torch import save_model
from torch import Tensor, nn

from cascaded.cascade.inputs import Schedule
from cascaded.cascade.kernels import Kernel
from cascaded.data.augment import normalize
from cascaded.errors import InputError
from cascaded.files import write_json, write_whole
from cascaded.hub.card import TAGS, model_card
from cascaded.hub.locate import download, locate, path_of
from cascaded.hub.similarity import check_outputs, check_weights
from cascaded.models.networks import Network
from cascaded.training.config import RunConfig
from cascaded.training.inputs import Inputs, describe_shape, shape_fix
from cascaded.training.load import build, check_range, code_refused, load_run, load_weights
from cascaded.training.run_file import CONFIG, WEIGHTS, RunFile
from cascaded.training.runs import last_metrics, read_run_file


def load(name_or_path: str | Path, device: torch.device | str = "cpu") -> Pretrained:
    """Load a trained network, in evaluation mode.

    Args:
        name_or_path: The name of a shipped network (`cascaded models` lists them), such as "cifar10-td0"; a folder
            that `save_pretrained` wrote; a run folder, such as "runs/td0/0", or a folder with one run in it,
            "runs/td0"; or OWNER/NAME on the Hugging Face hub.
        device: The device of the network.
    """
    return Pretrained.of_run(locate(name_or_path)).to(device)


class Pretrained(
    nn.Module, PyTorchModelHubMixin, library_name="cascaded", pipeline_tag="image-classification", tags=TAGS
):
    """A trained network, its configuration, its input normalization and its class names.

    `cascaded.load` loads one by name or folder. `save_pretrained`, `from_pretrained` and `push_to_hub` are those of
    `huggingface_hub.PyTorchModelHubMixin`; weights are read from safetensors only, never from a pickle.

    Args:
        config: The configuration of its training run.
        inputs: Input shape, normalization and class names.
        accuracy: Test accuracy per step, if known.
        images: Digest of the training images, if known.
        made_with: Versions of the software that trained it.

    Attributes:
        net: The network itself. A new `Pretrained` has the initial weights of its configuration.
        config: The configuration of its training run.
        inputs: Input shape, normalization and class names.
        accuracy: Test accuracy per step; empty if not known. Set it again after further training.
    """

    net: Network

    def __init__(
        self,
        config: RunConfig,
        inputs: Inputs,
        accuracy: Sequence[float] = (),
        images: str | None = None,
        made_with: Mapping[str, str] | None = None,
    ):
        super().__init__()
        if config.is_code:
            raise InputError(
                f"arch is {config.arch}, and a saved network never imports code: share your code, and the weights of "
                "load_run(folder).net.serial()"
            )
        self.config, self.inputs, self.accuracy = config, inputs, tuple(map(float, accuracy))
        self.images, self.made_with = images, dict(made_with or {})
        self.net = build(config, len(inputs.classes), torch.Size(inputs.shape))
        self.eval()

    @classmethod
    def of_run(cls, folder: Path | str) -> Pretrained:
        """The network of a training run (its newest checkpoint) or of a saved folder.

        Args:
            folder: A run folder, such as `runs/td0/0`, or a folder that `save_pretrained` wrote.
        """
        file = read_run_file(Path(folder))
        if file.config.is_code:  # before anything is imported
            raise code_refused(Path(folder), file.config)
        run = load_run(folder)
        last = last_metrics(Path(folder)) or {}
        measured = last.get("test") if last.get("step") == run.step else None
        pretrained = cls(file.config, file.inputs, measured or file.accuracy, file.images, file.made_with)
        pretrained.net.load_state_dict(run.net.state_dict())
        return pretrained

    @classmethod
    def of(cls, net: Network, config: RunConfig, inputs: Inputs, accuracy: Sequence[float] = ()) -> Pretrained:
        """A copy of a network that was trained in the user's own loop, to be saved and shared.

        Args:
            net: One of the built-in networks, such as `resnet18(...)`.
            config: How it was trained; its method, arch and width must be those of `net`.
            inputs: Input shape, normalization and class names.
            accuracy: Test accuracy per step, if known.
        """
        pretrained = cls(config, inputs, accuracy)
        heads, shape = pretrained.net.heads, describe_shape(inputs.shape)
        expected = f"{config.network}, {heads} heads, {len(inputs.classes)} classes and {shape}"
        check_weights(net, pretrained.net, expected)
        load_weights(pretrained.net, net.state_dict(), config)
        check_outputs(net, pretrained.net, inputs.shape, pretrained.schedule)
        return pretrained

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the logits."""
        return self.inputs.classes

    @property
    def schedule(self) -> Schedule:
        """The schedule it was trained with: `cascaded` or `serial`."""
        return self.config.get_method().schedule

    @property
    def steps(self) -> int:
        """Number of steps until the output is constant, under its own schedule."""
        return len(self.net.cycles(self.schedule))

    @property
    def num_parameters(self) -> int:
        """Number of trained parameters."""
        return sum(each.numel() for each in self.parameters())

    def forward(
        self,
        images: Shaped[Tensor, "*time batch channels height width"],
        *,
        normalized: bool = False,
        kernel: Kernel | None = None,
        steps: int | None = None,
    ) -> Float[Tensor, "time batch classes"]:
        """Logits at every step, under its own schedule.

        Args:
            images: Bytes, or floats from 0 to 1, which are normalized here. Other floats are refused.
            normalized: The images are floats that are already normalized with `inputs.mean` and `inputs.std`.
            kernel: The delay kernel; one-step delay by default.
            steps: Number of steps; until the output is constant by default.
        """
        return self.net(self.prepare(images, normalized), kernel=kernel, steps=steps, schedule=self.schedule)

    def prepare(
        self, images: Shaped[Tensor, "*time batch channels height width"], normalized: bool = False
    ) -> Float[Tensor, "*time batch channels height width"]:
        """Images as the input of `net`: checked and normalized. Arguments as in `forward`."""
        if not isinstance(images, Tensor):
            raise InputError(f"images are a {type(images).__name__}: give a tensor, as of torch.as_tensor(images)")
        if images.dim() not in (4, 5) or images.shape[-3:] != self.inputs.shape:
            raise InputError(
                f"images have shape {tuple(images.shape)}, this network takes a batch of "
                f"{describe_shape(self.inputs.shape)}: {shape_fix(tuple(images.shape), self.inputs.shape)}"
            )
        if normalized:
            if not images.is_floating_point():
                raise InputError(f"images are {images.dtype}, which are not normalized: leave normalized=True out")
            return images.float()
        check_range(images, "pass normalized=True")
        flat = normalize(images.reshape(-1, *self.inputs.shape), self.inputs.mean, self.inputs.std)
        return flat.reshape(images.shape)

    @property
    def run_file(self) -> RunFile:
        """The content of `config.json`."""
        return RunFile(self.config, self.inputs, self.images, self.made_with, tuple(map(float, self.accuracy)))

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        config: Any = None,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        model_card_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> str | None:
        """Write model.safetensors, config.json and README.md, the model card, to a folder. An existing card is kept.

        Args:
            save_directory: The folder; it is created if it does not exist.
            config: Not used; `config.json` is always that of this network.
            repo_id: The name on the hub, OWNER/NAME.
            push_to_hub: Also upload it to the hub.
            model_card_kwargs: `name`, `license` and `notes` for the model card.
            options: Options of `push_to_hub`.
        """
        if options and not push_to_hub:
            raise TypeError(f"save_pretrained has no {', '.join(options)}: these are options of push_to_hub=True")
        folder = Path(os.path.expanduser(save_directory))
        name = repo_id or (folder.name if push_to_hub else path_of(Path(folder.name)))
        card = {"name": name, **(model_card_kwargs or {})}
        try:
            super().save_pretrained(folder, model_card_kwargs=card)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be written ({error.strerror or error}): free some space, or choose another folder"
            ) from error
        return self.push_to_hub(name, model_card_kwargs=card, **options) if push_to_hub else None

    def _save_pretrained(self, save_directory: Path) -> None:
        write_whole(save_directory / WEIGHTS, lambda part: save_model(self, str(part)))
        write_json(save_directory / CONFIG, self.run_file.to_json())

    def push_to_hub(self, repo_id: str, *, model_card_kwargs: dict[str, Any] | None = None, **options: Any) -> str:
        """Upload it to the hub as OWNER/NAME; options as in `huggingface_hub.ModelHubMixin.push_to_hub`."""
        card = {"name": repo_id, **(model_card_kwargs or {})}
        return super().push_to_hub(repo_id, model_card_kwargs=card, **options)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Pretrained:
        """Load a network that `save_pretrained` or `push_to_hub` wrote, or a training run.

        Args:
            pretrained_model_name_or_path: A folder, or OWNER/NAME on the hub.
            options: `revision`, `token`, `cache_dir`, `force_download`, `local_files_only` of `huggingface_hub`.
        """
        folder = Path(os.path.expanduser(pretrained_model_name_or_path))
        return cls.of_run(folder if folder.is_dir() else download(str(pretrained_model_name_or_path), **options))

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """The model card; see `cascaded.hub.card`."""
        return model_card(self.run_file, self.num_parameters, **kwargs)
