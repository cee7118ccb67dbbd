"""The paper's tables and figures, one experiment each: what is trained, recorded, measured and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cascaded import figures
from cascaded.data.noise import NOISES
from cascaded.errors import unknown
from cascaded.traces.config import RecordingConfig
from cascaded.training.method import METHODS, MethodName

SETS = ("cifar10", "cifar100", "tinyimagenet")
LAMBDAS = (0.0, 0.25, 0.5, 0.83, 1.0)
FOLDS = 10

COARSE = RecordingConfig()
SERIAL = RecordingConfig(schedule="serial")
FINE = RecordingConfig(kernel="ews:0.9", embeddings=True)
VALIDATION = replace(FINE, split="validation")
OOD = tuple(RecordingConfig(data="svhn", split=split, kernel="ews:0.9") for split in ("validation", "test"))
PERSISTENT = RecordingConfig(noise="occlusion", protocol="persistent")
TRANSIENT = RecordingConfig(noise="occlusion", protocol="transient")
EVERY_FRAME = tuple(replace(each, schedule="serial") for each in (PERSISTENT, TRANSIENT))
"""SerialCE x 9: every noisy frame is processed in full."""


@dataclass(frozen=True)
class Network:
    """A network of the paper; recipe and seeds are the scale's.

    Attributes:
        method: Training method.
        lam: Lambda of a TD method.
        data: Training data.
        noise: Noise that it is trained with.
        folds: Number of folds that it is cross-validated over; None if it is trained once.
        shipped: Name of a network that comes with the package and is not trained here.
        test_data: Data that it is tested on, if they are not `data`.
    """

    method: MethodName
    lam: float | None = None
    data: str = "cifar10"
    noise: str | None = None
    folds: int | None = None
    shipped: str | None = None
    test_data: str | None = None

    @property
    def part(self) -> str:
        """Folder of the networks that it is compared with: those of the same data and noise."""
        folds = None if self.folds is None else f"{self.folds}folds"
        return "-".join(word for word in (self.data, self.noise, folds) if word)

    @property
    def name(self) -> str:
        """Method and lambda, as its folder is called."""
        return self.shipped or self.method + ("" if self.lam is None else f"-lam{self.lam:g}")

    @property
    def is_serial(self) -> bool:
        """Whether it has no delays, so that its steps cannot be made finer."""
        return METHODS[self.method].schedule == "serial"


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: As on the command line.
        title: What it shows.
        place: Where it is in the paper.
        networks: What is trained for it at the paper's scale; a smaller scale leaves some out.
        recordings: What is recorded; the scale sets numbers of images, steps and trials.
        analyses: What is computed from the recordings.
        metrics: What its table contains.
        where: A pandas query that selects the rows of its table further.
        figures: Functions that draw rows of the results table.
        beside_paper: Whether its table is drawn beside the paper's values.
    """

    name: str
    title: str
    place: str
    networks: tuple[Network, ...]
    recordings: tuple[RecordingConfig, ...]
    analyses: tuple[str, ...]
    metrics: tuple[str, ...]
    where: str = ""
    figures: tuple[Callable[[pd.DataFrame], Any], ...] = ()
    beside_paper: bool = False


def _cascades(
    data: Sequence[str], lams: Sequence[float] = (0.0,), *, ce: bool = True, noise: str | None = None
) -> tuple[Network, ...]:
    """CascadedTD with some lambdas, and CascadedCE, on some data."""
    found: list[Network] = []
    for each in data:
        found += [Network("cascaded-td", lam, each, noise) for lam in lams]
        found += [Network("cascaded-ce", None, each, noise)] if ce else []
    return tuple(found)


SIX = tuple(
    network
    for data in SETS
    for network in (
        *_cascades((data,)),
        Network("cascaded-td-multihead", 0.0, data),
        Network("serial-td", 1.0, data),
        Network("serial-td-multihead", 1.0, data),
    )
)
"""The six models of the paper; SerialCE is the network of CascadedCE, run serially."""
NOISY = tuple(network for noise in NOISES for network in _cascades(("cifar10",), noise=noise))
TD_CE = _cascades(("cifar10",))
SPEED, COARSE_ONLY, FINE_ONLY = ("speed_accuracy",), "time == 'coarse'", "time == 'fine'"

_ALL = (
    Experiment(
        "table-lambda",
        "Final accuracy by lambda",
        "figure 3, appendix table",
        _cascades(SETS, LAMBDAS),
        (COARSE,),
        SPEED,
        ("accuracy",),
        COARSE_ONLY,
        (figures.lambda_effect,),
        beside_paper=True,
    ),
    Experiment(
        "speed-accuracy",
        "Speed and accuracy of six models with a confidence threshold",
        "figure 4",
        SIX,
        (COARSE, SERIAL),
        SPEED,
        ("area", "cost_to_95"),
        f"{COARSE_ONLY} and rule == 'threshold'",
        (figures.speed_accuracy,),
    ),
    Experiment(
        "deadline",
        "Accuracy per step: one deadline for all images",
        "appendix",
        SIX,
        (COARSE, SERIAL),
        SPEED,
        ("area", "cost_to_95"),
        f"{COARSE_ONLY} and rule == 'deadline'",
        (figures.accuracy_per_step,),
    ),
    Experiment(
        "serial-td0",
        "Serial networks trained with TD(0)",
        "appendix",
        tuple(Network("serial-td-multihead", lam, data) for data in SETS for lam in (0.0, 1.0))
        + _cascades(SETS, ce=False),
        (COARSE,),
        SPEED,
        ("accuracy", "area"),
        f"{COARSE_ONLY} and rule != 'deadline'",
        (figures.speed_accuracy,),
    ),
    Experiment(
        "images",
        "Images with low and high latency",
        "figure 2",
        _cascades(("cifar100",)),
        (FINE,),
        ("selection_latency",),
        ("latency", "theta"),
        FINE_ONLY,
        (figures.settled,),
    ),
    Experiment(
        "prototypicality",
        "Latency and prototypicality",
        "table 1",
        TD_CE + tuple(replace(network, folds=FOLDS) for network in TD_CE),
        (FINE, VALIDATION),
        ("prototypicality",),
        ("rho",),
        FINE_ONLY,
        (figures.prototypicality, figures.latency_by_decile),
        beside_paper=True,
    ),
    Experiment(
        "taxonomy",
        "The coarse class before the fine one",
        "figure 5",
        _cascades(("cifar100",)),
        (COARSE,),
        ("taxonomic_compliance",),
        ("first_step_at_0.35", "compliance_mean", "compliance_above_chance"),
        COARSE_ONLY,
        (figures.taxonomy,),
    ),
    Experiment(
        "noise-persistent",
        "Persistent noise",
        "table 2, left",
        NOISY,
        (PERSISTENT, EVERY_FRAME[0]),
        ("persistent_noise",),
        ("accuracy",),
        "",
        (figures.persistent_noise,),
        beside_paper=True,
    ),
    Experiment(
        "noise-transient",
        "Transient noise",
        "table 2, right",
        NOISY,
        (TRANSIENT, EVERY_FRAME[1]),
        ("transient_noise",),
        ("dip",),
        "",
        (figures.target_confidence,),
        beside_paper=True,
    ),
    Experiment(
        "ood",
        "Out-of-distribution images detected from the outputs of all steps",
        "figure 7, appendix table",
        _cascades(("cifar10",), ce=False),
        (FINE, VALIDATION, *OOD),
        ("out_of_distribution",),
        ("auroc", "fpr95"),
        "ood_data == 'mean'",
        (figures.ood,),
        beside_paper=True,
    ),
    Experiment(
        "stopping",
        "When to stop: learned stopper, confidence threshold, deadline",
        "appendix",
        _cascades(("cifar10",), ce=False),
        (FINE, VALIDATION),
        ("learned_stopper",),
        ("area",),
        "",
        (figures.stopping_rules,),
    ),
    Experiment(
        "terriers",
        "Ten breeds of terriers in high resolution",
        "appendix",
        (*_cascades(("terriers",), (0.0, 0.55, 1.0), ce=False), Network("serial-td-multihead", 1.0, "terriers")),
        (COARSE,),
        SPEED,
        ("accuracy", "cost_to_accuracy_50"),
        f"{COARSE_ONLY} and rule != 'deadline'",
        (figures.speed_accuracy, figures.accuracy_per_step),
        beside_paper=True,
    ),
    Experiment("run-time", "Training time", "appendix table", TD_CE, (), ("run_time",), ("training_hours",)),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
CLAIMS, ALL = "claims", "all"
"""What `cascaded reproduce` accepts besides the names of experiments."""

SHIPPED: dict[str, tuple[MethodName, float | None]] = {
    "cifar10-td0": ("cascaded-td", 0.0),
    "cifar10-td1": ("cascaded-td", 1.0),
    "cifar10-ce": ("cascaded-ce", None),
    "cifar10-shallow-deep": ("serial-td-multihead", 1.0),
}
"""The networks of the package that the demo evaluates."""
DEMO_NETWORKS = tuple(
    Network(method, lam, "cifar10", shipped=name, test_data="cifar10-sample") for name, (method, lam) in SHIPPED.items()
)
DEMO = Experiment(
    "demo",
    "Networks that come with the package on 1,000 photographs, and one that is trained here",
    "",
    (*DEMO_NETWORKS, Network("cascaded-td", 0.0, "digits")),
    (replace(COARSE, activations=20), FINE, VALIDATION, *OOD, PERSISTENT, TRANSIENT),
    (
        *("speed_accuracy", "selection_latency", "prototypicality", "persistent_noise", "transient_noise"),
        *("out_of_distribution", "run_time"),
    ),
    ("accuracy",),
    COARSE_ONLY,
)


def find_experiment(name: str) -> Experiment:
    """An experiment by name."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, [*EXPERIMENTS, CLAIMS, ALL])
    return EXPERIMENTS[name]
