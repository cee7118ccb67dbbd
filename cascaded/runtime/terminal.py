"""An answer over time as lines of text: bars on a terminal, and the same without colours in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from cascaded.progress import readable
from cascaded.runtime.predict import Answer

if TYPE_CHECKING:
    from cascaded.runtime.images import Picture

WIDEST = 78
"""Columns: a line is never longer, however wide the terminal."""

LONGEST = 20
"""Columns that the name of a class may take up."""

LEAST, MOST = 8, 24
"""Columns of a bar that stands for certainty."""

ALL = 20
"""So many steps are all shown; of more, some."""


def show(console: Console, picture: Picture, answer: Answer, model: str, shape: Sequence[int], top: int) -> None:
    """Print an answer: a line a step, and what it comes to.

    Args:
        console: Where to.
        picture: What was shown.
        answer: What was said.
        model: By whom.
        shape: Channels, height and width at which the network sees it.
        top: How many classes stand in a line.
    """
    width, height = picture.size
    _print(console, f"{picture.file}: {width} x {height} pixels, seen by {model} as {shape[2]} x {shape[1]}")
    columns = min(WIDEST, console.width) if console.is_terminal else WIDEST
    for line in lines(answer, columns, top, plain=console.options.ascii_only):
        _print(console, line)
    _print(console, answer.sentence())
    last = answer.classes[answer.leaders[-1]]
    if last != answer.said:
        _print(console, f"the last step says {last} ({answer.probabilities[-1].max():.2f})")


def _print(console: Console, line: str | Text) -> None:
    """A line as it is; without colours and foreign letters where they cannot be shown."""
    if console.options.ascii_only:
        line = str(line).encode("ascii", "replace").decode()
    console.print(Text(readable(line)) if isinstance(line, str) else line, soft_wrap=True)


def lines(answer: Answer, columns: int, top: int, plain: bool = False) -> list[Text]:
    """A line a step, and one where it could stop.

    Args:
        answer: What was said.
        columns: How long a line may be.
        top: How many classes stand in a line, if there is room.
        plain: Draw with letters alone, for what cannot show others.
    """
    steps = chosen_steps(answer)
    name = max(cell_len(shortened(answer.classes[place])) for place in set(answer.leaders))
    runners, room = fitted(answer, steps, columns - name - 17, top)
    found = []
    for step in steps:
        found.append(_line(answer, step, name, room, runners, plain))
        if step == answer.stopped and step < answer.steps:
            told, dash = f"surer than {answer.stop:g}: it could stop here", "-" if plain else "─"
            found.append(Text(f"      {dash * 2} {told} ".ljust(columns, dash)[:columns], style="green"))
    return found


def chosen_steps(answer: Answer) -> list[int]:
    """All steps, or where there are many the first, the last, those where something happens, and some in between."""
    if answer.steps <= ALL:
        return list(range(1, answer.steps + 1))
    every = range(0, answer.steps, max(1, round(answer.steps / 14)))
    return sorted({1, answer.step, answer.steps, *answer.changes, *every[1:]})


def fitted(answer: Answer, steps: list[int], columns: int, top: int) -> tuple[int, int]:
    """How many other classes have room behind the bar, and how long the bar can be."""
    for runners in range(top - 1, 0, -1):
        longest = max(cell_len(_others(answer, step, runners)) for step in steps)
        if columns - longest - 2 >= LEAST:
            return runners, min(MOST, columns - longest - 2)
    return 0, max(1, min(MOST, columns))


def _line(answer: Answer, step: int, name: int, room: int, runners: int, plain: bool) -> Text:
    (leader, share), *_ = answer.likeliest(step, 1)
    new = step in answer.changes
    mark = (">" if plain else "→") if new else " "
    over = answer.stopped is not None and step > answer.stopped
    line = Text(style="bright_black" if over else "")
    line.append(f"{step:>4} {mark} ")
    line.append(set_cell_size(shortened(leader), name), style="bold" if new and not over else "")
    line.append(f"  {share:.2f}  ")
    line.append(set_cell_size(bar(share, room, plain), room), style="" if over else "cyan")
    line.append("  " + _others(answer, step, runners), style="" if over else "bright_black")
    line.rstrip()
    return line


def _others(answer: Answer, step: int, runners: int) -> str:
    """Who else is in question at a step."""
    named = answer.likeliest(step, runners + 1)[1:]
    return "  ".join(f"{shortened(each)} {share:.2f}" for each, share in named)


def bar(share: float, room: int, plain: bool = False) -> str:
    """A bar of so many columns at 1, in eighths of a column where they can be shown."""
    if plain:
        return "#" * round(share * room)
    full, eighths = divmod(round(8 * share * room), 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths]


def shortened(name: str) -> str:
    """As much of the name of a class as there is room for."""
    name = readable(name)
    return name if cell_len(name) <= LONGEST else set_cell_size(name, LONGEST - 1) + "…"
