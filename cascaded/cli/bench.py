"""`cascaded bench`: time, memory and operations of a cascade relative to other implementations."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import DisallowNone

from cascaded.errors import InputError, at_least
from cascaded.files import check_writable, write_json
from cascaded.progress import progress, table, wide_console
from cascaded.shell import help_default

if TYPE_CHECKING:
    from cascaded.bench.compare import Measurement, Setting
    from cascaded.bench.convert import ConvertedTimes
    from cascaded.bench.runtime import RuntimeSetting, RuntimeTimes
    from cascaded.bench.serve import LoadResult

CAPTION = (
    "loop: the published method, the whole network at every step. serial: one ordinary pass. cascade: this library; "
    "plain convolutions: without its own convolution for small maps. input pipeline: preparing a training batch."
)

RUNTIME_CAPTION = (
    "step: the second step of a still image, in which all blocks are computed. serial pass: one ordinary pass. exit: a "
    "Shallow-Deep network, stopped between blocks. batched blocks: the 12 layers of a transformer in one call. Ratios "
    "are medians over rounds in which all of them took turns."
)
TRANSFORMER_WIDTH = 64
SERVE_CAPTION = (
    "Every client sends its next request when it has the answer to the last one. batch: images that are computed at "
    "the same time. server's CPU: processor time per prediction, on which other load has little effect. late: "
    "predictions after their deadline; they are the best ones so far. lost: no answer."
)
REQUESTS = 60
"""Requests of `--serve` per repeat and setting."""
ROUNDS = 10
"""Rounds of `--runtime` per repeat: a step takes less than a millisecond."""


def bench(
    *,
    width: Annotated[
        tuple[int, ...] | None, DisallowNone, help_default("16; 16 64 with --runtime", "[INT ...]")
    ] = None,
    batch_size: Annotated[
        tuple[int, ...] | None, DisallowNone, help_default("64; 1 16 with --runtime", "[INT ...]")
    ] = None,
    arch: Literal["resnet18", "resnet34", "resnet50"] = "resnet18",
    image_size: int = 32,
    repeats: int = 5,
    threads: Annotated[int | None, DisallowNone, help_default("2; 1 and 2 with --runtime; 1 with --serve")] = None,
    memory: bool = True,
    record: int = 0,
    runtime: bool = False,
    convert: bool = False,
    serve: bool = False,
    json: Annotated[Path | None, help_default("nothing is written", "FILE")] = None,
) -> None:
    """Measure time, peak memory and operations of a cascade, the published loop and one serial pass.

    All implementations run in turns, so compare the ratios: times alone depend on the machine and its load.

    Example: cascaded bench

    Example: cascaded bench --width 16 64 --batch-size 64 128 --json bench.json

    Example: cascaded bench --runtime

    Example: cascaded bench --serve

    Example: cascaded bench --convert --batch-size 8 --repeats 3

    Args:
        width: Channels of the first stage, one or more values.
        batch_size: Images per batch, one or more values.
        arch: Network architecture.
        image_size: Height and width of the images in pixels.
        repeats: Number of timed runs after one warm-up run; the median is reported.
        threads: Number of CPU threads.
        memory: Measure peak memory, in separate processes.
        record: Also time the recording of this many images.
        runtime: Measure single steps and passes instead, with torch and exported to ONNX, also of a vision transformer
            of 12 layers whose blocks are computed in one call.
        convert: Measure a converted vision transformer of 12 layers instead: all steps, and every single one.
        serve: Measure `cascaded serve` instead: throughput and percentiles of requests of 1, 8 and 64 clients.
        json: Also write all measurements to this file.
    """
    width = ((16, 64) if runtime else (16,)) if width is None else width
    batch_size = ((1, 16) if runtime else (64,)) if batch_size is None else batch_size
    smallest = {"--width": min(width, default=0), "--batch-size": min(batch_size, default=0)}
    at_least(1, **smallest, **{"--image-size": image_size, "--repeats": repeats, "--threads": threads})
    at_least(0, **{"--record": record})
    if json is not None and json.is_dir():
        raise InputError(f"--json is {json}, a folder: give the name of a file in it")
    if json is not None:
        check_writable(json.parent)
    chosen = [f"--{name}" for name, given in (("convert", convert), ("runtime", runtime), ("serve", serve)) if given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} measure different things: give one of them")
    if serve:
        _bench_serve(width, arch, image_size, REQUESTS * repeats, threads or 1, json)
        return
    if convert:
        _convert(batch_size, repeats, threads or 2, json)
        return
    if runtime:
        counts = (1, 2) if threads is None else (threads,)
        _bench_runtime([*product(width, batch_size, counts)], arch, image_size, repeats, json)
        return
    threads = threads or 2
    _check_batch_norm(min(batch_size), image_size)
    from cascaded.bench.compare import Setting

    tasks: tuple[Literal["train"], Literal["evaluate"]] = ("train", "evaluate")
    combinations = product(width, batch_size, tasks)
    settings = [Setting(task, w, b, arch, image_size, threads) for w, b, task in combinations]
    results = _measure(settings, repeats, memory, json)
    recorded = _record(arch, width, image_size, record, threads) if record else {}
    _print(results, recorded, json)


def _bench_runtime(
    settings: list[tuple[int, int, int]], arch: str, image_size: int, repeats: int, json: Path | None
) -> None:
    from cascaded.bench.runtime import TRANSFORMER, RuntimeSetting, runtime_summary, time_runtime

    results, console = [], wide_console()
    rows = [RuntimeSetting(*each, arch, image_size) for each in settings]
    rows += dict.fromkeys(RuntimeSetting(TRANSFORMER_WIDTH, batch, count, TRANSFORMER) for _, batch, count in settings)
    with progress("benchmark", len(rows)) as bar:
        for row in rows:
            results.append(time_runtime(row, ROUNDS * repeats))
            bar.advance(1, f"{row.arch} width {row.width} batch size {row.batch_size} threads {row.threads}")
            if json is not None:
                write_json(json, runtime_summary(results))  # finished settings are kept if a later one is interrupted
    for name in dict.fromkeys(row.arch for row in rows):
        _print_runtime([each for each in results if each.setting.arch == name], name)
    console.print(RUNTIME_CAPTION)
    if json is not None:
        console.print(f"wrote {json}")


def _print_runtime(results: list[RuntimeTimes], arch: str) -> None:
    alone = [each for each in results if each.setting.threads == 1]
    for title, shown, values in (
        ("median times in ms", results, [each.milliseconds for each in results]),
        ("ratios of times", results, [each.ratios for each in results]),
        ("ratios of processor times, on which other load has no effect", alone, [each.cpu_ratios for each in alone]),
    ):
        named = [{name: f"{value:.2f}" for name, value in each.items()} for each in values]
        rows = [{**_about(each.setting), **cells} for each, cells in zip(shown, named, strict=True)]
        if rows:
            wide_console().print(table(rows, f"{arch}: {title}", set(rows[0])))


def _about(setting: RuntimeSetting) -> dict[str, str]:
    return {"width": str(setting.width), "batch": str(setting.batch_size), "threads": str(setting.threads)}


def _bench_serve(
    widths: tuple[int, ...], arch: str, image_size: int, requests: int, threads: int, json: Path | None
) -> None:
    from cascaded.bench.serve import BATCHES, CLIENTS, LIMITS, load_summary, measure_load

    with progress("benchmark", len(widths) * len(CLIENTS) * len(LIMITS) * len(BATCHES)) as bar:
        each = [
            measure_load(width, arch, image_size, threads, requests, lambda what: bar.advance(1, what))
            for width in widths
        ]
    results, console = [result for some in each for result in some], wide_console()
    rows = [_load_cells(result) for result in results]
    console.print(table(rows, "requests over loopback", set(rows[0]) - {"request"}))
    console.print(SERVE_CAPTION)
    if json is not None:
        write_json(json, load_summary(results))
        console.print(f"wrote {json}")


def _load_cells(each: LoadResult) -> dict[str, str]:
    setting, deadline = each.setting, each.setting.limit.startswith("deadline")
    return {
        "width": str(setting.width),
        "batch": str(setting.max_batch),
        "request": setting.limit,
        "clients": str(setting.clients),
        "sent": str(each.sent),
        "answered": str(each.answered),
        "refused (429)": str(each.refused),
        "lost": str(each.lost),
        "per second": f"{each.throughput:.0f}",
        "p50": f"{each.p50:.1f} ms",
        "p99": f"{each.p99:.1f} ms",
        "mean step": f"{each.step:.1f}",
        "server's CPU": f"{each.cpu:.1f} ms",
        "late": f"{100 * each.late:.1f} %" if deadline else "",
    }


def _convert(batch_sizes: tuple[int, ...], repeats: int, threads: int, json: Path | None) -> None:
    """Print the times of a converted transformer, in passes through the model."""
    import torch

    from cascaded.bench.convert import JOINS, time_conversion

    torch.set_num_threads(threads)
    with progress("benchmark", len(batch_sizes) * len(JOINS) * (repeats + 1)) as bar:
        found = {size: time_conversion(12, 192, size, repeats, lambda: bar.advance(1)) for size in batch_sizes}
    rows = [_converted_cells(size, each) for size, measured in found.items() for each in measured]
    console = wide_console()
    console.print(table(rows, "a vision transformer of 12 layers, 64 tokens", set(rows[0]) - {"delayed"}))
    console.print("Times in passes through the model. loop: the whole model once per step.")
    if json is not None:
        write_json(json, {str(size): [asdict(each) for each in measured] for size, measured in found.items()})
        console.print(f"wrote {json}")


def _converted_cells(batch_size: int, each: ConvertedTimes) -> dict[str, str]:
    return {
        "batch size": str(batch_size),
        "delayed": each.joins,
        "steps": str(each.steps),
        "conversion": f"{each.seconds:.1f} s",
        "loop": f"{each.loop:.2f}",
        "all steps": f"{each.time:.2f}",
        "of loop's": f"{each.time_of_loop:.2f}",
        "of operations'": f"{each.time_of_operations:.2f}",
        "step 1": f"{each.step_times[0]:.2f}",
        "step 2": f"{each.step_times[1]:.2f}",
        "last step": f"{each.step_times[-1]:.2f}",
    }


def _check_batch_norm(batch_size: int, image_size: int) -> None:
    if batch_size == 1 and image_size <= 16:
        raise InputError(
            f"--batch-size is 1 and --image-size {image_size}: the last feature map is one pixel, and batch norm needs "
            "more than one value: give a batch size of at least 2, or an image size above 16"
        )


def _measure(
    settings: list[Setting], repeats: int, memory: bool, json: Path | None
) -> dict[Setting, dict[str, Measurement]]:
    from cascaded.bench.compare import IMPLEMENTATIONS, compare, summary

    results = {}
    with progress("benchmark", len(settings) * len(IMPLEMENTATIONS) * (repeats + 1 + int(memory))) as bar:
        for setting in settings:
            label = f"{setting.task} width {setting.width} batch size {setting.batch_size}"
            results[setting] = compare(setting, repeats, memory, lambda label=label: bar.advance(1, label))
            if json is not None:
                write_json(json, summary(results))  # finished settings are kept if a later one is interrupted
    return results


def _record(arch: str, widths: tuple[int, ...], image_size: int, items: int, threads: int) -> dict[str, Any]:
    import torch

    from cascaded.bench.recording import time_recording

    torch.set_num_threads(threads)
    with progress("recording", 2 * items * len(widths)) as bar:
        recording = [time_recording(arch, width, image_size, items, bar.advance) for width in widths]
    return {"recording": recording}


def _print(results: dict[Setting, dict[str, Measurement]], recorded: dict[str, Any], json: Path | None) -> None:
    from cascaded.bench.compare import summary

    console = wide_console()
    rows = _rows(results)
    console.print(table(rows, numbers=list(rows[0])[4:]))
    console.print(CAPTION)
    for each in recorded.get("recording", []):
        console.print(
            f"recording {each['items']:,} images at width {each['width']}: {each['record']:.1f} s, "
            f"{each['time_of_serial']:.2f} x a serial evaluation"
        )
    if json is not None:
        write_json(json, summary(results) | recorded)
        console.print(f"wrote {json}")


def _rows(results: dict[Setting, dict[str, Measurement]]) -> list[dict[str, str]]:
    """One row per implementation and setting: what was measured, and the ratios."""
    from cascaded.bench.compare import PIPELINE, ratios

    rows = []
    for setting, measured in results.items():
        relative = ratios(measured)
        about = {"task": setting.task, "width": str(setting.width), "batch size": str(setting.batch_size)}
        for name, each in measured.items():
            shown = f"[bold]{name}[/]" if name == "cascade" else name
            cells = _cells(each, relative[name])
            if name == PIPELINE:  # it has no memory and no operations, and no counterpart in the loop
                cells = {heading: cells[heading] for heading in ("time", "of cascade's")}
            rows.append({**about, "implementation": shown, **cells})
            about = {}
    return rows


def _cells(each: Measurement, ratio: dict[str, float | None]) -> dict[str, str]:
    return {
        "time": f"{each.median_seconds * 1000:,.1f} ms",
        "of cascade's": f"{ratio['time_of_cascade']:.3f}",
        "faster than loop": f"{ratio['speedup_over_loop']:.2f} x",
        "times serial": f"{ratio['time_of_serial']:.2f} x",
        "memory": "" if each.peak_bytes is None else f"{each.peak_bytes / 2**20:,.0f} MiB",
        "memory of loop's": "" if ratio["memory_of_loop"] is None else f"{ratio['memory_of_loop']:.2f}",
        "operations": f"{each.operations / 1e9:,.2f} G",
        "operations of loop's": f"{ratio['operations_of_loop']:.2f}",
    }
