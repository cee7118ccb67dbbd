"""The configuration of a training run: one flat dataclass for the command line, `config.json` and Python."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, get_args

from tyro.conf import DisallowNone, arg

from cascaded.errors import InputError, at_least, unknown
from cascaded.shell import help_default, to_args
from cascaded.training.method import TD, Method, MethodName, get_method
from cascaded.training.options import FOLD, LAM

Arch = Literal["resnet18", "resnet34", "resnet50", "densenet121", "vit", "highway"]
CONVERTED = ("vit", "highway")
"""Plain models, which are converted, as are those of the user's own functions."""
Precision = Literal["float32", "bfloat16"]
LrSchedule = Literal["steps", "one-cycle"]
Optimizer = Literal["sgd", "adamw"]
MIN_WARMUP = 50
"""Steps of the one-cycle warm-up at least: with a faster warm-up, losses over all steps become NaN."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that the result of a training run depends on. The defaults are the paper's recipe.

    Attributes:
        data: A known name (`cascaded data list`), a folder, a Parquet file, or a data set of the Hugging Face
            hub; `digits` needs neither files nor a connection.
        method: Training method: schedule, heads and loss.
        lam: Lambda of the TD loss, from 0 to 1; several values are interpolated over the epochs, as in 1:0.
        arch: Network architecture: resnet18, resnet34, resnet50, densenet121, vit, highway; or your own as
            package.module:function, which is called with num_classes= and returns a torch.nn.Module.
        joins: For vit, highway and your own models: auto delays every skip connection that is found, a regular
            expression of module names delays these modules as whole layers.
        width: Channels of the first stage.
        pool: Max-pool after the first convolution. Without it a step needs four times as many operations.
        epochs: Passes over the training images. With few images the laptop recipe chooses more.
        batch_size: Images per step, over all processes. With few images the laptop recipe chooses smaller batches.
        optimizer: sgd, or adamw, which transformers need.
        lr: Peak learning rate.
        momentum: SGD momentum.
        nesterov: Use Nesterov momentum with SGD.
        weight_decay: Weight decay.
        decay_norms: Apply weight decay to norms and biases too.
        ema: Decay of an exponential moving average of the weights, e.g. 0.999, which is validated, tested and saved; 0:
            no average.
        lr_schedule: steps: multiply by --lr-gamma every --lr-step-epochs epochs; one-cycle: linear warm-up
            over --warmup-fraction of the steps (at least 50), then linear decay to 0.
        lr_gamma: Factor of the steps schedule.
        lr_step_epochs: Epochs between two reductions of the steps schedule.
        warmup_fraction: Fraction of all steps in which the one-cycle schedule warms up.
        val_fraction: Fraction of the training images, the same for every class, that is used for validation.
        max_images: Train on this many images only, the same number per class.
        init_from: Start from the weights of another run or saved network, such as runs/td0/0. Stored as the SHA-256 of
            the weights.
        fold: Hold out one of several folds for validation, as in 3/10; `cascaded sweep --folds 10` trains all of them.
        noise: Noise as augmentation: focus, perlin, occlusion, resolution, translation, rotation or gray; options
            follow a colon, as in focus:sigma=2.
        pad: Pixels of reflection padding before the random crop.
        flip: Mirror half of the images.
        cutout: Side of the square that is cut out, in pixels. Noise replaces the data set's own.
        image_size: Resize and center-crop the images to this height and width.
        image_column: Name of the image column.
        label_column: Name of the label column.
        classes: Use only these classes, in this order.
        fill_statistics: For cascaded-ce: compute batch-norm statistics of every step after training; without it, those
            of the last step are used at every step.
        precision: bfloat16 for mixed precision, useful on recent GPUs.
        sync_norm: With several processes, compute batch-norm statistics over the whole batch.
        seed: Seed of weights, order and augmentation.
    """

    data: str = "digits"
    method: MethodName = "cascaded-td"
    lam: Annotated[float | tuple[float, ...] | None, LAM, help_default("the method's own")] = None
    arch: Annotated[str, arg(metavar="NAME|MODULE:FUNCTION")] = "resnet18"
    joins: Annotated[str, arg(metavar="auto|REGEX")] = "auto"
    width: Annotated[int | None, help_default("the function's own", metavar="INT")] = 64
    pool: Annotated[bool | None, help_default("the architecture's own", metavar="{True,False}")] = None
    epochs: int = 120
    batch_size: int = 128
    optimizer: Optimizer = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    decay_norms: bool = True
    ema: float = 0.0
    lr_schedule: LrSchedule = "steps"
    lr_gamma: float = 0.2
    lr_step_epochs: int = 30
    warmup_fraction: float = 0.3
    val_fraction: float = 0.1
    max_images: Annotated[int | None, DisallowNone, help_default("all")] = None
    init_from: Annotated[str | None, DisallowNone, help_default("random weights")] = None
    fold: Annotated[tuple[int, int] | None, FOLD, help_default("--val-fraction of the images")] = None
    noise: Annotated[str | None, DisallowNone, help_default("no noise")] = None
    pad: Annotated[int | None, help_default("the data set's own, or an eighth of the size", metavar="INT")] = None
    flip: Annotated[bool | None, help_default("the data set's own, or True", metavar="{True,False}")] = None
    cutout: Annotated[int | None, help_default("the data set's own", metavar="INT")] = None
    image_size: Annotated[int | None, DisallowNone, help_default("as the data set has them")] = None
    image_column: Annotated[str | None, DisallowNone, help_default("detected if there is only one")] = None
    label_column: Annotated[str | None, DisallowNone, help_default("detected if there is only one")] = None
    classes: Annotated[tuple[str, ...], help_default("all")] = ()
    fill_statistics: bool = False
    precision: Precision = "float32"
    sync_norm: bool = True
    seed: int = 0

    def __post_init__(self):
        at_least(1, width=self.width, epochs=self.epochs, batch_size=self.batch_size)
        at_least(1, lr_step_epochs=self.lr_step_epochs, max_images=self.max_images, image_size=self.image_size)
        at_least(0, pad=self.pad, cutout=self.cutout, seed=self.seed)
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise InputError(f"lr is {self.lr}: give a positive number, e.g. 0.1")
        for name in ("momentum", "weight_decay", "ema", "val_fraction"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a number from 0 to below 1")
        choices = {"optimizer": Optimizer, "lr_schedule": LrSchedule, "precision": Precision}
        for name, kind in choices.items():
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} is {getattr(self, name)!r}: give {' or '.join(get_args(kind))}")
        if not 0 < self.lr_gamma <= 1:
            raise InputError(f"lr_gamma is {self.lr_gamma}: give a number above 0, and 1 for a constant learning rate")
        if not 0 < self.warmup_fraction < 1:
            raise InputError(f"warmup_fraction is {self.warmup_fraction}: give a number between 0 and 1")
        if self.fold and not 1 <= self.fold[0] <= self.fold[1] > 1:
            raise InputError(f"fold is {self.fold}: give its number and how many there are, as (3, 10)")
        if self.fill_statistics and self.method != "cascaded-ce":
            raise InputError(
                f"fill_statistics is for cascaded-ce, the method is {self.method}, whose training computes all "
                "statistics that it uses: leave it out"
            )
        self._check_arch(self.get_method())  # a lambda that the method does not have, or out of range

    def _check_arch(self, method: Method) -> None:
        """Refuse unknown architectures, and options that an architecture does not have."""
        if not self.is_code and self.arch not in get_args(Arch):
            otherwise = f"give one of {', '.join(get_args(Arch))}, or package.module:function"
            raise unknown("architecture", self.arch, get_args(Arch), otherwise)
        if not self.is_converted:
            if self.width is None:
                raise InputError(f"width is None, {self.arch} has none of its own: give a number, e.g. 16")
            if self.joins != "auto":
                raise InputError(f"joins is {self.joins!r}, {self.arch} has its own: leave it out")
            return
        if method.heads != "shared":
            raise InputError(
                f"{self.method} has heads of its own at every step, {self.arch} has the one head of a converted model: "
                "use cascaded-td, cascaded-ce, serial-td or serial-ce"
            )
        if self.pool is not None:
            raise InputError(f"pool is {self.pool}, which {self.arch} does not have: leave it out")
        try:
            re.compile(self.joins)
        except re.error as error:
            raise InputError(f"joins is {self.joins!r}, no regular expression ({error}): correct it") from error

    @property
    def is_code(self) -> bool:
        """Whether `arch` is a function that is imported."""
        return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", self.arch) is not None

    @property
    def is_converted(self) -> bool:
        """Whether the network is a plain model that is converted."""
        return self.is_code or self.arch in CONVERTED

    @property
    def network(self) -> str:
        """Architecture and width in words."""
        return self.arch if self.width is None else f"{self.arch}, width {self.width}"

    def get_method(self) -> Method:
        """Schedule, heads and loss."""
        return get_method(self.method, self.lam)

    @property
    def has_step_statistics(self) -> bool:
        """Whether batch norms have statistics per step; otherwise those of the last step are used at every step."""
        return self.fill_statistics or isinstance(self.get_method().loss, TD)

    def lr_at(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step, counted from 0."""
        if self.lr_schedule == "steps":
            return self.lr * self.lr_gamma ** (step // steps_per_epoch // self.lr_step_epochs)
        done = (step + 1) / (self.epochs * steps_per_epoch + 1)  # neither the first nor the last step has a rate of 0
        warmup = min(done / self.warmup_fraction, (step + 1) / MIN_WARMUP)
        return self.lr * min(warmup, (1 - done) / (1 - self.warmup_fraction))

    def differences(self, other: RunConfig) -> list[str]:
        """How another configuration differs from this one: `lr 0.1 -> 0.2`."""
        mine, yours = _comparable(self), _comparable(other)
        return [f"{name} {mine[name]} -> {yours[name]}" for name in mine if mine[name] != yours[name]]


RECIPES: dict[str, RunConfig] = {
    "laptop": RunConfig(width=16, epochs=30, batch_size=64, lr_schedule="one-cycle", warmup_fraction=0.2, cutout=0),
    "strong": RunConfig(
        width=32,
        pool=False,
        epochs=36,
        lr=0.2,
        decay_norms=False,
        lr_schedule="one-cycle",
        warmup_fraction=0.2,
        cutout=8,
        precision="bfloat16",
    ),
    "paper": RunConfig(),
}
"""`laptop`: a narrow network within the hour on two cores. `strong`: a wider one in hours, cross-entropy first and then
TD. `paper`: the paper's training, for a GPU."""
FITTED = ("epochs", "batch_size")
"""Fields that the laptop recipe chooses from the number of training images (`training.fit`) unless they are given."""
RecipeName = Literal["laptop", "strong", "paper"]


def recipe_for(name: str | None, arch: str | None) -> RunConfig:
    """A recipe, `laptop` by default, for an architecture.

    Width and pool are for ResNets and DenseNets only; a ViT is trained with AdamW.
    """
    recipe = RECIPES.get(name or "laptop", RECIPES["laptop"])
    if arch is None or not (":" in arch or arch in CONVERTED):
        return recipe
    adam = {"optimizer": "adamw", "lr": 2e-3, "weight_decay": 0.05} if arch == "vit" else {}
    return replace(recipe, arch=arch, width=None, pool=None, **adam)


@dataclass(frozen=True)
class ExecutionConfig:
    """How a run is computed; its result does not depend on it, except for rounding.

    Attributes:
        device: auto, cpu, cuda, cuda:1 or mps.
        threads: CPU threads per run.
        checkpoint_seconds: Seconds between two checkpoints within an epoch.
        tensorboard: Write event files for TensorBoard too.
        deterministic: Refuse operations whose result may differ from run to run.
    """

    device: str = "auto"
    threads: Annotated[int | None, DisallowNone, help_default("all cores; divided between the runs of a sweep")] = None
    checkpoint_seconds: float = 60.0
    tensorboard: bool = False
    deterministic: bool = False

    def __post_init__(self):
        at_least(1, threads=self.threads)


DEFAULT_EXECUTION = ExecutionConfig()


def _comparable(config: RunConfig) -> dict[str, Any]:
    """All fields, so that equal runs are equal: a slash after a folder and a method's own lambda change nothing."""
    loss = config.get_method().loss
    return {
        **asdict(config),
        "data": os.path.normpath(config.data),
        "lam": loss.lam if isinstance(loss, TD) else None,
    }


LATER = ("joins", "pool", "optimizer", "decay_norms", "ema", "fill_statistics")
"""Fields that are not part of the hash if they have their default: earlier runs were made without them."""


def config_hash(config: RunConfig) -> str:
    """12 hex digits that are equal for runs that can be compared: they differ in method, lambda or seed only.

    A lambda schedule counts; of `init_from` and `fold` it counts whether there is one and how many folds there are.
    """
    kept = _comparable(config)
    kept["lam"] = config.lam if isinstance(config.lam, tuple) else None
    kept["init_from"], kept["fold"] = config.init_from is not None, config.fold and config.fold[1]
    unused = [name for name in LATER if kept[name] == getattr(RunConfig, name)]
    for name in ("method", "seed", *unused):
        del kept[name]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def train_args(config: RunConfig, execution: ExecutionConfig = DEFAULT_EXECUTION) -> list[str]:
    """The words after `cascaded train` that give exactly this configuration, from the nearest recipe."""
    found: list[list[str]] = []
    for name, recipe in RECIPES.items():
        chosen = FITTED if name == "laptop" else ()  # written out: they are not to be chosen from the images again
        base = recipe_for(name, config.arch)
        words = ["--arch", config.arch] if base.arch != recipe.arch else []
        words += to_args(config, replace(base, **{each: getattr(config, each) for each in chosen}))
        words += [word for each in chosen for word in (f"--{each.replace('_', '-')}", str(getattr(config, each)))]
        found.append(words if name == "laptop" else ["--recipe", name, *words])
    return [*min(found, key=len), *to_args(execution, DEFAULT_EXECUTION)]
