"""Random numbers are drawn once for all steps.

With a new dropout mask at every step, the output for a still input would never become constant. `dropout(x)` therefore
becomes `x * mask`, and the mask is a node without inputs: it is computed once per call, in the order in which the model
draws, so that the final step equals the model's output for the same seed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional as F

from cascaded.cascade.convert.graph import op_name, place, value
from cascaded.errors import InputError

aten = torch.ops.aten
DROPOUTS = {"dropout", "feature_dropout"}
SHAPE_ONLY = {"new_empty", "new_zeros", "new_ones", "new_full", "empty_like", "zeros_like", "ones_like", "full_like"}
SHAPE_ONLY |= {"rand_like", "randn_like"}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}


def draw_once(graph: fx.Graph) -> None:
    """Separate what is drawn from what is computed."""
    for node in list(graph.nodes):
        name = op_name(node)
        if name in DROPOUTS:
            _mask_dropout(node)
        elif name == "scaled_dot_product_attention":
            _mask_attention(node)
        elif name in SHAPE_ONLY and isinstance(node.args[0], fx.Node) and node.args[0].op != "placeholder":
            node.replace_input_with(node.args[0], _shaped(node, blank, (), value(node.args[0])))


def check_drawn_once(nodes: list[fx.Node]) -> None:
    """Refuse operations that would draw again at every step: `nodes` are those that are computed at every step."""
    for node in nodes:
        if is_drawn(node):
            raise InputError(
                f"{place(node)} draws new random numbers at every step, so that the output would never become final: "
                "use nn.Dropout instead, or convert the model in evaluation mode"
            )


def is_drawn(node: fx.Node) -> bool:
    """Whether an operation draws random numbers."""
    name = op_name(node)
    if name in RECURRENT:  # dropout between layers
        return bool(node.args[5]) and bool(node.args[6])
    tagged = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    # attention is tagged for its dropout, which has become a mask
    return name == "draw_mask" or (tagged and "attention" not in name)


def blank(ones: Tensor) -> Tensor:
    """A tensor of which only the shape is used."""
    return ones


def draw_mask(ones: Tensor, dropout: Any, probability: float) -> Tensor:
    """What a dropout layer multiplies its input by."""
    return dropout(ones, probability, True)


def _shaped(node: fx.Node, target: Any, arguments: tuple[Any, ...], like: Tensor) -> fx.Node:
    """A node before another one that takes nothing but the shape of a tensor."""
    with node.graph.inserting_before(node):
        made = node.graph.call_function(target, arguments)
    made.meta.update(node.meta, val=like)
    return made


def _mask_dropout(node: fx.Node) -> None:
    """`dropout(x)` as `x * mask`, or as x where nothing is dropped."""
    x, probability, training = node.args
    if training and probability:
        mask = _shaped(node, draw_mask, (node.target, probability), value(x))  # pyright: ignore[reportArgumentType]
        node.target, node.args = aten.mul.Tensor, (x, mask)
    else:
        node.replace_all_uses_with(x)  # pyright: ignore[reportArgumentType]
        node.graph.erase_node(node)


def _mask_attention(node: fx.Node) -> None:
    """Attention with dropout as `attend`, which takes the mask of its weights."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    options = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    probability = options.pop("dropout_p", 0.0)
    if not probability:
        return
    query, key = value(options["query"]), value(options["key"])  # pyright: ignore[reportArgumentType]
    weights = query.new_empty(*query.shape[:-1], key.shape[-2])
    mask = _shaped(node, draw_mask, (aten.dropout.default, probability), weights)
    node.target, node.args, node.kwargs = attend, (), {**options, "mask": mask}


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(q k' / sqrt(d)) * mask` times v: attention with a given dropout mask."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], dim=-3) for x in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return (F.softmax(scores, dim=-1) * mask) @ value
