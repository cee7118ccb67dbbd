"""Is a data set in order? Everything is read, and everything that is wrong is said, not only the first thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.markup import escape

from cascaded.data.classes import chosen
from cascaded.data.collect import batches, stray_label
from cascaded.data.columns import Columns
from cascaded.data.decode import UnreadableError, decode
from cascaded.data.show import counted
from cascaded.data.sources import described, placed
from cascaded.data.table import Row, Table
from cascaded.errors import InputError
from cascaded.progress import cores

Size = tuple[int, int]


def check(
    name: str,
    split: str,
    console: Console,
    *,
    size: int | None = None,
    image: str | None = None,
    label: str | None = None,
    classes: Sequence[str] = (),
) -> None:
    """Read all images of a split and say what is wrong; raises `InputError` at the end if something is."""
    source = described(name, size, image, label, classes or None)
    table = placed(source, split).open(Columns(source.image, source.label, source.coarse))
    wanted = set(chosen(source.classes, table.classes)) if source.classes else None
    sizes, counts, problems = Counter(), Counter(), []
    for row, result in results(table, name, wanted):
        wrong = stray_label(row, table)
        problems += [f"{row.where}: {wrong}"] if wrong else []
        counts[row.label] += 1
        if isinstance(result, UnreadableError):
            problems.append(f"{row.where}: cannot be read ({result})")
        else:
            sizes[result] += 1
    console.print(f"{escape(name)} {split}: {sum(counts.values()):,} images")
    for (width, height), times in sizes.most_common():
        console.print(f"  {width} x {height} pixels: {times:,}")
    if wanted is None and table.classes:
        counted("classes", [counts[number] for number in range(len(table.classes))], table.classes, console)
    problems += set_problems(table, wanted, sizes, counts, source.size)
    for problem in problems:
        console.print(escape(problem), soft_wrap=True)
    if problems:
        some = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise InputError(f"{name} {split} has {some}, listed above: put right what you can, and check again")
    console.print("no problems")


def results(
    table: Table, name: str, wanted: set[int] | None
) -> Iterator[tuple[Row, tuple[int, int] | UnreadableError]]:
    """Every row with the width and height of its image, or with what is wrong with it."""
    with ThreadPoolExecutor(cores()) as pool:
        for batch in batches(table, f"checking {name}"):
            some = [row for row in batch if wanted is None or row.label in wanted]
            yield from zip(some, pool.map(measured, some), strict=True)


def measured(row: Row) -> Size | UnreadableError:
    """Width and height of an image, all of which was decoded."""
    try:
        _, height, width = decode(row.read()).pixels.shape
    except UnreadableError as error:
        return error
    return width, height


def set_problems(table: Table, wanted: set[int] | None, sizes: Counter, counts: Counter, size: int | None) -> list[str]:
    """What is wrong with the set as a whole."""
    problems = []
    if not counts:
        return ["there are no images"]
    if len(sizes) > 1 and size is None:
        smallest = min(min(each) for each in sizes)
        problems.append(f"there are images of {len(sizes)} sizes: load them with --size {smallest}")
    unlabelled = counts[-1]
    if 0 < unlabelled < sum(counts.values()):
        problems.append(f"{unlabelled} images have no label, the others have one")
    if unlabelled < sum(counts.values()):
        kept = range(len(table.classes)) if wanted is None else sorted(wanted)
        problems += [f"class {table.classes[number]!r} has no images" for number in kept if not counts[number]]
    return problems
