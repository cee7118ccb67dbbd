"""The model card of a network: what it is, how often it is right at every step, and what it is not good for."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascaded import __version__
from cascaded.data.catalogue import SOURCES
from cascaded.exhibits.names import spoken
from cascaded.progress import counted, readable
from cascaded.results.subjects import Subject
from cascaded.training.config import Spec
from cascaded.training.load import told_shape
from cascaded.training.method import TD
from cascaded.training.options import Options
from cascaded.training.recipe import RECIPES, Recipe

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
## Its spec

{% if command -%}
With cascaded {{ version }} this trains by the same spec:

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

    name, data = readable(name or model_name(net.spec)), readable(net.spec.data)
    return ModelCard.from_template(
        card_data=metadata(net, name, license),
        template_str=TEMPLATE,
        name=name,
        model=model_name(net.spec),
        data=data,
        measured=f"{len(net.classes)} of the classes of {data}" if net.spec.classes else data,
        schedule=SCHEDULES[net.schedule].format(steps=net.steps),
        paper=PAPER,
        facts=facts(net),
        accuracy=net.accuracy,
        notes=notes,
        shape=", ".join(map(str, net.inputs.shape)),
        steps=net.steps,
        classes=len(net.classes),
        limits=limits(net),
        command=command(net.spec),
        version=__version__,
    )


def metadata(net: Pretrained, name: str, license: str | None) -> ModelCardData:
    """What the hub reads of a card."""
    from huggingface_hub import EvalResult, ModelCardData

    spec = net.spec
    known = SOURCES.get(spec.data)
    data = known.hub if known else None
    as_there = not (spec.classes or spec.size or any(spec.columns))  # else its accuracy is of another task
    told: dict[str, Any] = net._hub_mixin_info.model_card_data.to_dict()
    if data and as_there and net.accuracy:
        last = EvalResult("image-classification", data, spec.data, "accuracy", round(net.accuracy[-1], 4))
        told |= {"model_name": name, "eval_results": [last]}
    return ModelCardData(**told, license=license, datasets=[data] if data else None, metrics=["accuracy"])


def model_name(spec: Spec) -> str:
    """What the paper calls the model of a run: CascadedTD(0)."""
    return spoken(Subject((), spec, Path()).label)


def facts(net: Pretrained) -> list[tuple[str, str]]:
    """What there is to know of a network, a line each."""
    spec, recipe = net.spec, net.spec.recipe
    course = "that rises and falls once" if recipe.schedule == "one-cycle" else "that falls in steps"
    rate = f"a rate of {recipe.rate:g} {course}"
    images = f"{told_shape(net.inputs.shape)}, {len(net.classes)} classes"
    told = [
        ("model", f"{model_name(spec)}, `{spec.model}`"),
        ("network", f"{spec.network} of width {recipe.width}, {parameters(net):,} parameters"),
        ("data", f"{spec.data}: {images}"),
        ("training", f"{counted(recipe.epochs, 'epoch')} in batches of {recipe.batch}, {rate}, seed {spec.seed}"),
        ("limit", spec.limit and f"{counted(spec.limit, 'training image')}, the same of every class"),
        ("fold", spec.fold and f"{spec.fold[0]} of {spec.fold[1]}, held out of the training images"),
        ("start", spec.start and f"weights of another run, SHA-256 {spec.start}"),
        ("noise", recipe.noise and f"{recipe.noise}, as an augmentation"),
    ]
    return [(what, readable(each)) for what, each in told if each]


def parameters(net: Pretrained) -> int:
    """How many numbers it has learned."""
    return sum(each.numel() for each in net.parameters())


def limits(net: Pretrained) -> list[str]:
    """What a network should not be trusted with."""
    recipe, paper = net.spec.recipe, RECIPES["paper"]
    data = readable(net.spec.data) + ("" if net.spec.start else " alone")
    told = [
        f"It calls whatever it is shown one of {len(net.classes)} things: {some(net.classes)}.",
        f"It takes {told_shape(net.inputs.shape)} pixels and has learned from {data}: another picture, "
        "brought to that form, may look like nothing that it knows.",
        "Its confidence has not been calibrated: 0.9 does not mean that it is right nine times out of ten.",
    ]
    if recipe.width < paper.width or recipe.epochs < paper.epochs:
        told.append(
            f"It has width {recipe.width} and was trained for {counted(recipe.epochs, 'epoch')}, where the paper has "
            f"{paper.width} and {paper.epochs}: it is made for looking at how answers come about, not for relying on "
            "them."
        )
    return told


def some(classes: tuple[str, ...], most: int = 12) -> str:
    """The classes, or the first ones of many."""
    return readable(", ".join(classes[:most])) + ("" if len(classes) <= most else " and so on")


def command(spec: Spec) -> str | None:
    """What trains the same network again; None where options of the command line do not suffice."""
    names = {field.name for field in fields(Options)} & {field.name for field in fields(Recipe)}
    of_recipe = {name: getattr(spec.recipe, name) for name in names}
    fold = "/".join(map(str, spec.fold)) if spec.fold else None
    lam = ":".join(map(str, spec.method.loss.knots)) if isinstance(spec.method.loss, TD) else None
    for recipe in ("laptop", "paper"):
        options = Options(
            data=spec.data,
            recipe=recipe,
            network=spec.network,  # pyright: ignore[reportArgumentType]
            limit=spec.limit,
            fold=fold,
            size=spec.size,
            image=spec.columns[0],
            label=spec.columns[1],
            classes=spec.classes,
            **of_recipe,
        )
        if not options.spec(spec.model, lam, spec.seed).differences(spec):
            words = ["--model", spec.model, *([] if lam is None else ["--lam", lam]), "--seed", str(spec.seed)]
            words = ["cascaded", "train", *words, *options.arguments()]
            return lines(words) if all(map(str.isprintable, words)) else None
    return None


def lines(words: list[str], width: int = 80) -> str:
    """A command over as many lines as it needs; an option stays with its value."""
    told = [""]
    for word in words:
        if word.startswith("--") and len(told[-1]) + len(word) > width:
            told.append(" ")
        told[-1] += f" {shlex.quote(word)}"
    return " \\\n".join(told).strip()
