"""`cascaded convert`: what a model of your own becomes when it is converted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import DisallowNone, Positional

from cascaded.errors import InputError
from cascaded.progress import print_line, table, wide_console
from cascaded.shell import help_default

if TYPE_CHECKING:
    from torch import Tensor

    from cascaded.cascade.convert.network import ConvertedModel

SHAPE = re.compile(r"(?P<sizes>\d+(x\d+)*)(:int(?P<below>\d+)?)?")


def convert(
    model: Positional[str],
    *,
    input: tuple[str, ...],
    joins: str = "auto",
    exclude: Annotated[tuple[str, ...], help_default("none")] = (),
    start: Literal["empty", "rest"] = "empty",
    output: Annotated[str | None, DisallowNone, help_default("logits, or the only one")] = None,
) -> None:
    r"""Convert a model of your own, and print its skip connections and the cost of every step.

    The model is made by calling a function without arguments, from a module that Python finds in this folder or in the
    environment. Nothing is trained or written.

    Example: cascaded convert mynets.vision:small_vit --input 1x3x32x32

    Example: cascaded convert mynets.text:tiny_gpt --input 1x16:int100 --joins 'layers\.\d+'

    Args:
        model: package.module:function, where the function returns a torch module.
        input: Shape of every input, the batch first; `:int100` for whole numbers below 100.
        joins: auto, or a regular expression of module names, to delay these modules as whole layers.
        exclude: Names of skip connections that are not delayed.
        start: What delay lines contain at first: nothing, or what branches compute for a zero input.
        output: Field of the model's output that is predicted.
    """
    from cascaded.cascade.convert.convert import convert as convert_model
    from cascaded.cascade.convert.named import load_model

    if not input:
        raise InputError("--input is empty: give the shape of every input, such as 1x3x32x32")
    example = [make_input(each) for each in input]
    net = convert_model(load_model(model).eval(), example, joins=joins, exclude=exclude, start=start, output=output)
    console = wide_console()
    print_line(console, net.table())
    rows = _rows(net, example)
    console.print(table(rows, "operations per item", set(rows[0]) - {"step"}))


def make_input(shape: str) -> Tensor:
    """Random values of a shape such as 1x3x32x32 or 1x16:int100."""
    import torch

    found = SHAPE.fullmatch(shape)
    if found is None:
        raise InputError(f"--input is {shape!r}: give a shape such as 1x3x32x32, or 1x16:int100 for whole numbers")
    sizes = [int(size) for size in found["sizes"].split("x")]
    if ":int" in shape:
        return torch.randint(int(found["below"] or 2), sizes)
    return torch.randn(sizes)


def _rows(net: ConvertedModel, example: list[Tensor]) -> list[dict[str, str]]:
    from cascaded.cascade.convert.cost import count, operations_per_step
    from cascaded.cascade.kernels import NoDelay

    inputs = tuple(example) if len(example) > 1 else example[0]
    cascaded, serial = (operations_per_step(net, inputs, schedule=each) for each in ("cascaded", "serial"))
    batch = len(example[0])
    whole = count(
        lambda: net(*example, kernel=NoDelay(), steps=1)
    )  # the model may run fused layers, which are not counted
    columns = [[*each, sum(each)] for each in (cascaded, serial)]
    steps = [*map(str, range(1, len(cascaded) + 1)), "all"]
    return [
        {"step": step, "cascaded": _cell(a, whole, batch), "serial": _cell(b, whole, batch)}
        for step, a, b in zip(steps, *columns, strict=True)
    ]


def _cell(operations: int, whole: int, batch: int) -> str:
    """Operations per item, and relative to one pass through the model."""
    return f"{operations // batch:,} ({operations / max(whole, 1):.2f} x)"
