"""`cascaded bench`: all settings, one run."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cascaded.errors import InputError

if TYPE_CHECKING:
    from cascaded.bench.compare import Measurement, Setting


def bench(
    *,
    width: tuple[int, ...] = (16,),
    batch: tuple[int, ...] = (64,),
    model: Literal["resnet18", "resnet34", "resnet50"] = "resnet18",
    size: int = 32,
    repeats: int = 5,
    threads: int = 2,
    memory: bool = True,
    record: int = 0,
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> None:
    """Time, peak memory and operations of a cascade, beside the published loop and one serial pass.

    All contenders run in turns in one run, so read the ratios: times alone depend on the machine and the moment.

    Example: cascaded bench --width 16 64 --batch 64 128 --json bench.json

    Args:
        width: Channels of the first stage, one or several.
        batch: Images in a batch, one or several.
        model: Which network.
        size: Height and width of an image.
        repeats: How often everything is timed, after one round to warm up; the median counts.
        threads: How many cores torch uses.
        memory: Whether to measure peak memory, in processes of their own.
        record: Also record so many images through each network, beside a serial evaluation of them, and time analyses.
        json: Also write everything that was measured to this file.
    """
    numbers = {"width": width, "batch": batch, "size": (size,), "repeats": (repeats,), "threads": (threads,)}
    for name, values in numbers.items():
        if not values or min(values) < 1:
            raise InputError(f"--{name} is {' '.join(map(str, values)) or 'empty'}: give numbers of at least 1")
    if record < 0:
        raise InputError(f"--record is {record}: give a number of images, or 0 for none")
    if min(batch) == 1 and size <= 16:
        raise InputError(
            f"--batch is 1 and --size {size}: the last map is one pixel, and a single value has no variance to train "
            "with: give a batch of at least 2, or a size above 16"
        )
    if json is not None:
        _check_writable(json)
    from cascaded.bench.compare import TASKS, Setting

    settings = [Setting(task, w, b, model, size, threads) for w, b, task in product(width, batch, TASKS)]
    results = _measure(settings, repeats, memory, json)
    recorded = _record(model, width, size, record, threads) if record else {}
    _show(results, recorded, json)


def _check_writable(file: Path) -> None:
    """Better now than after a quarter of an hour."""
    if file.is_dir():
        raise InputError(f"--json is {file}, a folder: give the name of a file in it")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=file.parent).close()
    except OSError as error:
        raise InputError(f"--json is {file}, which cannot be written ({error.strerror}): give another place") from error


def _measure(
    settings: list[Setting], repeats: int, memory: bool, json: Path | None
) -> dict[Setting, dict[str, Measurement]]:
    from cascaded.bench.compare import CONTENDERS, contest
    from cascaded.bench.report import save
    from cascaded.progress import progress

    results = {}
    with progress("benchmark", len(settings) * len(CONTENDERS) * (repeats + 1 + int(memory))) as shown:
        for setting in settings:
            what = f"{setting.task} width {setting.width} batch {setting.batch}"
            results[setting] = contest(setting, repeats, memory, told=lambda what=what: shown.advance(1, what))
            if json is not None:
                save(results, json)  # what is measured is kept, whatever comes next
    return results


def _record(model: str, widths: tuple[int, ...], size: int, items: int, threads: int) -> dict[str, Any]:
    import torch

    from cascaded.bench.recording import analyses, recording
    from cascaded.progress import progress

    torch.set_num_threads(threads)
    with progress("recording", 2 * items * len(widths)) as shown:
        found = [recording(model, width, size, items, shown.advance) for width in widths]
    return {"recording": found, "analyses": analyses()}


def _show(results: dict[Setting, dict[str, Measurement]], recorded: dict[str, Any], json: Path | None) -> None:
    from cascaded.bench.report import save, table
    from cascaded.progress import wide_console

    console = wide_console()
    console.print(table(results))
    for each in recorded.get("recording", []):
        console.print(
            f"recording {each['items']:,} images at width {each['width']}: {each['record']:.1f} s, "
            f"{each['times_serial']:.2f} x a serial evaluation"
        )
    for name, seconds in recorded.get("analyses", {}).items():
        console.print(f"{name} of a trace of 70 x 10,000 x 10: {seconds:.2f} s")
    if json is not None:
        save(results, json, recorded)
    console.print(f"wrote {json}" if json is not None else "next: the same with --json FILE keeps every figure")
