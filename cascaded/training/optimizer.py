"""The optimizer of a run, and its state by the names of parameters, as checkpoints contain it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from cascaded.models.networks import Network
from cascaded.training.config import RunConfig
from cascaded.training.step import parameter_groups

BUFFERS = {"sgd": {"momentum_buffer": ""}, "adamw": {"exp_avg": "mean.", "exp_avg_sq": "square."}}
"""What each optimizer keeps of a parameter, and how the name begins under which it is saved."""


def make_optimizer(config: RunConfig, net: Network) -> torch.optim.Optimizer:
    """The optimizer of a configuration, for all parameters of a network."""
    groups = parameter_groups(net, config.decay_norms)
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, config.lr, weight_decay=config.weight_decay)
    return torch.optim.SGD(
        groups,
        config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        nesterov=config.nesterov and config.momentum > 0,
    )


def get_state(optimizer: torch.optim.Optimizer, kind: str, net: nn.Module) -> dict[str, Tensor]:
    """What an optimizer has gathered over steps: momentum, or Adam's averages."""
    found = {
        f"{prefix}{name}": optimizer.state[parameter].get(key)
        for name, parameter in net.named_parameters()
        for key, prefix in BUFFERS[kind].items()
    }
    return {name: buffer for name, buffer in found.items() if buffer is not None}


def set_state(
    optimizer: torch.optim.Optimizer, kind: str, net: nn.Module, saved: Mapping[str, Tensor], steps: int
) -> None:
    """Continue from a saved state.

    Args:
        optimizer: A new optimizer of the network.
        kind: The optimizer's name in the configuration.
        net: The network.
        saved: From `get_state`.
        steps: Steps done, which Adam needs to correct its averages.
    """
    for name, parameter in net.named_parameters():
        for key, prefix in BUFFERS[kind].items():
            if f"{prefix}{name}" in saved:
                optimizer.state[parameter][key] = torch.empty_like(parameter).copy_(saved[f"{prefix}{name}"])
                if kind == "adamw":
                    optimizer.state[parameter]["step"] = torch.tensor(float(steps))
