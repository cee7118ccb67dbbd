"""A plain image classifier, converted, with what training and recording need of a network."""

from __future__ import annotations

import math
from contextlib import ExitStack

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.cascade.convert.capture import Call, choose_output
from cascaded.cascade.convert.captures import Options
from cascaded.cascade.convert.choose import Choice
from cascaded.cascade.convert.cost import operations_per_step
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.inputs import Schedule, check_frames, chosen_schedule
from cascaded.cascade.kernels import Kernel, OneStepDelay
from cascaded.cascade.readout import Heads
from cascaded.errors import InputError, first_line


class Classifier(ConvertedModel):
    """A converted image classifier. Attributes and methods are those of `ConvertedModel` and of `Cascade`.

    Args:
        model: Any model from images to logits that `cascaded.convert` converts.
        shape: Channels, height and width of an image.
        num_classes: Number of classes.
        joins: Which layers are delayed, as for `convert`.
    """

    heads: Heads = "shared"

    def __init__(self, model: nn.Module, shape: tuple[int, ...], num_classes: int, joins: str = "auto"):
        example = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
        _check_untied(model)
        _check_logits(model, example, num_classes)
        options = Options(Choice(joins, ()), start="empty", output=None, run="auto")
        super().__init__(model, Call((example,), {}, 0), options, OneStepDelay())
        self.in_channels, self.num_classes = shape[0], num_classes

    # --- without time

    def final_logits(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        """Logits of the last step: the model's own.

        In training mode batch statistics of earlier steps become copies of those of the last one, which are the only
        ones that are known.
        """
        check_frames(images, self.in_channels, dims=(4,))
        logits = super().final_logits(images)
        if self.training:
            self.keep_final_statistics()
        return logits

    def final_features(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch features"], nn.Linear]:
        """The input of the linear layer that computes the final logits, and that layer."""
        calls: list[tuple[nn.Linear, Tensor, Tensor]] = []
        with ExitStack() as hooks:
            for module in self.model.modules():
                if isinstance(module, nn.Linear):
                    keep = lambda layer, inputs, output: calls.append((layer, inputs[0], output))  # noqa: E731
                    hooks.enter_context(module.register_forward_hook(keep))
            logits = choose_output(self.model(images), self.options.output)
        for layer, features, output in calls:
            if output is logits:
                return features, layer
        raise InputError(
            f"embeddings are the input of a linear output layer, which {type(self.model).__name__} does not end with: "
            "leave them out"
        )

    @torch.no_grad()
    def keep_final_statistics(self) -> None:
        """Use the batch statistics of the last step at every step."""
        for name, rows in self.statistics.named_children():
            layer = self.model.get_submodule(name.replace("/", "."))
            for row, own in ((rows.mean, layer.running_mean), (rows.var, layer.running_var)):
                row.copy_(own)  # pyright: ignore[reportArgumentType, reportCallIssue]

    # --- what it costs

    def cycles(
        self,
        schedule: Schedule | None = None,
        *,
        kernel: Kernel | None = None,
        steps: int | None = None,
        moving: bool = False,
    ) -> list[int]:
        """Delayed branches that are computed at every step; see `Cascade.cycles`."""
        kernel, finals = kernel or self.kernel, [join.settles for join in self.joins]
        if chosen_schedule(schedule, self.heads) == "serial":
            return [finals.count(t) for t in range(1, (steps or self.serial_steps) + 1)]
        wait = kernel.lag + kernel.memory
        lasts = [math.inf if moving else 1 + (wait * (final - 2) if final > 2 else 0) for final in finals]
        steps = steps or self.steps_to_settle(kernel)
        return [sum(1 + kernel.lag <= t <= last + kernel.lag for last in lasts) for t in range(1, steps + 1)]

    def operations(
        self,
        height: int,
        width: int,
        schedule: Schedule | None = None,
        *,
        kernel: Kernel | None = None,
        steps: int | None = None,
    ) -> list[int]:
        """Floating-point operations per image and step, in evaluation mode; see `Cascade.operations`."""
        image = torch.zeros(1, self.in_channels, height, width, device=next(self.parameters()).device)
        return operations_per_step(self, image, kernel=kernel, steps=steps, schedule=schedule)


def _check_untied(model: nn.Module) -> None:
    """Refuse one tensor under two names: weights are stored by name."""
    names: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        other = names.setdefault(id(parameter), name)
        if other != name:
            raise InputError(f"{other} and {name} are one parameter, and are stored under both names: use two")


@torch.no_grad()
def _check_logits(model: nn.Module, example: Tensor, num_classes: int) -> None:
    """Refuse a model that does not classify images."""
    modes = {module: module.training for module in model.modules()}
    try:
        logits = choose_output(model.eval()(example), None)
    except InputError:
        raise
    except Exception as error:  # of the user's own code
        size = " x ".join(map(str, example.shape))
        raise InputError(
            f"it fails for images of shape {size} ({type(error).__name__}: {first_line(error)})"
        ) from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    if logits.shape != (len(example), num_classes):
        raise InputError(
            f"its output for {len(example)} images has shape {tuple(logits.shape)}: return logits of shape "
            f"{(len(example), num_classes)}"
        )
