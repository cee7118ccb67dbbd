"""What a recording contains (`RecordingConfig`) and which network and images it was made from (`Provenance`)."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import DisallowNone

from cascaded.shell import help_default

NoiseProtocol = Literal["persistent", "transient", "still"]
Schedule = Literal["cascaded", "serial"]
FINE_STEPS = 70
"""Steps under exponential smoothing with alpha 0.9, as in the paper."""


def fine_steps(alpha: float, steps: int = FINE_STEPS) -> int:
    """Steps under exponential smoothing: the same number of time constants as `steps` steps are with alpha 0.9.

    steps ln 0.9 / ln alpha        33 for alpha 0.8, 144 for alpha 0.95
    """
    return round(steps * math.log(0.9) / math.log(alpha))


@dataclass(frozen=True)
class RecordingConfig:
    """Which images are presented to a network, how they are presented, and how the network is run.

    `cascaded record` parses it. The header of a trace stores it with every default filled in.

    Attributes:
        data: Data set: a name, or the path of a folder or file, as for `cascaded train`.
        split: Split of the data. For the run's own data, `validation` is the part left out of its training images.
        kernel: Delay kernel: osd (one-step delay), none, ews:0.9 (exponential smoothing) or taps:0,0.5,0.5.
        steps: Number of time steps. Under transient noise: number of clean steps before, and again after, the noise.
        schedule: cascaded or serial. The serial schedule processes each noisy frame in full.
        noise: Noise added to the images: focus, perlin, occlusion, resolution, translation, rotation or gray; options
            follow a colon, as in focus:sigma=2.
        protocol: persistent (every frame is noisy), transient (noisy frames between clean ones) or still (one noisy
            frame, presented at every step).
        trials: Number of times that every image is presented, each time with new noise.
        noise_frames: Numbers of noisy frames under transient noise; each gives a trace of its own.
        max_images: Maximum number of images, the same number per class.
        seed: Seed of the noise.
        embeddings: Also store the input of the output layer at the last step (needed for centrality).
        activations: Also store the activations of every block for this many images, for the explorer of the report.
        dtype: Precision of the stored logits and embeddings.
    """

    data: Annotated[str | None, DisallowNone, help_default("the run's own data")] = None
    split: Annotated[str | None, DisallowNone, help_default("test, or validation if there is no test split")] = None
    kernel: str = "osd"
    steps: Annotated[
        int | None, DisallowNone, help_default("until the output is final; 70 for ews:0.9; 10 under transient noise")
    ] = None
    schedule: Annotated[Schedule | None, DisallowNone, help_default("the one that the network was trained with")] = None
    noise: Annotated[str | None, DisallowNone, help_default("no noise")] = None
    protocol: Annotated[NoiseProtocol | None, DisallowNone, help_default("persistent")] = None
    trials: Annotated[int | None, DisallowNone, help_default("5; 1 for still")] = None
    noise_frames: Annotated[tuple[int, ...], help_default("1 2 3 4 5 6")] = ()
    max_images: Annotated[int | None, DisallowNone, help_default("all images")] = None
    seed: int = 0
    embeddings: bool = False
    activations: Annotated[int | None, DisallowNone, help_default("none")] = None
    dtype: Literal["float32", "float16"] = "float32"

    @property
    def time(self) -> Literal["coarse", "fine"]:
        """Temporal resolution: `coarse` if a block needs one step, `fine` if its response is spread over many."""
        return "coarse" if self.schedule == "serial" or self.kernel in ("osd", "none") else "fine"

    @property
    def onset(self) -> int | None:
        """First noisy step, counted from 1; None without noise."""
        if self.noise is None:
            return None
        return 1 if self.protocol != "transient" else (self.steps or 0) + 1

    @property
    def total_steps(self) -> int:
        """Steps of a trace that is recorded with this (resolved) configuration."""
        steps = self.steps or 0
        return steps if self.protocol != "transient" else 2 * steps + self.noise_frames[0]

    @property
    def name(self) -> str:
        """File name without suffix of a trace with this (resolved) configuration: `cifar10-test-ews0.9-70`."""
        data = self.data or "images"
        if re.search(r"[^\w.-]", data):  # a path: folders of one name in two places differ in the digest
            digest = hashlib.sha256(data.encode()).hexdigest()[:6]
            data = re.sub(r"[^\w.-]", "_", Path(data).name) + "-" + digest
        kernel = self.kernel.replace(":", "").replace(",", "_")
        parts = [data, self.split or "", "serial" if self.schedule == "serial" else kernel]
        if self.noise is None:
            parts.append(str(self.steps))
        else:
            parts += [re.sub(r"[^\w.-]", "_", self.noise), str(self.protocol), *map(str, self.noise_frames)]
        return "-".join([*parts, *([] if self.max_images is None else [f"{self.max_images}images"])])


@dataclass(frozen=True)
class Provenance:
    """The network and the images that a recording was made from.

    Attributes:
        run: Folder of the run; empty for a trace that was built by hand.
        method: Training method: `cascaded-td`.
        lam: Lambda of the TD loss, or a schedule of lambdas; None for other losses.
        seed: Seed of the run.
        fold: Fold that was left out of training, and number of folds: `(3, 10)`; None without cross-validation.
        weights: SHA-256 of the weights.
        images: Digest of all images of the data and split.
        items: Digest of the images that were presented, in their order.
        classes: Class names of the network.
        in_distribution: Whether the labels are classes of the network; False for out-of-distribution images.
        coarse_of: Coarse class of each class, for data with two levels of classes.
        coarse_classes: Names of the coarse classes.
        updates: Block updates per step.
        operations: Floating-point operations per image and step.
        made_with: Versions of the software.
    """

    run: str = ""
    method: str = ""
    lam: float | tuple[float, ...] | None = None
    seed: int = 0
    fold: tuple[int, int] | None = None
    weights: str = ""
    images: str = ""
    items: str = ""
    classes: tuple[str, ...] = ()
    in_distribution: bool = True
    coarse_of: tuple[int, ...] = ()
    coarse_classes: tuple[str, ...] = ()
    updates: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    made_with: dict[str, str] = field(default_factory=dict)
