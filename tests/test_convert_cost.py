"""Operations of a converted model, by hand: attention too, however it is written."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import cascaded
from cascaded.cascade.convert.cost import count, operations_per_step

ITEMS, TOKENS, WIDTH = 3, 5, 8


class Fused(nn.Module):
    """Self-attention beside a skip connection, by torch's fused operation."""

    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)

    def branch(self, x):
        queries, keys, values = self.inputs(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(2)

    def forward(self, x):
        return x + self.branch(x)


class Written(Fused):
    """The same with a token that is overwritten in place, for which the graph is decomposed."""

    def branch(self, x):
        mixed = super().branch(x).clone()
        mixed[:, :1] = 0
        return mixed


class Module(nn.Module):
    """The same by `nn.MultiheadAttention`, whose fast path is one operation; it has an output layer."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x):
        return x + self.attention(x, x, x, need_weights=False)[0]


LINEAR = 2 * ITEMS * TOKENS * WIDTH * WIDTH
ATTENTION = 2 * 2 * ITEMS * TOKENS * TOKENS * WIDTH  # of queries with keys, and of weights with values


@pytest.mark.parametrize(("model", "linear"), [(Fused, 3), (Written, 3), (Module, 4)])
def test_operations_of_attention_by_hand(model, linear):
    torch.manual_seed(0)
    x = torch.randn(ITEMS, TOKENS, WIDTH)
    net = cascaded.convert(model().eval(), x)
    expected = linear * LINEAR + ATTENTION
    assert net.settle_steps == 2
    assert count(lambda: net(x, kernel=cascaded.NoDelay(), steps=1)) == expected
    assert operations_per_step(net, x) == [0, expected]
    assert operations_per_step(net, x, schedule="serial") == [0, expected]
