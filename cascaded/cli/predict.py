"""`cascaded predict`: a trained network on the user's own images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.cli.usage import check_given
from cascaded.errors import InputError, at_least, between
from cascaded.shell import help_default

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cascaded.runtime.images import UserImage
    from cascaded.runtime.predict import Prediction

MAX_ROWS = 20
"""The table has every step up to this many, and about as many of more steps."""

BAR = 20
"""Characters of a bar of probability 1."""


def predict(
    images: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="IMAGE...", help_behavior_hint="(required)")],
    *,
    model: str = "cifar10-td0",
    threshold: Annotated[float | None, DisallowNone, help_default("run all steps")] = None,
    top: int = 3,
    kernel: Annotated[str | None, DisallowNone, help_default("the network's own")] = None,
    out: Annotated[Path, help_default("the current folder")] = Path(),
    figure: bool = True,
    json: bool = False,
) -> None:
    """Run a trained network on your own images and print its prediction at every step.

    Also writes a figure, OUT/NAME-prediction.png. Images are center-cropped and resized to the network's input. The
    network always predicts one of its own classes, whatever the image shows.

    Example: cascaded predict photo.jpg

    Example: cascaded predict photo.jpg --model cifar10-ce --threshold 0.9

    Args:
        images: Image files, or folders of images.
        model: A trained network: a name from `cascaded models`, a run folder, a saved network, or OWNER/NAME on the
            Hugging Face hub.
        threshold: Stop at the first step whose confidence is above this, from 0 to 1. Later steps are marked.
        top: Number of classes to show.
        kernel: Delay kernel: osd, none, ews:ALPHA or taps:W0,W1,... With ews:0.9, 70 small steps are run.
        out: Folder for the figures.
        figure: Write figures.
        json: Print one line of JSON per image, with all probabilities, and nothing else.
    """
    check_given(images, "image", "predict photo.jpg")
    if threshold is not None:
        between(0, 1, **{"--threshold": threshold})
    at_least(1, **{"--top": top})
    from cascaded.hub.pretrained import load
    from cascaded.runtime.images import figure_files, find_images, read_image
    from cascaded.runtime.predict import predict

    files = find_images(images)
    targets = figure_files(files, out) if figure else {}
    net, errors = load(model), []
    for file in files:
        try:
            image = read_image(file)
        except InputError as error:  # continue with the other images
            errors.append(error)
            continue
        prediction = predict(net, image.resize(net.inputs.shape), threshold=threshold, kernel=kernel)
        if target := targets.get(file):
            _draw(target, image, prediction, model, net.inputs.shape, top)
        _print(image, prediction, model, net.inputs.shape, top, target, json)
    if errors:
        several = f"{len(errors)} of {len(files)} images cannot be read, the first: " if len(errors) > 1 else ""
        raise InputError(f"{several}{errors[0]}")


def _draw(file: Path, image: UserImage, result: Prediction, model: str, shape: Sequence[int], top: int) -> None:
    import warnings

    from cascaded.figures.prediction import prediction
    from cascaded.files import write_whole
    from cascaded.progress import readable
    from cascaded.runtime.images import SOFTWARE

    fig = prediction(
        image.pixels,
        image.resize(shape),
        result.probabilities,
        [readable(name) for name in result.classes],
        step=result.step,
        threshold=result.threshold,
        top=top,
        title=readable(f"{image.file.name}: {result.summary()}"),
        model=readable(model),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # drawn as boxes
        write_whole(file, lambda part: fig.savefig(part, format="png", dpi=200, metadata={"Software": SOFTWARE}))


def _print(
    image: UserImage, result: Prediction, model: str, shape: Sequence[int], top: int, figure: Path | None, json: bool
) -> None:
    import json as format

    from cascaded.progress import print_line, readable, wide_console

    if json:
        values = result.to_json(str(image.file), model) | {"figure": None if figure is None else str(figure)}
        print(format.dumps(values), flush=True)
        return
    console = wide_console()
    height, width = image.pixels.shape[:2]
    lines = [f"{image.file}: {width} x {height} pixels, resized to {shape[2]} x {shape[1]} for {model}"]
    lines += [*table(result, top, "#" if console.options.ascii_only else "█"), result.summary()]
    if result.label != result.labels[-1]:
        lines.append(f"last step: {result.labels[-1]} ({result.probabilities[-1].max():.2f})")
    if figure is not None:
        lines.append(f"wrote {figure}")
    for line in lines:
        text = readable(line)
        print_line(console, text.encode("ascii", "replace").decode() if console.options.ascii_only else text)


def table(result: Prediction, top: int, block: str = "█") -> list[str]:
    """One line per step: the most probable classes, and a bar for the first of them."""
    width = max(len(name) for name in result.labels)
    lines = []
    for step in printed_steps(result):
        (name, probability), *others = result.top(step, top)
        bar = (block * round(BAR * probability)).ljust(BAR)
        rest = "  ".join(f"{other} {each:.2f}" for other, each in others)
        mark = f"  <- stop, above {result.threshold:g}" if result.stopped and step == result.step else ""
        lines.append(f"{step:>4}  {name:{width}}  {probability:.2f}  {bar}  {rest}{mark}".rstrip())
    return lines


def printed_steps(result: Prediction) -> list[int]:
    """All steps; of many, the first, the last, the final prediction's, changes of the prediction, and some between."""
    if result.steps <= MAX_ROWS:
        return list(range(1, result.steps + 1))
    labels = result.labels
    changes = [step for step in range(2, result.steps + 1) if labels[step - 1] != labels[step - 2]]
    return sorted({1, result.step, result.steps, *changes, *range(5, result.steps, 5)})
