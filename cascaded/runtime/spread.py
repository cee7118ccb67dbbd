"""Delay kernels, less their lag, as ONNX nodes."""

from __future__ import annotations

from cascaded.cascade.kernels import ExponentialSmoothing, Kernel, TappedDelay
from cascaded.errors import InputError
from cascaded.runtime.graph import Graph


def check_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that has no counterpart."""
    if not isinstance(kernel, TappedDelay | ExponentialSmoothing):
        raise InputError(
            f"the kernel is a {type(kernel).__name__}, which cannot be exported: use TappedDelay or "
            "ExponentialSmoothing"
        )


def write_spread(graph: Graph, kernel: Kernel, x: str, trail: str | None) -> tuple[str, str | None]:
    """What arrives at this step, and the trail for the next one; None if the kernel has none.

    Args:
        graph: The graph.
        kernel: The delay kernel.
        x: What is sent at this step.
        trail: The trail of the step before, oldest first; None at the first step.
    """
    if isinstance(kernel, ExponentialSmoothing):
        s = graph.node("Mul", x, graph.number(1 - kernel.alpha))
        if trail is not None:
            s = graph.node("Add", s, graph.node("Mul", _tap(graph, trail, 0), graph.number(kernel.alpha)))
        return s, graph.node("Unsqueeze", s, graph.integers(0))
    assert isinstance(kernel, TappedDelay)
    if kernel.only_lags:
        return x, None
    out = graph.node("Mul", x, graph.number(kernel.taps[0]))
    for k, weight in enumerate(kernel.taps[1:] if trail is not None else (), start=1):
        if weight and trail is not None:
            old = graph.node("Mul", _tap(graph, trail, kernel.memory - k), graph.number(weight))
            out = graph.node("Add", out, old)
    return out, _shifted(graph, x, trail, kernel.memory) if kernel.memory else None


def _tap(graph: Graph, trail: str, position: int) -> str:
    """One frame of a trail, oldest first."""
    return graph.node("Gather", trail, graph.integer(position), axis=0)


def _shifted(graph: Graph, x: str, trail: str | None, memory: int) -> str:
    """A trail without its oldest frame and with a new one; at the first step there are zeros before it."""
    newest = graph.node("Unsqueeze", x, graph.integers(0))
    if memory == 1:
        return newest
    if trail is None:
        kept = [graph.node("ConstantOfShape", graph.node("Shape", newest))] * (memory - 1)
    else:
        kept = [graph.node("Slice", trail, *map(graph.integers, (1, memory, 0)))]
    return graph.node("Concat", *kept, newest, axis=0)
