"""`convert`: any torch model with skip connections as a cascaded network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from cascaded.cascade.convert.capture import Call
from cascaded.cascade.convert.captures import How, Options, Start
from cascaded.cascade.convert.choose import Choice
from cascaded.cascade.convert.network import ConvertedModel
from cascaded.cascade.kernels import Kernel, OneStepDelay
from cascaded.errors import InputError


def convert(
    model: nn.Module,
    example: Any,
    *,
    joins: str | list[str] | tuple[str, ...] = "auto",
    exclude: str | list[str] | tuple[str, ...] = (),
    start: Start = "empty",
    output: str | int | None = None,
    kernel: Kernel | None = None,
    batch_dim: int = 0,
    run: How = "auto",
) -> ConvertedModel:
    """A cascaded network with the parameters of a model: an output at every step, the last of which is the model's.

    The branch beside every skip connection is delayed by one step. The model itself is not changed, and the final step
    is compared with its output.

    Args:
        model: Any torch module with skip connections that `torch.export` can capture.
        example: Inputs: a tensor, a tuple of arguments, or a dict of keyword arguments. Calls may have other batch
            sizes; other shapes are captured when they first occur.
        joins: `auto` for all skip connections; a regular expression of module names, to delay these modules as whole
            layers; or names from `table()`.
        exclude: Names from `table()` that are not delayed, or a regular expression of such names.
        start: What delay lines contain at first: `empty`, nothing; `rest`, what branches compute while nothing comes
            out of the layers before the first skip connection, as in our ResNets.
        output: The predicted tensor, if the model returns several: a field or an index; `logits` by default.
        kernel: Default delay kernel; one step by default.
        batch_dim: The axis of the inputs that is the batch.
        run: How several steps of a layer are computed: `fold`, in one call, with time in the batch; `loop`, one after
            another; `auto`, folded where both give the same results, which is tried.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}: give a torch.nn.Module")
    for name, given, known in (("start", start, ("empty", "rest")), ("run", run, ("auto", "fold", "loop"))):
        if given not in known:
            raise InputError(f"{name} is {given!r}: give one of {', '.join(known)}")
    args = () if isinstance(example, Mapping) else tuple(example) if isinstance(example, tuple | list) else (example,)
    kwargs = dict(example) if isinstance(example, Mapping) else {}
    choice = Choice(
        joins if isinstance(joins, str) else tuple(joins), exclude if isinstance(exclude, str) else tuple(exclude)
    )
    return ConvertedModel(
        model, Call(args, kwargs, batch_dim), Options(choice, start, output, run), kernel or OneStepDelay()
    )
