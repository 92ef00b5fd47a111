"""The processes of a run: one, or those that torchrun starts.

    torchrun --nproc-per-node 4 -m finpile_cli model train my/train.yaml

Each process has a copy of the model and trains on its part of each batch; gradients are averaged by PyTorch's
DistributedDataParallel, over gloo between CPUs and NCCL between GPUs. The first process writes all files.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from finpile.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Processes:
    """This process and the number of all."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    """Rank on this machine: the number of its GPU."""

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """The device of this process."""
        return torch.device("cuda", self.local_rank) if device.type == "cuda" and self.world_size > 1 else device

    def parallel(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over all processes."""
        if self.world_size == 1:
            return model
        return nn.parallel.DistributedDataParallel(model)

    def sum(self, values: Mapping[str, float], device: torch.device) -> dict[str, float]:
        """The sum of each value over all processes, in float64."""
        if self.world_size == 1:
            return dict(values)
        total: Tensor = torch.tensor(list(values.values()), dtype=torch.float64, device=device)
        dist.all_reduce(total)
        return dict(zip(values, total.tolist(), strict=True))

    def wait(self) -> None:
        """Returns when all processes have called it."""
        if self.world_size > 1:
            dist.barrier()


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """The processes that torchrun has started, connected; otherwise this one."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield Processes()
        return
    if missing := [name for name in names if name not in os.environ]:
        raise ConfigError(f"WORLD_SIZE is set and {', '.join(missing)} is not: start the run with torchrun")
    rank, world_size, local_rank = (int(os.environ[name]) for name in names)
    if device.type == "cuda":
        torch.cuda.set_device(local_rank)
    _import_default_groups()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(rank, world_size, local_rank)
        dist.barrier()  # a process that leaves first breaks the connections of the others, which gloo answers by abort
    finally:
        dist.destroy_process_group()


def _import_default_groups() -> None:
    """Imports the functions of PyTorch whose default arguments are the process group at the time of the import.

    DistributedDataParallel imports them. If it is the first to do so, they hold the group for ever: its threads outlive
    `destroy_process_group`, and one that releases a tensor while the interpreter ends aborts the process.
    Source: https://github.com/pytorch/pytorch/issues/190489
    """
    importlib.import_module("torch.distributed.nn.functional")
