"""Two scales, one code: the paper's own, for GPUs, and one that fits two cores of a laptop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cascaded.errors import InputError
from cascaded.paper.network import Network
from cascaded.training.config import RECIPES, RunConfig

ScaleName = Literal["laptop", "paper"]
FINE = "ews:0.9"


@dataclass(frozen=True)
class Scale:
    """How large everything is.

    Attributes:
        name: What it is called; a recipe of that name is what networks are trained with.
        about: What it is for.
        seeds: Of the networks that claims rest on.
        others: Seeds of all other networks.
        resting: Which networks claims rest on, by name; empty for all.
        networks: By data, which of its networks are trained, by name; empty for all. Data that are not named are left
            out.
        with_noise: What is different for networks that learn a noise: other epochs, another rate.
        starts: Whether these begin with the weights of the network that has learned without noise.
        crossval: Whether networks are cross-validated; otherwise the images held out of training stand in for it.
        outside: Images of another kind.
        test: How many test images are shown in whole steps; None for all.
        fine: How many in fine time.
        steps: How many fine steps.
        held_out: How many images that were held out of training.
        other: How many images of another kind.
        noisy: How many images under noise.
        trials: How often each of those.
        learned: For how many epochs stopper and MetaCog learn from traces.
        changes: Other options of all networks: fewer images, fewer epochs.
    """

    name: ScaleName
    about: str
    seeds: tuple[int, ...]
    others: tuple[int, ...]
    resting: tuple[str, ...] = ()
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    with_noise: Mapping[str, Any] = field(default_factory=dict)
    starts: bool = False
    crossval: bool = False
    outside: tuple[str, ...] = ()
    test: int | None = None
    fine: int | None = None
    steps: int = 70
    held_out: int | None = None
    other: int | None = None
    noisy: int | None = None
    trials: int = 5
    learned: int = 300
    changes: Mapping[str, Any] = field(default_factory=dict)

    def has(self, network: Network) -> bool:
        """Whether a network is trained at this scale."""
        chosen = self.networks.get(network.data)
        if chosen is None or (network.folds and not self.crossval):
            return False
        return not chosen or network.name in chosen

    def seeds_of(self, network: Network) -> tuple[int, ...]:
        """The seeds that a network is trained with."""
        rests = not network.noise and (not self.resting or network.name in self.resting)
        return self.seeds if rests else self.others

    def config(self, network: Network) -> RunConfig:
        """Data and recipe of a network."""
        config = replace(RECIPES[self.name], data=network.data, noise=network.noise)
        if network.noise:
            config = replace(config, **self.with_noise)
        if network.data == "terriers":  # 224 px: a larger batch would not fit
            config = replace(config, batch_size=32)
        return replace(config, **self.changes)

    def smaller(
        self,
        *,
        data_limit: int | None = None,
        epochs: int | None = None,
        width: int | None = None,
        seeds: tuple[int, ...] = (),
    ) -> Scale:
        """The same with fewer images, epochs, channels or seeds: everything happens, and less is learned."""
        for name, value in {"data-limit": data_limit, "epochs": epochs, "width": width}.items():
            if value is not None and value < 1:
                raise InputError(f"--{name} is {value}: give at least 1")
        told = {"epochs": epochs, "width": width, "max_images": data_limit}
        if data_limit is not None and data_limit < 64:
            told["batch_size"] = max(2, data_limit // 2)
        changes = {**self.changes, **{name: value for name, value in told.items() if value is not None}}
        made = replace(self, changes=changes, seeds=seeds or self.seeds, others=seeds or self.others)
        if data_limit is None:
            return made
        films = max(10, data_limit // 10)  # they take longest
        most = {**dict.fromkeys(("test", "fine", "held_out", "other"), data_limit), "noisy": films}
        sizes = {name: min(getattr(self, name) or limit, limit) for name, limit in most.items()}
        return replace(made, **sizes, learned=min(self.learned, 5), steps=min(self.steps, 30), trials=1)


SCALES: dict[str, Scale] = {
    "paper": Scale(
        "paper",
        "the paper's recipe: ResNet-18, 120 epochs, five seeds; for GPUs",
        seeds=(0, 1, 2, 3, 4),
        others=(0, 1, 2, 3, 4),
        networks={"cifar10": (), "cifar100": (), "tinyimagenet": (), "terriers": ()},
        crossval=True,
        outside=("svhn", "lsun-crop", "lsun-resize", "tinyimagenet-crop", "tinyimagenet-resize"),
    ),
    "laptop": Scale(
        "laptop",
        "ResNet-18 of width 16 in a few epochs, one or two seeds; for two cores",
        seeds=(0, 1),
        others=(0,),
        resting=("cascaded-td-lam0", "cascaded-td-lam1", "cascaded-ce"),
        networks={
            "cifar10": (),
            "cifar100": ("cascaded-td-lam0", "cascaded-td-lam1", "cascaded-ce"),
            "terriers": (),
        },
        with_noise={"epochs": 1, "lr": 0.03},
        starts=True,
        outside=("svhn", "tinyimagenet-resize"),
        fine=2000,
        noisy=1000,
        trials=1,
        learned=100,
    ),
}
