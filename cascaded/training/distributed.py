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

from cascaded.cascade.network import Cascade
from cascaded.cascade.norm import TimeBatchNorm
from cascaded.errors import InputError


@dataclass(frozen=True)
class Team:
    """This process among those that train one network; alone it is the first of one."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process speaks, validates and writes."""
        return self.rank == 0

    def share(self, items: Tensor) -> Tensor:
        """This process's part of a batch."""
        return items.chunk(self.size)[self.rank] if self.size > 1 else items

    @contextmanager
    def together(self) -> Iterator[None]:
        """Do something that may be refused: what one process refuses, all do, and none waits for one that has left."""
        refused: str | None = None
        try:
            yield
        except InputError as error:
            if self.size == 1:
                raise
            refused = str(error)
        if self.size > 1:
            all_told: list[str | None] = [None] * self.size
            distributed.all_gather_object(all_told, refused)
            if told := next(filter(None, all_told), None):
                raise InputError(told)

    def mean(self, value: Tensor) -> float:
        """The mean of a number over all processes."""
        value = value.detach()
        if self.size > 1:
            value = value.clone()
            distributed.all_reduce(value)
        return value.item() / self.size

    def hand_out(self, content: bytes | None) -> bytes:
        """What the leader has read, in every process: folders need not be shared between machines."""
        if self.size == 1:
            return content or b""
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        length = torch.tensor([len(content or b"")], device=device)
        distributed.broadcast(length, src=0)
        told = torch.zeros(int(length), dtype=torch.uint8, device=device)
        if content:
            told.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        distributed.broadcast(told, src=0)
        return told.cpu().numpy().tobytes()


@contextmanager
def team(device: torch.device) -> Iterator[Team]:
    """Join the processes that `torchrun` started, or be alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team()
        return
    # while one validates or decodes, the others wait
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=6))
    try:
        yield Team(distributed.get_rank(), size)
        distributed.barrier()  # who leaves first would leave the others waiting
    finally:
        distributed.destroy_process_group()


def share_statistics(net: Cascade) -> None:
    """Have the batch norms of all processes see one batch."""
    for module in net.modules():
        if isinstance(module, TimeBatchNorm):
            module.shared = True


def averaging(learner: nn.Module) -> DistributedDataParallel:
    """A module whose gradients are averaged over the processes.

    Statistics are left alone: they grow with the steps that are seen, the leader's are saved, and all are equal where
    they are shared.
    """
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its name before
    untouched: dict[str, Any] = {name: False}
    return DistributedDataParallel(learner, **untouched)


def use_threads(threads: int | None) -> None:
    """Set the number of CPU threads of torch; None leaves it as it is."""
    if threads is not None and threads < 1:
        raise InputError(f"--threads is {threads}: give at least 1")
    if threads is not None:
        torch.set_num_threads(threads)


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu`, `cuda`, `cuda:1`, `mps`: one that is there."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.split(":")[0] not in ("cpu", "cuda", "mps"):
        raise InputError(f"--device is {name}: say auto, cpu, cuda, cuda:1 or mps")
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        told = str(error).splitlines()[0][:100]
        raise InputError(f"--device is {name}, which is not to be had here ({told}): say --device cpu") from error
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device
