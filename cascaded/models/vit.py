"""A vision transformer (Dosovitskiy et al. 2021), pre-norm, whose logits are read from the mean over all tokens.

    z = z + attention(norm(z))        z = z + mlp(norm(z))        logits = head(mean over tokens of norm(z))

A class token would receive the image through attention alone, which `cascaded.convert` delays: its first prediction
would be the same for every image. The mean over tokens contains the image at the first step.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from cascaded.errors import InputError, at_least

Tokens = Float[Tensor, "batch tokens width"]


class ViT(nn.Module):
    """A vision transformer for square images.

    Args:
        num_classes: Number of classes.
        image_size: Height and width of an image, in pixels.
        patch: Height and width of a patch, in pixels; each patch is a token.
        depth: Number of layers, each with an attention and an MLP.
        width: Features of a token.
        heads: Attention heads per layer.
        in_channels: Channels of an image.
        dropout: Dropout probability at the end of every attention and MLP.
    """

    def __init__(
        self,
        num_classes: int = 10,
        image_size: int = 32,
        patch: int = 8,
        depth: int = 12,
        width: int = 64,
        heads: int = 4,
        in_channels: int = 3,
        dropout: float = 0.0,
    ):
        super().__init__()
        at_least(1, image_size=image_size, patch=patch, depth=depth)
        if image_size % patch:
            raise InputError(f"image_size is {image_size}, patch is {patch}: give a patch that divides the image size")
        self.patches = nn.Conv2d(in_channels, width, patch, stride=patch)
        self.position = nn.Parameter(0.02 * torch.randn((image_size // patch) ** 2, width))
        self.layers = nn.Sequential(*(Layer(width, heads, dropout) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        """Logits of a batch of images."""
        z = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.layers(z)).mean(dim=1))


class Layer(nn.Module):
    """A pre-norm transformer layer: `z + attention(norm(z))`, then `z + mlp(norm(z))`.

    Args:
        width: Features of a token.
        heads: Attention heads; they divide the width.
        dropout: Dropout probability at the end of both branches.
        causal: Whether a token attends to itself and earlier tokens only.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0, causal: bool = False):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, z: Tokens) -> Tokens:
        """The tokens after attention and MLP."""
        z = z + self.dropout(self.attention(self.attention_norm(z)))
        return z + self.dropout(self.mlp(self.mlp_norm(z)))


class Attention(nn.Module):
    """Multi-head self-attention; arguments as for `Layer`."""

    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        at_least(1, width=width, heads=heads)
        if width % heads:
            raise InputError(f"width is {width}, heads is {heads}: give a number of heads that divides the width")
        self.heads, self.causal = heads, causal
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, z: Tokens) -> Tokens:
        """The tokens mixed with each other."""
        queries, keys, values = self.inputs(z).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=self.causal)
        return self.output(mixed.transpose(1, 2).flatten(2))
