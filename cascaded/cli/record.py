"""`cascaded record`: run trained networks and store their logits at every step."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import DisallowNone

from cascaded.cli.usage import Runs, check_given
from cascaded.shell import help_default, program
from cascaded.traces.config import RecordingConfig

if TYPE_CHECKING:
    from cascaded.training.load import Trained


def record(
    runs: Runs,
    config: Annotated[RecordingConfig, tyro.conf.arg(name="")],
    *,
    human: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    threads: Annotated[int | None, DisallowNone, help_default("all cores")] = None,
) -> None:
    """Run trained networks and store their logits at every step; `cascaded analyze` works from these files.

    Writes RUN/traces/DATA-SPLIT-KERNEL-STEPS.safetensors. Finished recordings are skipped, interrupted ones resume.

    Example: cascaded record runs/td0/0 --data cifar10 --split test --kernel ews:0.9 --steps 70 --embeddings

    Args:
        runs: Folders of runs or saved networks, or folders above them.
        config: Which images are presented, and how.
        human: Record everything that people were shown whose answers `cascaded analyze --only human` compares: color
            images, gray ones, and gray ones with noise or blurred.
        overwrite: Replace recordings that exist, also those of other weights or images.
        device: auto, cpu, cuda, cuda:1, mps.
        threads: CPU threads.
    """
    from cascaded.training.runs import find_runs

    check_given(runs, "run", "record runs/td0/0")
    folders = find_runs(runs)
    from cascaded.traces.protocols import SerialKernelError, check_config
    from cascaded.traces.stimuli import human_recordings
    from cascaded.training.distributed import choose_device, use_threads
    from cascaded.training.load import load_run

    configs = human_recordings(config) if human else (config,)
    for each in configs:
        check_config(each)
    use_threads(threads)
    for folder in folders:
        run, skip = load_run(folder, choose_device(device)), SerialKernelError if len(folders) > 1 else ()
        try:
            for each in configs:
                _record(run, each, overwrite)
        except skip as error:
            print(f"skipped: {error}")
    print(f"next: {program()} analyze {' '.join(shlex.quote(str(run)) for run in runs)}")


def _record(run: Trained, config: RecordingConfig, overwrite: bool) -> None:
    """Record one network, with a progress bar, and print the files."""
    from cascaded.progress import counted, tracked
    from cascaded.traces.record import record as record_traces
    from cascaded.traces.store import read_header
    from cascaded.training.runs import is_done

    with tracked(run.folder.as_posix()) as on_progress:
        try:
            files = record_traces(run, config, overwrite=overwrite, on_progress=on_progress)
        except KeyboardInterrupt as stopped:
            raise KeyboardInterrupt("interrupted: run the same command again to resume") from stopped
    header = read_header(next(iter(files)))
    if config.split is None and header.config.split != "test":
        images = counted(header.items // (header.config.trials or 1), "validation image")
        print(f"{header.config.data} has no test split: its {images} were recorded")
    if not is_done(run.folder):
        print(f"{run.folder} is not trained to the end: the network of step {run.step} was recorded")
    for file, new in files.items():
        print(f"wrote {file}" if new else f"exists already: {file}")
