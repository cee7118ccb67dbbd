"""Scales of a reproduction: the paper's own, for GPUs; one for a laptop; the demo; and a smoke test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cascaded.paper.experiments import Experiment, Network
from cascaded.traces.config import RecordingConfig
from cascaded.training.config import RECIPES, RunConfig

TERRIER_BATCH = 32  # 224 px: larger batches would not fit
BRIEF = RunConfig(lr_schedule="one-cycle", warmup_fraction=0.2, cutout=0)
"""What the smoke test and the demo have in common; the laptop recipe is chosen for CIFAR and much longer trainings."""


@dataclass(frozen=True)
class Scale:
    """Numbers of networks, seeds, images and epochs.

    Attributes:
        name: As on the command line.
        about: What it is for.
        recipe: What networks are trained with.
        seeds: Of the networks that claims are about.
        other_seeds: Of all other networks.
        main: Names of the networks that claims are about; empty for all.
        networks: By training data, names of the networks that are trained; empty for all. Other data are left out.
        noises: Noises that networks are trained with; None for all.
        noise_changes: Fields of the recipe that differ for networks that are trained with noise.
        noise_from_clean: Whether those start from the weights of the network that is trained without noise.
        cross_validate: Whether networks are cross-validated; otherwise the validation split stands in for it.
        ood_data: Out-of-distribution data.
        max_images: Number of test images in coarse time; None for all.
        fine_images: Number of test images in fine time.
        fine_steps: Number of fine steps.
        validation_images: Number of validation images.
        ood_images: Number of out-of-distribution images per data set and split.
        noise_images: Number of test images under noise.
        trials: How often each of those is presented.
        fit_epochs: Training epochs of the stopper and of MetaCog.
    """

    name: str
    about: str
    recipe: RunConfig
    seeds: tuple[int, ...] = (0,)
    other_seeds: tuple[int, ...] = (0,)
    main: tuple[str, ...] = ()
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    noises: tuple[str, ...] | None = None
    noise_changes: Mapping[str, Any] = field(default_factory=dict)
    noise_from_clean: bool = False
    cross_validate: bool = False
    ood_data: tuple[str, ...] = ()
    max_images: int | None = None
    fine_images: int | None = None
    fine_steps: int = 70
    validation_images: int | None = None
    ood_images: int | None = None
    noise_images: int | None = None
    trials: int = 5
    fit_epochs: int = 300

    def has(self, network: Network) -> bool:
        """Whether a network is part of this scale."""
        chosen = self.networks.get(network.data)
        if chosen is None or (network.folds and not self.cross_validate):
            return False
        if network.noise and self.noises is not None and network.noise not in self.noises:
            return False
        return not chosen or network.name in chosen

    def seeds_of(self, network: Network) -> tuple[int, ...]:
        """The seeds that a network is trained with."""
        is_main = not network.noise and (not self.main or network.name in self.main)
        return self.seeds if is_main else self.other_seeds

    def config(self, network: Network, seed: int = 0) -> RunConfig:
        """The configuration of a network; the weights that it may start from are not in it."""
        changes = dict(self.noise_changes) if network.noise else {}
        if network.data == "terriers":
            changes["batch_size"] = min(self.recipe.batch_size, TERRIER_BATCH)
        about = {name: getattr(network, name) for name in ("data", "method", "lam", "noise", "arch")}
        return replace(self.recipe, **about, seed=seed, **changes)

    def recordings(self, network: Network, experiment: Experiment) -> list[RecordingConfig]:
        """What is recorded of a network for an experiment, each once."""
        found = [each for config in experiment.recordings for each in self._recordings(config, network)]
        return list(dict.fromkeys(found))

    def _recordings(self, config: RecordingConfig, network: Network) -> list[RecordingConfig]:
        fine = config.time == "fine"
        if network.folds and (config.split != "validation" or config.data):  # a fold has no test images
            return []
        if config.schedule == "serial" and network.method != "cascaded-ce":  # SerialCE has the weights of CascadedCE
            return []
        if fine and network.is_serial:
            return []
        if config.noise:
            sized = replace(config, noise=network.noise or config.noise, trials=self.trials)
            return [replace(sized, max_images=self.noise_images, data=network.test_data)]
        sized = replace(config, steps=config.steps or self.fine_steps) if fine else config
        if config.data:
            sized = replace(sized, max_images=self.ood_images)
            return [
                replace(sized, data=data) for data in self.ood_data if data not in (network.data, network.test_data)
            ]
        images = self.fine_images if fine else self.max_images
        images = self.validation_images if config.split == "validation" else images
        return [replace(sized, max_images=images, data=network.test_data)]


LAPTOP = Scale(
    "laptop",
    "ResNet-18 of width 16 in a few epochs, one or two seeds; for two cores",
    RECIPES["laptop"],
    seeds=(0, 1),
    other_seeds=(0,),
    main=("cascaded-td-lam0", "cascaded-td-lam1", "cascaded-ce"),
    networks={"cifar10": (), "cifar100": ("cascaded-td-lam0", "cascaded-td-lam1", "cascaded-ce"), "terriers": ()},
    noise_changes={"epochs": 1, "lr": 0.03},
    noise_from_clean=True,
    ood_data=("svhn", "tinyimagenet-resize"),
    fine_images=2000,
    noise_images=1000,
    trials=1,
    fit_epochs=100,
)
PAPER = Scale(
    "paper",
    "the paper's recipe: ResNet-18, 120 epochs, five seeds; for GPUs",
    RECIPES["paper"],
    seeds=(0, 1, 2, 3, 4),
    other_seeds=(0, 1, 2, 3, 4),
    networks={"cifar10": (), "cifar100": (), "tinyimagenet": (), "terriers": ()},
    cross_validate=True,
    ood_data=("svhn", "lsun-crop", "lsun-resize", "tinyimagenet-crop", "tinyimagenet-resize"),
)
SMOKE = replace(
    LAPTOP,
    name="smoke",
    about="everything runs and hardly anything is learned: 64 images, one epoch, one seed; a test of the installation",
    recipe=replace(BRIEF, width=4, epochs=1, batch_size=32, max_images=64),
    seeds=(0,),
    noises=("focus", "occlusion"),
    noise_changes={"lr": 0.03},
    max_images=64,
    fine_images=64,
    fine_steps=30,
    validation_images=64,
    ood_images=64,
    noise_images=10,
    fit_epochs=5,
)
SCALES: dict[str, Scale] = {scale.name: scale for scale in (LAPTOP, PAPER, SMOKE)}
DEMO_SCALE = Scale(
    "demo",
    "networks that come with the package, and one that is trained in a minute",
    replace(BRIEF, width=16, epochs=40, batch_size=64, lr=0.08),
    networks={"cifar10": (), "digits": ()},
    ood_data=("digits",),
    fine_images=200,
    validation_images=100,
    ood_images=100,
    noise_images=100,
    trials=1,
    fit_epochs=30,
)
QUICK_DEMO = replace(
    DEMO_SCALE,
    recipe=replace(DEMO_SCALE.recipe, width=4, epochs=1, max_images=128),
    max_images=40,
    fine_images=40,
    fine_steps=12,
    validation_images=40,
    ood_images=40,
    noise_images=10,
    fit_epochs=2,
)
"""Everything happens, and hardly anything is learned."""
