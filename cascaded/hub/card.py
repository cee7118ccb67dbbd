"""The model card of a network: what it is, how often it is right at every step, and what it is not good for."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded.data.catalogue import SOURCES
from cascaded.exhibits.names import spoken
from cascaded.progress import counted, readable
from cascaded.results.subjects import Subject
from cascaded.training.config import RECIPES, RunConfig, train_args
from cascaded.training.load import describe_shape

if TYPE_CHECKING:
    from huggingface_hub import ModelCard, ModelCardData

    from cascaded.hub.pretrained import Pretrained

PAPER = "https://arxiv.org/abs/2102.09808"

TEMPLATE = """---
{{ card_data }}
---

# {{ name }}

{{ model }} on {{ data }}: a network that answers at every step. {{ schedule }}

It needs the Python package `cascaded`, which is after the paper
[Improving Anytime Prediction with Parallel Cascaded Networks and a Temporal-Difference Loss]({{ paper }}).

| | |
| --- | --- |
{% for what, told in facts -%}
| {{ what }} | {{ told }} |
{% endfor %}
## How often it is right

{% if accuracy -%}
| step | test accuracy |
| ---: | ---: |
{% for each in accuracy -%}
| {{ loop.index }} | {{ "%.2f" | format(100 * each) }} % |
{% endfor %}
Measured on the test images of {{ measured }}.
{%- else -%}
Not measured.
{%- endif %}
{%- if notes %} {{ notes }}{% endif %}

## Use

```python
import cascaded

net = cascaded.load("{{ name }}")
logits = net(images)  # bytes, or floats in 0..1: (batch, {{ shape }}) -> ({{ steps }}, batch, {{ classes }})
net.classes[logits[-1, 0].argmax()]  # what it calls the first image, once it has settled
```

```bash
cascaded predict photo.jpg --model {{ name }}  # the answer as it changes over time
```

## What it is not good for

{% for each in limits -%}
- {{ each }}
{% endfor %}
## Its configuration

{% if command -%}
This trains with the same configuration:

```bash
{{ command }}
```

{% endif -%}
`config.json` holds all of it.

"""

SCHEDULES = {
    "cascaded": "All of its blocks work at once and pass their results on a step late, so that a first answer is there "
    "after one step and deepens until step {steps}.",
    "serial": "Its blocks work one after the other, and each is followed by an answer, up to step {steps}.",
}


def model_card(net: Pretrained, name: str = "", license: str | None = None, notes: str = "") -> ModelCard:
    """What README.md says of a network.

    Args:
        net: The network.
        name: What it is called where it is loaded.
        license: Its license, as the hub spells it; None leaves it to whoever shares it.
        notes: A sentence about its accuracies.
    """
    from huggingface_hub import ModelCard

    name, data = readable(name or model_name(net.config)), readable(net.config.data)
    return ModelCard.from_template(
        card_data=metadata(net, name, license),
        template_str=TEMPLATE,
        name=name,
        model=model_name(net.config),
        data=data,
        measured=f"{len(net.classes)} of the classes of {data}" if net.config.classes else data,
        schedule=SCHEDULES[net.schedule].format(steps=net.steps),
        paper=PAPER,
        facts=facts(net),
        accuracy=net.accuracy,
        notes=notes,
        shape=", ".join(map(str, net.inputs.shape)),
        steps=net.steps,
        classes=len(net.classes),
        limits=limits(net),
        command=command(net.config),
    )


def metadata(net: Pretrained, name: str, license: str | None) -> ModelCardData:
    """What the hub reads of a card."""
    from huggingface_hub import EvalResult, ModelCardData

    config = net.config
    known = SOURCES.get(config.data)
    data = known.hub if known else None
    as_there = not (
        config.classes or config.image_size or config.image_column or config.label_column
    )  # else its accuracy is of another task
    told: dict[str, Any] = net._hub_mixin_info.model_card_data.to_dict()
    if data and as_there and net.accuracy:
        last = EvalResult("image-classification", data, config.data, "accuracy", round(net.accuracy[-1], 4))
        told |= {"model_name": name, "eval_results": [last]}
    return ModelCardData(**told, license=license, datasets=[data] if data else None, metrics=["accuracy"])


def model_name(config: RunConfig) -> str:
    """What the paper calls the model of a run: CascadedTD(0)."""
    return spoken(Subject((), config, Path()).label)


def facts(net: Pretrained) -> list[tuple[str, str]]:
    """What there is to know of a network, a line each."""
    config = net.config
    course = "that rises and falls once" if config.lr_schedule == "one-cycle" else "that falls in steps"
    rate = f"a rate of {config.lr:g} {course}"
    images = f"{describe_shape(net.inputs.shape)}, {len(net.classes)} classes"
    told = [
        ("model", f"{model_name(config)}, `{config.method}`"),
        ("network", f"{config.arch} of width {config.width}, {parameters(net):,} parameters"),
        ("data", f"{config.data}: {images}"),
        (
            "training",
            f"{counted(config.epochs, 'epoch')} in batches of {config.batch_size}, {rate}, seed {config.seed}",
        ),
        ("limit", config.max_images and f"{counted(config.max_images, 'training image')}, the same of every class"),
        ("fold", config.fold and f"{config.fold[0]} of {config.fold[1]}, held out of the training images"),
        ("start", config.init_from and f"weights of another run, SHA-256 {config.init_from}"),
        ("noise", config.noise and f"{config.noise}, as an augmentation"),
    ]
    return [(what, readable(each)) for what, each in told if each]


def parameters(net: Pretrained) -> int:
    """How many numbers it has learned."""
    return sum(each.numel() for each in net.parameters())


def limits(net: Pretrained) -> list[str]:
    """What a network should not be trusted with."""
    config, paper = net.config, RECIPES["paper"]
    data = readable(net.config.data) + ("" if net.config.init_from else " alone")
    told = [
        f"It calls whatever it is shown one of {len(net.classes)} things: {some(net.classes)}.",
        f"It takes {describe_shape(net.inputs.shape)} pixels and has learned from {data}: another picture, "
        "brought to that form, may look like nothing that it knows.",
        "Its confidence has not been calibrated: 0.9 does not mean that it is right nine times out of ten.",
    ]
    if config.width < paper.width or config.epochs < paper.epochs:
        told.append(
            f"It has width {config.width} and was trained for {counted(config.epochs, 'epoch')}, where the paper has "
            f"{paper.width} and {paper.epochs}: it is made for looking at how answers come about, not for relying on "
            "them."
        )
    return told


def some(classes: tuple[str, ...], most: int = 12) -> str:
    """The classes, or the first ones of many."""
    return readable(", ".join(classes[:most])) + ("" if len(classes) <= most else " and so on")


def command(config: RunConfig) -> str | None:
    """The command that trains the same network again; None if other weights are needed for it."""
    if config.init_from:
        return None
    words = ["cascaded", "train", "--method", config.method, *train_args(replace(config, method="cascaded-td"))]
    return lines(words) if all(map(str.isprintable, words)) else None


def lines(words: list[str], width: int = 80) -> str:
    """A command over as many lines as it needs; an option stays with its value."""
    told = [""]
    for word in words:
        if word.startswith("--") and len(told[-1]) + len(word) > width:
            told.append(" ")
        told[-1] += f" {shlex.quote(word)}"
    return " \\\n".join(told).strip()
