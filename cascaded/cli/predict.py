"""`cascaded predict`: a trained network on one's own pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from cascaded.errors import InputError
from cascaded.shell import help_default, program

if TYPE_CHECKING:
    from cascaded.hub.pretrained import Pretrained
    from cascaded.runtime.images import Picture
    from cascaded.runtime.predict import Answer


def predict(
    images: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="IMAGE...", help_behavior_hint="(required)")],
    *,
    model: str = "cifar10-td0",
    stop: Annotated[float | None, help_default("the last step answers")] = None,
    top: int = 3,
    fine: bool = False,
    out: Annotated[Path, help_default("the current folder")] = Path(),
    draw: bool = True,
    json: bool = False,
) -> None:
    """Show a trained network your own pictures, and see its answer change from step to step.

    Prints a line a step and draws OUT/NAME-over-time.png. A picture is cut to its middle and brought to the size of the
    images that the network was trained on. A network knows its classes only: whatever it is shown, it names one.

    Example: cascaded predict holiday.jpg --stop 0.9

    Args:
        images: Pictures in any usual format, or folders that hold some.
        model: A network by name (`cascaded models`), a run or a folder that contains one, a folder with a saved
            network, or OWNER/NAME on the hub.
        stop: Take the answer at the first step that is surer than this, from 0 to 1. Later steps are shown in grey.
        top: How many classes are shown.
        fine: Run the same weights in fine time: 70 small steps.
        out: The folder for the drawings.
        draw: Draw the answers.
        json: Print a line of JSON a picture, with all probabilities, and nothing else.
    """
    check(images, stop, top)
    from cascaded.runtime.images import find_pictures, read_picture, targets

    files = find_pictures(images)
    drawn = targets(files, out) if draw else {}
    from cascaded.hub.load import load
    from cascaded.runtime.predict import ask

    net, refused = load(model), []
    for file in files:
        try:
            picture = read_picture(file)
        except InputError as error:  # the others can be answered all the same
            refused.append(error)
            continue
        answer = ask(net, picture, stop, fine)
        tell(net, model, picture, answer, top, drawn.get(file), json)
    if refused:
        several = f"{len(refused)} of {len(files)} pictures cannot be read, the first: " if len(refused) > 1 else ""
        raise InputError(f"{several}{refused[0]}")


def check(images: tuple[Path, ...], stop: float | None, top: int) -> None:
    """What is wrong with these words, said before anything is read."""
    if not images:
        raise InputError(f"no picture is given: say which, as in {program()} predict holiday.jpg")
    if stop is not None and not 0 <= stop <= 1:
        raise InputError(f"--stop is {stop:g}: give a probability from 0 to 1, such as 0.9")
    if top < 1:
        raise InputError(f"--top is {top}: give at least 1")


def tell(
    net: Pretrained, model: str, picture: Picture, answer: Answer, top: int, file: Path | None, json: bool
) -> None:
    """Print an answer, for people or for programs, and draw it where there is a file to draw it to."""
    import json as form

    from cascaded.progress import say, wide_console
    from cascaded.runtime.drawing import draw_answer
    from cascaded.runtime.terminal import readable, show

    if file is not None:
        draw_answer(file, picture, answer, model, net.inputs.shape, top)
    if json:
        drawn = None if file is None else str(file)
        print(form.dumps({**answer.to_json(str(picture.file), model), "drawn": drawn}), flush=True)
        return
    console = wide_console()
    show(console, picture, answer, model, net.inputs.shape, top)
    say(console, f"wrote {readable(str(file))}\n" if file else "")
