"""Gray images, blurred and with Gaussian noise: what was shown to people whose answers are in `cascaded.data.human`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import torch
from torch import Generator, Tensor

from cascaded.data.frames import SIDE, Noise
from cascaded.data.geometry import blur, gray
from cascaded.data.sampling import normal, whole
from cascaded.errors import InputError, at_least, between


@dataclass(frozen=True)
class Gray(Noise):
    """A gray image, blurred, with Gaussian noise on every pixel: pixels in 0..1, before they are normalized.

        x = .299 R + .587 G + .114 B        clip(blur(x) + sd N(0, 1), 0, 1)

    Attributes:
        sd: Standard deviation of the noise. Of several, each frame has one at random.
        sigma: Standard deviation of the Gaussian that blurs; likewise.
        side: Side of the image, in the pixels that sigma is in: 32, or 190 as on the screens of the people.
    """

    of_pixels: ClassVar[bool] = True
    sd: tuple[float, ...] = (0.0,)
    sigma: tuple[float, ...] = (0.0,)
    side: int = SIDE

    def __post_init__(self):
        at_least(1, side=self.side)
        if not (self.sd and self.sigma):
            raise InputError(f"sd is {self.sd} and sigma {self.sigma}: give at least one number for each")
        for sd, sigma in product(self.sd, self.sigma):
            between(0, 1, sd=sd)
            between(0, self.side, sigma=sigma)

    def frames(self, images: Tensor, steps: int, generator: Generator) -> Tensor:
        batch, device, side = len(images), images.device, min(images.shape[-2:])
        blurred = torch.stack([blur(gray(images), sigma * side / self.side) for sigma in self.sigma])
        which = [whole((steps, batch), 0, len(each) - 1, generator, device) for each in (self.sigma, self.sd)]
        frames = blurred[which[0], torch.arange(batch, device=device)]
        sd = images.new_tensor(self.sd)[which[1]].view(steps, batch, 1, 1, 1)
        noisy = frames + sd * normal(tuple(frames.shape), generator, device).to(frames)
        return noisy.clamp(0, 1).expand(steps, *images.shape)
