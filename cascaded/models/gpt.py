"""A language model of characters (Radford et al. 2019): causal attention, pre-norm.

logits[i] predict character i + 1 from characters 0..i
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cascaded.errors import InputError, at_least
from cascaded.models.vit import Layer


class GPT(nn.Module):
    """A transformer that predicts the next character at every position.

    Args:
        num_classes: Number of different characters.
        context: The longest text that it reads, in characters.
        depth: Number of layers, each with an attention and an MLP.
        width: Features of a token.
        heads: Attention heads per layer.
        dropout: Dropout probability at the end of every attention and MLP.
    """

    def __init__(
        self,
        num_classes: int = 96,
        context: int = 64,
        depth: int = 6,
        width: int = 96,
        heads: int = 4,
        dropout: float = 0.0,
    ):
        super().__init__()
        at_least(1, num_classes=num_classes, context=context, depth=depth)
        self.characters = nn.Embedding(num_classes, width)
        self.position = nn.Parameter(0.02 * torch.randn(context, width))
        self.layers = nn.Sequential(*(Layer(width, heads, dropout, causal=True) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes, bias=False)
        nn.init.normal_(self.characters.weight, std=0.02)

    def forward(self, characters: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens classes"]:
        """Logits of the character that follows each position."""
        tokens, context = characters.shape[1], len(self.position)
        if tokens > context:
            raise InputError(f"the text has {tokens} characters, the model's context is {context}: give a shorter text")
        z = self.characters(characters) + self.position[:tokens]
        return self.head(self.norm(self.layers(z)))
