"""A U-Net (Ronneberger, Fischer and Brox 2015) for images: one prediction per pixel.

down:  z_i = convs(pool(z_{i-1}))        up:  u_i = convs(concat(z_i, enlarge(u_{i+1})))        logits = head(u_0)
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cascaded.errors import InputError, at_least

Norm = Literal["group", "batch"]


class UNet(nn.Module):
    """A U-Net in two dimensions.

    Args:
        num_classes: Number of classes of a pixel.
        in_channels: Channels of an image.
        depth: How often the maps are halved; height and width of an image are multiples of `2**depth`.
        width: Channels at the size of the image; doubled whenever the maps are halved.
        norm: `group`, with four groups, or `batch`.
    """

    def __init__(
        self, num_classes: int = 4, in_channels: int = 1, depth: int = 3, width: int = 16, norm: Norm = "group"
    ):
        super().__init__()
        at_least(1, depth=depth, width=width)
        channels = [width * 2**level for level in range(depth + 1)]
        self.stem = convolutions(in_channels, width, norm)
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), convolutions(wide // 2, wide, norm)) for wide in channels[1:]
        )
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(2 * thin, thin, 2, stride=2) for thin in channels[:-1])
        self.up = nn.ModuleList(convolutions(2 * thin, thin, norm) for thin in channels[:-1])
        self.head = nn.Conv2d(width, num_classes, 1)

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch classes height width"]:
        """Logits of every pixel, `(batch, classes, height, width)`."""
        multiple = 2 ** len(self.down)
        if images.shape[2] % multiple or images.shape[3] % multiple:
            raise InputError(
                f"images have {images.shape[2]} x {images.shape[3]} pixels, the network halves them {len(self.down)} "
                f"times: give a height and a width that are multiples of {multiple}"
            )
        maps = [self.stem(images)]
        for layer in self.down:
            maps.append(layer(maps[-1]))
        z = maps.pop()
        for enlarge, layer in zip(reversed(self.enlarge), reversed(self.up), strict=True):
            z = layer(torch.cat([maps.pop(), enlarge(z)], dim=1))
        return self.head(z)


def convolutions(inputs: int, outputs: int, norm: Norm) -> nn.Sequential:
    """Two 3x3 convolutions, each with norm and activation."""
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), _norm(norm, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _norm(kind: Norm, channels: int) -> nn.Module:
    if kind not in ("group", "batch"):
        raise InputError(f"norm is {kind!r}: give 'group' or 'batch'")
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if channels % 4:
        raise InputError(f"a layer has {channels} channels, its group norm four groups: give a width in multiples of 4")
    return nn.GroupNorm(4, channels)
