"""Run the jobs of a sweep or of another queue: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cascaded.errors import InputError, first_line
from cascaded.files import check_writable
from cascaded.progress import cores
from cascaded.training.config import DEFAULT_EXECUTION, ExecutionConfig
from cascaded.training.runs import WITH_PARENT
from cascaded.training.sweep import State

LOG = "log.txt"
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Status:
    """The state of a job.

    Attributes:
        state: Waiting, running, done, failed, or running elsewhere: in another process.
        message: Its progress or, if it failed, the last line of its log.
        where: The machine that computed it.
    """

    state: State
    message: str = ""
    where: str = ""


class Task(Protocol):
    """A run of a sweep, or another task with a folder and a process of its own."""

    @property
    def folder(self) -> Path:
        """Where its files are, and its log."""
        ...

    @property
    def out(self) -> Path:
        """The folder of all tasks."""
        ...

    @property
    def after(self) -> Sequence[Task]:
        """The tasks that have to be done before this one starts."""
        ...

    def state(self) -> State:
        """Its state before it is started; bad input is refused."""
        ...

    def progress(self) -> str:
        """Its progress in a few words."""
        ...

    def command(self, execution: ExecutionConfig) -> list[str]:
        """The words after `python -m` that do it or resume it."""
        ...


T = TypeVar("T", bound=Task)


class Engine(ABC):
    """Starts runs in processes of their own."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether another run can be started now."""

    @abstractmethod
    def start(self, job: Task, command: list[str]) -> None:
        """Start a task: `python -m` with this command."""

    @abstractmethod
    def ended(self) -> dict[Any, tuple[int, str]]:
        """The tasks that have ended since the last call: exit code, and the machine that computed it."""

    @abstractmethod
    def stop(self) -> None:
        """Ask running processes to stop, and wait for them."""


def run_jobs(
    jobs: Sequence[T],
    execution: ExecutionConfig = DEFAULT_EXECUTION,
    engine: Engine | None = None,
    num_workers: int | None = None,
    on_update: Callable[[Mapping[T, Status]], object] = lambda statuses: None,
    on_end: Callable[[T, Status], object] = lambda job, status: None,
) -> dict[T, Status]:
    """Train some runs, or do other tasks. Finished ones are skipped, interrupted ones are resumed.

    One that fails does not stop others, unless they come after it.

    If the folder of the runs cannot be written any more, all are stopped and an `InputError` is raised.

    Args:
        jobs: The runs.
        execution: How each of them is computed.
        engine: Where they are computed; on this machine by default.
        num_workers: Runs at a time on this machine; as many as it has GPUs or cores by default.
        on_update: Called with the status of all runs, now and then.
        on_end: Called with every run that has ended.
    """
    # errors in configurations are raised before the first run starts
    statuses = {job: Status(job.state(), job.progress()) for job in jobs}
    queue = [job for job, status in statuses.items() if status.state == "waiting"]
    if not queue:
        return statuses
    for out in {job.out for job in queue}:
        check_writable(out)
    engine = engine or Local.for_runs(min(num_workers or len(queue), len(queue)), execution)
    running: set[T] = set()
    try:
        while queue or running:
            for job in [job for job in queue if _has_failed_before(job, statuses)]:
                queue.remove(job)
                statuses[job] = Status("failed", "another one that it starts from failed")
                on_end(job, statuses[job])
            while engine.has_room() and (job := _first_ready(queue, statuses)):
                queue.remove(job)
                running.add(job)
                engine.start(job, job.command(replace(execution, threads=None)))
            for job, (code, where) in engine.ended().items():
                running.remove(job)
                statuses[job] = Status("failed" if code else "done", _message(job, code), where)
                on_end(job, statuses[job])
                if code:
                    check_writable(job.out)  # a full disk would fail all others as well
            for job in running:
                statuses[job] = Status("running", job.progress())
            on_update(statuses)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt("interrupted: run the same command again to resume") from stopped
    finally:
        engine.stop()
    return statuses


def _first_ready(queue: Sequence[T], statuses: Mapping[Any, Status]) -> T | None:
    """The first task that does not wait for another one."""
    return next((job for job in queue if all(statuses[each].state == "done" for each in job.after)), None)


def _has_failed_before(job: Task, statuses: Mapping[Any, Status]) -> bool:
    return any(statuses[each].state == "failed" for each in job.after)


def check_ended(statuses: Mapping[Any, Status]) -> None:
    """Runs that failed are an error."""
    if failed := [job.folder for job, status in statuses.items() if status.state == "failed"]:
        raise InputError(
            f"{len(failed)} of {len(statuses)} runs failed, the first in {failed[0]}: see log.txt there, and run the "
            "same command again to resume"
        )


def _message(job: Task, code: int) -> str:
    """The progress of a run or, if it failed, the last line of its log."""
    if not code:
        return job.progress()
    log = job.folder / LOG
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line for line in reversed(lines) if line.strip()), f"ended with code {code}")


class Local(Engine):
    """Processes of this machine, a fixed number at a time; the cores are divided between them."""

    def __init__(self, slots: int, threads: int, gpus: int = 0):
        self.free, self.threads, self.gpus = list(range(slots)), threads, gpus
        self.running: dict[Task, subprocess.Popen[bytes]] = {}
        self.slots: dict[Task, int] = {}

    @classmethod
    def for_runs(cls, runs: int, execution: ExecutionConfig) -> Local:
        """This many runs at a time, but no more than there are GPUs or, without any, cores."""
        import torch

        gpus = torch.cuda.device_count() if execution.device in ("auto", "cuda") else 0
        slots = min(runs, gpus or cores())
        return cls(slots, execution.threads or max(1, cores() // slots), gpus)

    def has_room(self) -> bool:
        return bool(self.free)

    def start(self, job: Task, command: list[str]) -> None:
        slot = self.slots[job] = self.free.pop(0)
        gpu = {"CUDA_VISIBLE_DEVICES": str(slot % self.gpus)} if self.gpus else {}
        self.running[job] = _process(job.folder, command, self.threads, gpu)

    def ended(self) -> dict[Any, tuple[int, str]]:
        codes = {job: process.poll() for job, process in self.running.items()}
        found = {job: (code, "here") for job, code in codes.items() if code is not None}
        for job in found:
            del self.running[job]
            self.free.append(self.slots.pop(job))
        return found

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()  # the run saves its state
        for process in self.running.values():
            process.wait()


class Ray(Engine):
    """A Ray cluster whose machines share the folder; a run whose machine is lost is resumed on another one."""

    def __init__(self, execution: ExecutionConfig, address: str | None):
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except (ImportError, RuntimeError) as error:
            raise InputError(f"--engine ray needs Ray ({error}): pip install 'cascaded[cluster]'") from error
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            way = "start one with `ray start --head`, or give --address"
            raise InputError(f"no Ray cluster answers ({first_line(error)}): {way}") from error
        self.ray, self.threads = ray, execution.threads or 1
        on_gpu = execution.device in ("auto", "cuda")
        gpus = 1 if on_gpu and ray.cluster_resources().get("GPU") else 0  # Ray hides GPUs that are not requested
        self.work = ray.remote(num_cpus=self.threads, num_gpus=gpus, max_retries=3)(_work)
        self.running: dict[Task, Any] = {}

    def has_room(self) -> bool:
        return True  # Ray has a queue of its own

    def start(self, job: Task, command: list[str]) -> None:
        self.running[job] = self.work.remote(os.getcwd(), str(job.folder), command, self.threads)

    def ended(self) -> dict[Any, tuple[int, str]]:
        jobs = {reference: job for job, reference in self.running.items()}
        ready, _ = self.ray.wait(list(jobs), num_returns=len(jobs), timeout=0) if jobs else ([], [])
        found = {jobs[reference]: self._ended(reference) for reference in ready}
        for job in found:
            del self.running[job]
        return found

    def _ended(self, reference: Any) -> tuple[int, str]:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return 1, first_line(error)

    def stop(self) -> None:
        for reference in self.running.values():
            self.ray.cancel(reference, force=True)
        self.ray.shutdown()


def _process(folder: Path, command: list[str], threads: int, more: dict[str, str]) -> subprocess.Popen[bytes]:
    """A task in a process of its own, with its output in the folder's log."""
    command = [sys.executable, "-m", *command, "--threads", str(threads)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = (folder / LOG).open("ab")
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out") from error
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), WITH_PARENT: str(os.getpid()), **more}
    with log:  # a session of its own: Ctrl-C goes to the sweep only, which then stops its runs
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
        )


def _work(home: str, folder: str, command: list[str], threads: int) -> tuple[int, str]:
    """Run a job on a machine of the cluster, in the folder that the sweep was started in: exit code and machine."""
    import ray  # pyright: ignore[reportMissingImports]

    os.chdir(home)
    code = _process(Path(folder), command, threads, {}).wait()
    return code, f"node {ray.get_runtime_context().get_node_id()[:8]}"
