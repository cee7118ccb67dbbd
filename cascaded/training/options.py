"""The options that `cascaded train` and `cascaded sweep` share, made into a spec once, at the edge."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import DisallowNone, arg

from cascaded.errors import InputError
from cascaded.shell import help_default
from cascaded.training.config import Spec
from cascaded.training.method import parse_lam
from cascaded.training.recipe import FITTED, RECIPES, Precision, RateSchedule, Recipe

DEFAULT = Spec("digits", recipe=RECIPES["laptop"])
"""The run of somebody who gives no option."""
NAMED = {"data": DEFAULT.data, "recipe": "laptop", "network": DEFAULT.network}
"""Options that are None where they are not given, with the values that are used then."""


def of_recipes(name: str) -> object:
    """What `--help` shows as the default of an option that the recipe has a value for."""
    return help_default("; ".join(f"{getattr(recipe, name)} for {each}" for each, recipe in RECIPES.items()))


def parse_fold(text: str) -> tuple[int, int]:
    """`3/10`: the third of ten folds."""
    number, slash, folds = text.partition("/")
    if not (slash and number.isdecimal() and folds.isdecimal() and 1 <= int(number) <= int(folds) > 1):
        raise InputError(f"--fold is {text!r}: say which of how many, from 1/10 to 10/10")
    return int(number), int(folds)


def _weights(run: Path) -> str:
    from cascaded.training.load import load_run

    return load_run(run).weights


@dataclass(frozen=True)
class Options:
    """Data, network and recipe of a run, and how it is computed. None is what is not given.

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
        momentum: SGD momentum.
        decay: Weight decay.
        schedule: How the learning rate changes: in steps, or up and down once.
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
        threads: Cores that torch uses for a run.
        deterministic: Refuse operations whose result may differ from run to run.
        checkpoint_seconds: Time between two checkpoints within an epoch.
        tensorboard: Write event files for tensorboard too.
    """

    data: Annotated[str | None, DisallowNone, help_default(DEFAULT.data)] = None
    recipe: Annotated[Literal["laptop", "paper"] | None, DisallowNone, help_default("laptop")] = None
    network: Annotated[
        Literal["resnet18", "resnet34", "resnet50", "densenet121"] | None, DisallowNone, help_default(DEFAULT.network)
    ] = None
    width: Annotated[int | None, DisallowNone, of_recipes("width")] = None
    epochs: Annotated[
        int | None, DisallowNone, help_default("120 for paper; 10 for laptop, more where there are few images")
    ] = None
    batch: Annotated[
        int | None, DisallowNone, help_default("128 for paper; 64 for laptop, fewer where there are few images")
    ] = None
    rate: Annotated[float | None, DisallowNone, help_default(f"{DEFAULT.recipe.rate}")] = None
    momentum: Annotated[float | None, DisallowNone, help_default(f"{DEFAULT.recipe.momentum}")] = None
    decay: Annotated[float | None, DisallowNone, help_default(f"{DEFAULT.recipe.decay}")] = None
    schedule: Annotated[RateSchedule | None, DisallowNone, of_recipes("schedule")] = None
    held_out: Annotated[float | None, DisallowNone, help_default(f"{DEFAULT.recipe.held_out}")] = None
    limit: Annotated[int | None, DisallowNone, help_default("all")] = None
    start: Annotated[Path | None, DisallowNone, help_default("drawn weights")] = None
    fold: Annotated[str | None, DisallowNone, help_default("the share of --held-out")] = None
    noise: Annotated[str | None, DisallowNone, help_default("no noise")] = None
    pad: Annotated[int | None, DisallowNone, help_default("the data set's own, or an eighth of the size")] = None
    flip: Annotated[bool | None, arg(metavar="{True,False}"), help_default("the data set's own, or True")] = None
    cutout: Annotated[int | None, DisallowNone, help_default("the data set's own for paper; 0 for laptop")] = None
    size: Annotated[int | None, DisallowNone, help_default("the data set's own")] = None
    image: Annotated[str | None, DisallowNone, help_default("found where there is only one")] = None
    label: Annotated[str | None, DisallowNone, help_default("found where there is only one")] = None
    classes: Annotated[tuple[str, ...], help_default("all")] = ()
    precision: Annotated[Precision | None, DisallowNone, help_default(DEFAULT.recipe.precision)] = None
    device: str = "auto"
    threads: Annotated[int | None, DisallowNone, help_default("all; shared out in a sweep")] = None
    deterministic: bool = False
    checkpoint_seconds: float = 60.0
    tensorboard: bool = False

    def __post_init__(self):
        for name in ("threads", "limit", "size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name} is {value}: give at least 1")

    @property
    def given(self) -> list[str]:
        """Which of the values that can be chosen from the number of images are fixed, by an option or the recipe."""
        return [name for name in FITTED if self.recipe == "paper" or getattr(self, name) is not None]

    def spec(self, model: str | None, lam: str | None, seed: int | None, base: Spec | None = None) -> Spec:
        """The run of a model with these options; `base` has what is not given: a run that is there, or the defaults."""
        if base is not None and self.recipe is not None:
            raise InputError(f"--recipe is {self.recipe}, and a run that is resumed has its own: leave --recipe out")
        base = base or DEFAULT
        recipe = RECIPES[self.recipe] if self.recipe else base.recipe
        options = {
            "data": self.data,
            "model": model,
            "lam": None if lam is None else parse_lam(lam),
            "network": self.network,
            "recipe": recipe.but(**{field.name: getattr(self, field.name, None) for field in fields(Recipe)}),
            "seed": seed,
            "limit": self.limit,
            "size": self.size,
            "classes": self.classes or None,
            "columns": (self.image or base.columns[0], self.label or base.columns[1]),
            "fold": None if self.fold is None else parse_fold(self.fold),
            "start": None if self.start is None else _weights(self.start),
        }
        spec = replace(base, **{name: value for name, value in options.items() if value is not None})
        _ = spec.method  # a lambda where there is none is said before anything is loaded
        return spec

    def with_recipe(self, recipe: Recipe) -> Options:
        """The same options with the values of a recipe that can be chosen from the number of images."""
        return replace(self, **{name: getattr(recipe, name) for name in FITTED})

    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value in (field.default, NAMED.get(field.name)):
                continue
            flag = "--" + field.name.replace("_", "-")
            if field.default is False:
                words.append(flag)
            else:
                words += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
        return words
