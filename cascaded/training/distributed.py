"""Several processes that train one network: `torchrun --nproc-per-node N -m cascaded train ...`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from cascaded.cascade.norm import TimeBatchNorm
from cascaded.errors import InputError, at_least
from cascaded.models.classifier import Classifier
from cascaded.models.networks import Network


@dataclass(frozen=True)
class Distributed:
    """This process among those that train one network; a single process has rank 0 of 1."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process prints, validates and writes."""
        return self.rank == 0

    def share(self, items: Tensor) -> Tensor:
        """This process's part of a batch."""
        return items.chunk(self.size)[self.rank] if self.size > 1 else items

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """If one process raises an `InputError`, all do, so that none waits for a process that has ended."""
        error: str | None = None
        try:
            yield
        except InputError as raised:
            if self.size == 1:
                raise
            error = str(raised)
        if self.size > 1:
            errors: list[str | None] = [None] * self.size
            distributed.all_gather_object(errors, error)
            if first := next(filter(None, errors), None):
                raise InputError(first)

    def mean(self, value: Tensor) -> float:
        """The mean of a number over all processes."""
        value = value.detach()
        if self.size > 1:
            value = value.clone()
            distributed.all_reduce(value)
        return value.item() / self.size

    def broadcast(self, content: bytes | None) -> bytes:
        """Bytes of the main process, in every process: folders need not be shared between machines."""
        if self.size == 1:
            return content or b""
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        length = torch.tensor([len(content or b"")], device=device)
        distributed.broadcast(length, src=0)
        received = torch.zeros(int(length), dtype=torch.uint8, device=device)
        if content:
            received.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        distributed.broadcast(received, src=0)
        return received.cpu().numpy().tobytes()


@contextmanager
def join_processes(device: torch.device) -> Iterator[Distributed]:
    """Join the processes that `torchrun` started; without torchrun there is only this one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Distributed()
        return
    # while one validates or decodes images, the others wait
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=6))
    try:
        yield Distributed(distributed.get_rank(), size)
        distributed.barrier()  # a process that ends early would leave the others waiting
    finally:
        distributed.destroy_process_group()


def check_shared(net: Network, processes: Distributed) -> None:
    """Refuse several processes for a converted model whose batch statistics would be shared."""
    if processes.size > 1 and isinstance(net, Classifier) and any(net.statistics.children()):
        raise InputError(
            f"{type(net.model).__name__} is a converted model, whose batch statistics are those of a process, there "
            f"are {processes.size} processes: add --no-sync-norm, or use one process"
        )


def share_statistics(net: Network) -> None:
    """Compute the batch statistics of all norms over all processes."""
    for module in net.modules():
        if isinstance(module, TimeBatchNorm):
            module.shared = True


_GROUPS: list[distributed.ProcessGroup | None] = []
"""Process groups of wrapped modules, kept until the process ends.

The destructor of a gloo group joins its threads, and such a thread may need Python's lock (the GIL) to release its last
operation. `ProcessGroup` releases the lock while it is destroyed. `DistributedDataParallel`'s reducer does not (torch
2.13): if it has the last reference, the process hangs, about once in five trainings on a busy machine.
"""


def wrap_ddp(module: nn.Module) -> DistributedDataParallel:
    """A module whose gradients are averaged over the processes.

    Buffers are not synchronized: norm statistics grow with the number of steps seen, those of the main process are
    saved, and all are equal if they are shared.
    """
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its name before
    untouched: dict[str, Any] = {name: False}
    wrapped = DistributedDataParallel(module, **untouched)
    _GROUPS.append(wrapped.process_group)
    return wrapped


def be_deterministic() -> None:
    """Refuse operations whose result may differ from run to run, in this process."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
    torch.use_deterministic_algorithms(True)


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu`, `cuda`, `cuda:1` or `mps`, if it is available."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.split(":")[0] not in ("cpu", "cuda", "mps"):
        raise InputError(f"--device is {name}: give auto, cpu, cuda, cuda:1 or mps")
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0][:100]
        raise InputError(f"--device is {name}, which is not available here ({reason}): use --device cpu") from error
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def use_threads(threads: int | None) -> None:
    """Set the number of CPU threads; None leaves torch's own."""
    at_least(1, threads=threads)
    if threads is not None:
        torch.set_num_threads(threads)
