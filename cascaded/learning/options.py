"""What `cascaded train` and `cascaded sweep` ask alike: made into a spec once, at the edge."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Literal

from cascaded.errors import InputError
from cascaded.learning.method import parse_lam
from cascaded.learning.recipe import RECIPES, Precision, RateSchedule, Recipe
from cascaded.learning.spec import Spec


def parse_fold(text: str) -> tuple[int, int]:
    """`3/10`: the third of ten folds."""
    number, slash, folds = text.partition("/")
    if not (slash and number.isdecimal() and folds.isdecimal() and 1 <= int(number) <= int(folds) > 1):
        raise InputError(f"--fold is {text!r}: say which of how many, from 1/10 to 10/10")
    return int(number), int(folds)


def _weights(run: Path) -> str:
    from cascaded.learning.trained import load_run

    return load_run(run).weights


@dataclass(frozen=True)
class Options:
    """Data, network and recipe of a run, and how it is computed.

    Attributes:
        data: A known name (`cascaded data list`), a folder, a Parquet file, or a data set of the hub; `digits` needs
            neither files nor a network.
        recipe: `laptop`, a narrow network within the hour; `paper`, the paper's training, for a GPU. What follows
            overrides.
        network: What is cascaded.
        width: Channels of the first stage.
        epochs: Passes over the training images.
        batch: Images a step, over all processes.
        rate: The learning rate at its highest.
        momentum: Of SGD.
        decay: Weight decay.
        schedule: How the rate changes: in steps, or up and down once.
        held_out: Share of the training images that is kept for validation; 0 for none.
        limit: Use only so many training images, the same of every class.
        start: Begin with the weights of another run, such as runs/td0/0, instead of drawn ones.
        fold: Hold out one fold of several instead, as in 3/10; `cascaded crossval` does it for all of them.
        noise: Learn with a noise: focus, perlin, occlusion, resolution, translation or rotation.
        pad: Pixels of reflection around an image before it is cropped.
        flip: Whether half of the images are mirrored.
        cutout: Side of the square that is cut out.
        size: Bring images to this height and width.
        image: Name of the image column.
        label: Name of the label column.
        classes: Only these classes, in this order.
        precision: bfloat16 for mixed precision: worth it on recent GPUs.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: Cores that torch uses for a run; all by default, shared out in a sweep.
        deterministic: Refuse operations whose result may differ from run to run.
        checkpoint_seconds: Time between two checkpoints within an epoch.
        tensorboard: Write event files for tensorboard too.
    """

    data: str = "digits"
    recipe: Literal["laptop", "paper"] = "laptop"
    network: Literal["resnet18", "resnet34", "resnet50", "densenet121"] = "resnet18"
    width: int | None = None
    epochs: int | None = None
    batch: int | None = None
    rate: float | None = None
    momentum: float | None = None
    decay: float | None = None
    schedule: RateSchedule | None = None
    held_out: float | None = None
    limit: int | None = None
    start: Path | None = None
    fold: str | None = None
    noise: str | None = None
    pad: int | None = None
    flip: bool | None = None
    cutout: int | None = None
    size: int | None = None
    image: str | None = None
    label: str | None = None
    classes: tuple[str, ...] = ()
    precision: Precision | None = None
    device: str = "auto"
    threads: int | None = None
    deterministic: bool = False
    checkpoint_seconds: float = 60.0
    tensorboard: bool = False

    def __post_init__(self):
        for name in ("threads", "limit", "size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name} is {value}: give at least 1")

    def spec(self, model: str, lam: str | None, seed: int) -> Spec:
        """The run of a model with these options."""
        changes = {field.name: getattr(self, field.name, None) for field in fields(Recipe)}
        recipe = RECIPES[self.recipe].but(**changes)
        spec = Spec(
            data=self.data,
            model=model,
            lam=None if lam is None else parse_lam(lam),
            network=self.network,
            recipe=recipe,
            seed=seed,
            limit=self.limit,
            size=self.size,
            classes=self.classes,
            columns=(self.image, self.label),
            fold=None if self.fold is None else parse_fold(self.fold),
            start=None if self.start is None else _weights(self.start),
        )
        _ = spec.method  # a lambda where there is none is said before anything is loaded
        return spec

    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is not MISSING and value == field.default:
                continue
            flag = "--" + field.name.replace("_", "-")
            if field.default is False:
                words.append(flag)
            else:
                words += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
        return words
