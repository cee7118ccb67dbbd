"""Facts about trained networks: the table of those that are shipped, and model cards."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from cascaded import __version__
from cascaded.data.catalogue import SOURCES
from cascaded.hub.locate import NETWORKS, shipped
from cascaded.progress import readable
from cascaded.results.names import display_name
from cascaded.training.config import RECIPES, RunConfig, train_args
from cascaded.training.method import TD
from cascaded.training.run_file import WEIGHTS, RunFile
from cascaded.training.runs import read_run_file

TEMPLATE = Path(__file__).parent / "card.md.j2"
TAGS = ["anytime-prediction", "cascaded-networks", "early-exit", "temporal-difference"]
MIXIN_TAGS = ["model_hub_mixin", "pytorch_model_hub_mixin"]  # by which the hub knows how to load it
MAX_CLASSES = 12
"""Number of class names that are written out."""
COLUMNS = ("name", "model", "data", "file", "step 1", "step 3", "last step")


def shipped_networks() -> list[tuple[str, ...]]:
    """One row per shipped network, with the columns `COLUMNS`; the last three are test accuracies."""
    rows = []
    for name in shipped():
        file = read_run_file(NETWORKS / name)
        size = f"{(NETWORKS / name / WEIGHTS).stat().st_size / 1e6:.1f} MB"
        accuracy = (f"{file.accuracy[step]:.1%}" for step in (0, 2, -1))
        rows.append((name, model_name(file.config), file.config.data, size, *accuracy))
    return rows


def model_card(
    file: RunFile, parameters: int, name: str = "", license: str | None = None, notes: str = ""
) -> ModelCard:
    """The model card of a network, README.md of its folder.

    Args:
        file: Its configuration, inputs and accuracy.
        parameters: Its number of parameters.
        name: The name to load it by.
        license: Its license, as the hub spells it.
        notes: A sentence about the accuracy.
    """
    config, shape = file.config, file.inputs.shape
    name = readable(name or model_name(config))
    return ModelCard.from_template(
        card_data=_metadata(file, name, license),
        template_path=str(TEMPLATE),
        name=name,
        model=model_name(config),
        data=readable(config.data),
        serial=config.get_method().schedule == "serial",
        facts=facts(file, parameters),
        accuracy=file.accuracy,
        notes=notes,
        some_classes=bool(config.classes),
        classes=len(file.inputs.classes),
        class_names=class_names(file.inputs.classes),
        shape=f"{shape[0]} x {shape[1]} x {shape[2]}",
        pretrained=bool(config.init_from),
        small=config if is_smaller(config, RECIPES["paper"]) else None,
        paper=RECIPES["paper"],
        command=train_command(config),
        version=__version__,
    )


def model_name(config: RunConfig) -> str:
    """The paper's name of a method: CascadedTD(0)."""
    loss = config.get_method().loss
    return display_name(config.method, loss.knots[-1] if isinstance(loss, TD) else None)


def is_smaller(config: RunConfig, paper: RunConfig) -> bool:
    """Whether a ResNet or DenseNet is narrower than the paper's, or was trained for fewer epochs."""
    if config.width is None or paper.width is None or config.is_converted:
        return False
    return config.width < paper.width or config.epochs < paper.epochs


def facts(file: RunFile, parameters: int) -> list[tuple[str, str]]:
    """What a network is and how it was trained: a name and a value each."""
    config, inputs = file.config, file.inputs
    lr = "one-cycle" if config.lr_schedule == "one-cycle" else "step"
    pool = "" if config.pool is None else ", max-pool" if config.pool else ", no max-pool"
    values: list[tuple[str, Any]] = [
        ("method", f"{model_name(config)} (`{config.method}`)"),
        ("architecture", f"{config.network}{pool}, {parameters:,} parameters"),
        ("data", config.data),
        ("input", " x ".join(map(str, inputs.shape))),
        ("classes", f"{len(inputs.classes)}: {class_names(inputs.classes)}"),
        ("epochs", str(config.epochs)),
        ("optimizer", f"SGD, batch size {config.batch_size}, peak learning rate {config.lr:g}, {lr} schedule"),
        ("weights", config.ema and f"exponential moving average, decay {config.ema:g}"),
        ("seed", str(config.seed)),
        ("training images", config.max_images and f"at most {config.max_images:,}, the same number per class"),
        ("fold", config.fold and f"{config.fold[0]} of {config.fold[1]} was held out for validation"),
        ("initial weights", config.init_from and f"those of another run, SHA-256 {config.init_from}"),
        ("noise augmentation", config.noise),
    ]
    return [(name, readable(value)) for name, value in values if value]


def class_names(classes: tuple[str, ...]) -> str:
    """The class names; of many, the first ones."""
    return readable(", ".join(classes[:MAX_CLASSES])) + (", ..." if len(classes) > MAX_CLASSES else "")


def train_command(config: RunConfig) -> str | None:
    """The command that trains the same network again; None if it needs the weights of another run."""
    if config.init_from:
        return None
    words = ["cascaded", "train", "--method", config.method, *train_args(replace(config, method="cascaded-td"))]
    return shlex.join(words) if all(map(str.isprintable, words)) else None


def _metadata(file: RunFile, name: str, license: str | None) -> ModelCardData:
    """The metadata that the hub reads from a card."""
    config = file.config
    source = SOURCES.get(config.data)
    dataset = source.hub if source else None
    values: dict[str, Any] = {"library_name": "cascaded", "pipeline_tag": "image-classification"}
    other_task = config.classes or config.image_size or config.image_column or config.label_column
    if dataset and file.accuracy and not other_task:
        last = EvalResult("image-classification", dataset, config.data, "accuracy", round(file.accuracy[-1], 4))
        values |= {"model_name": name, "eval_results": [last]}
    datasets, tags = [dataset] if dataset else None, TAGS + MIXIN_TAGS
    return ModelCardData(**values, tags=tags, license=license, datasets=datasets, metrics=["accuracy"])
