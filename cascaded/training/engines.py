"""Where the runs of a sweep are computed: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascaded.errors import InputError
from cascaded.training.runs import WITH_PARENT
from cascaded.training.sweep import Job

LOG = "log.txt"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and where it was computed."""

    code: int
    place: str


class Engine(ABC):
    """Starts runs and tells which have ended."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether another run can be started now."""

    @abstractmethod
    def start(self, job: Job, arguments: list[str]) -> None:
        """Start a run: `cascaded train` with these arguments."""

    @abstractmethod
    def ended(self) -> dict[Job, Outcome]:
        """The runs that have ended since this was last asked."""

    @abstractmethod
    def stop(self) -> None:
        """Ask what is running to stop, and wait until it has."""


class Local(Engine):
    """Processes of this machine, as many at a time as there are slots, with the cores shared out."""

    def __init__(self, slots: int, threads: int, gpus: int = 0):
        self.free, self.threads, self.gpus = list(range(slots)), threads, gpus
        self.running: dict[Job, subprocess.Popen[bytes]] = {}
        self.taken: dict[Job, int] = {}

    def has_room(self) -> bool:
        return bool(self.free)

    def start(self, job: Job, arguments: list[str]) -> None:
        slot = self.taken[job] = self.free.pop(0)
        gpu = {"CUDA_VISIBLE_DEVICES": str(slot % self.gpus)} if self.gpus else {}
        self.running[job] = _process(job.folder, arguments, self.threads, gpu)

    def ended(self) -> dict[Job, Outcome]:
        codes = {job: process.poll() for job, process in self.running.items()}
        found = {job: Outcome(code, "here") for job, code in codes.items() if code is not None}
        for job in found:
            del self.running[job]
            self.free.append(self.taken.pop(job))
        return found

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()  # a run that is asked to stop keeps everything
        for process in self.running.values():
            process.wait()


class Ray(Engine):
    """A Ray cluster whose machines see this folder; a run whose machine is lost is taken up by another one."""

    def __init__(self, threads: int, on_gpu: bool, address: str | None):
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except (ImportError, RuntimeError) as error:
            raise InputError(f"--engine ray needs Ray ({error}): pip install 'cascaded[cluster]'") from error
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            told = str(error).splitlines()[0]
            raise InputError(
                f"no Ray cluster answers ({told}): start one with `ray start --head`, or name one with --address"
            ) from error
        self.ray, self.threads = ray, threads
        gpus = 1 if on_gpu and ray.cluster_resources().get("GPU") else 0  # Ray hides those that are not asked for
        self.work = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=3)(_work)
        self.running: dict[Job, Any] = {}

    def has_room(self) -> bool:
        return True  # Ray keeps the queue

    def start(self, job: Job, arguments: list[str]) -> None:
        self.running[job] = self.work.remote(os.getcwd(), str(job.folder), arguments, self.threads)

    def ended(self) -> dict[Job, Outcome]:
        jobs = {reference: job for job, reference in self.running.items()}
        ready, _ = self.ray.wait(list(jobs), num_returns=len(jobs), timeout=0) if jobs else ([], [])
        found = {jobs[reference]: self._outcome(reference) for reference in ready}
        for job in found:
            del self.running[job]
        return found

    def _outcome(self, reference: Any) -> Outcome:
        try:
            return Outcome(*self.ray.get(reference))
        except self.ray.exceptions.RayError as error:
            return Outcome(1, str(error).splitlines()[0])

    def stop(self) -> None:
        for reference in self.running.values():
            self.ray.cancel(reference, force=True)
        self.ray.shutdown()


def _process(folder: Path, arguments: list[str], threads: int, more: dict[str, str]) -> subprocess.Popen[bytes]:
    """A run in a process of its own, what it says in its folder's log."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOG).touch()
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out") from error
    command = [sys.executable, "-m", "cascaded", "train", *arguments, "--threads", str(threads)]
    own = {"OMP_NUM_THREADS": str(threads), WITH_PARENT: str(os.getpid())}
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **own, **more},
            start_new_session=True,  # Ctrl-C is for the sweep, which then asks its runs to stop
        )


def _work(home: str, folder: str, arguments: list[str], threads: int) -> tuple[int, str]:
    """What a machine of the cluster does, where the sweep was started: its exit code and the machine."""
    import ray  # pyright: ignore[reportMissingImports]

    os.chdir(home)  # names of folders mean the same there
    code = _process(Path(folder), arguments, threads, {}).wait()
    return code, f"node {ray.get_runtime_context().get_node_id()[:8]}"
