"""The paper's tables and figures, one experiment each: what is trained, recorded, measured and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cascaded import figures
from cascaded.errors import unknown
from cascaded.paper.statements import ALPHAS
from cascaded.results.operations import FRACTIONS
from cascaded.traces.config import RecordingConfig
from cascaded.traces.stimuli import human_recordings
from cascaded.training.config import Arch
from cascaded.training.method import METHODS, MethodName

SETS = ("cifar10", "cifar100", "tinyimagenet")
LAMBDAS = (0.0, 0.25, 0.5, 0.83, 1.0)
NOISES = ("focus", "perlin", "occlusion", "resolution", "translation", "rotation")
"""Those of `cascaded.data.noise`, which imports torch; nothing else does that draws stored rows."""
TERRIER_LAMBDAS = (0.0, 0.25, 0.5, 0.55, 0.83, 1.0)
FOLDS = 10

COARSE = RecordingConfig()
SERIAL = RecordingConfig(schedule="serial")
FINE = RecordingConfig(kernel="ews:0.9", embeddings=True)
VALIDATION = replace(FINE, split="validation")
SLOWER_AND_FASTER = tuple(  # steps in proportion to the time constant: 70 for alpha .9
    replace(config, kernel=f"ews:{alpha}", steps=round(7 / (1 - alpha)))
    for alpha in ALPHAS
    for config in (FINE, VALIDATION)
)
OOD = tuple(RecordingConfig(data="svhn", split=split, kernel="ews:0.9") for split in ("validation", "test"))
PERSISTENT = RecordingConfig(noise="occlusion", protocol="persistent")
TRANSIENT = RecordingConfig(noise="occlusion", protocol="transient")


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
        arch: Network architecture.
        recipe: Name of the recipe that it is trained with; None for the scale's.
        changes: Fields of the recipe that differ, with their values.
        start: The network whose weights it starts from.
        from_scratch: Of a network with noise: start from random weights although the scale starts from clean networks.
    """

    method: MethodName
    lam: float | None = None
    data: str = "cifar10"
    noise: str | None = None
    folds: int | None = None
    shipped: str | None = None
    test_data: str | None = None
    arch: Arch = "resnet18"
    recipe: str | None = None
    changes: tuple[tuple[str, Any], ...] = ()
    start: Network | None = None
    from_scratch: bool = False

    @property
    def part(self) -> str:
        """Folder of the networks that it is compared with: those of the same data, noise, architecture and recipe."""
        folds = None if self.folds is None else f"{self.folds}folds"
        noise = self.noise and self.noise.partition(":")[0]
        arch = None if self.arch == "resnet18" else self.arch
        scratch = "scratch" if self.from_scratch else None
        return "-".join(word for word in (self.data, noise, scratch, arch, self.recipe, folds) if word)

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
        networks: What is trained for it at the paper's scale; a smaller scale leaves some out.
        recordings: What is recorded; the scale sets numbers of images, steps and trials.
        analyses: What is computed from the recordings.
        metrics: What its table contains.
        where: A pandas query that selects the rows of its table further.
        figures: Functions that draw rows of the results table.
        beside_paper: Whether its table is drawn beside the paper's values.
    """

    name: str
    networks: tuple[Network, ...]
    recordings: tuple[RecordingConfig, ...] = (COARSE,)
    analyses: tuple[str, ...] = ("speed_accuracy",)
    metrics: tuple[str, ...] = ("accuracy",)
    where: str = ""
    figures: tuple[Callable[[pd.DataFrame], Any], ...] = ()
    beside_paper: bool = False

    @property
    def title(self) -> str:
        """What it shows, and where it is in the paper."""
        return TITLES[self.name]


def cascades(
    *data: str, lams: Sequence[float] = (0.0,), ce: bool = True, noise: str | None = None
) -> tuple[Network, ...]:
    """CascadedTD with some lambdas, and CascadedCE, on some data."""
    td = [Network("cascaded-td", lam, each, noise) for each in data for lam in lams]
    return (*td, *(Network("cascaded-ce", None, each, noise) for each in data if ce))


TD, TD_CE = cascades("cifar10", ce=False), cascades("cifar10")
CIFAR100 = cascades("cifar100")
NOISY = tuple(network for noise in NOISES for network in cascades("cifar10", noise=noise))
SCRATCH = tuple(replace(network, from_scratch=True) for network in cascades("cifar10", noise="occlusion"))
STRONG_CE = Network("cascaded-ce", recipe="strong")
STRONG = (
    STRONG_CE,
    Network("cascaded-td", 0.0, recipe="strong", changes=(("epochs", 6), ("lr", 0.05)), start=STRONG_CE),
)
MULTIHEAD = tuple(Network("serial-td-multihead", 1.0, data) for data in SETS)
SIX = (
    *cascades(*SETS),
    *(Network("cascaded-td-multihead", 0.0, data) for data in SETS),
    *(Network("serial-td", 1.0, data) for data in SETS),
    *MULTIHEAD,
)
"""The six models of the paper; SerialCE is the network of CascadedCE, run serially."""


def eight(data: str) -> tuple[Network, ...]:
    """The networks that most claims are about; SerialCE is the network of CascadedCE."""
    shallow_deep = (Network("serial-td-multihead", lam, data) for lam in (1.0, 0.0))
    others = (Network("serial-td", 1.0, data), Network("cascaded-td-multihead", 0.0, data))
    return (*cascades(data, lams=(0.0, 0.5, 1.0)), *shallow_deep, *others)


TITLES = {
    "table-lambda": "Final accuracy by lambda (figure 3, appendix table of the paper)",
    "speed-accuracy": "Speed and accuracy of six models with a confidence threshold (figure 4 of the paper)",
    "deadline": "Accuracy per step: one deadline for all images (appendix of the paper)",
    "serial-td0": "Serial networks trained with TD(0) (appendix of the paper)",
    "images": "Images with low and high latency (figure 2, appendix figure of the paper)",
    "prototypicality": "Latency and prototypicality (table 1 of the paper)",
    "taxonomy": "The coarse class before the fine one (figure 5 of the paper)",
    "noise-persistent": "Persistent noise (table 2, left of the paper)",
    "noise-transient": "Transient noise (table 2, right of the paper)",
    "noise-scratch": "Networks trained with noise from random weights, instead of from a clean network",
    "ood": "Out-of-distribution images detected from the outputs of all steps (figure 7, appendix table of the paper)",
    "stopping": "When to stop: learned stopper, confidence threshold, deadline (appendix of the paper)",
    "alpha": "Latency and prototypicality with other smoothing (text of the paper)",
    "depth": "ResNet-34 beside ResNet-18 (appendix of the paper)",
    "terriers": "Ten breeds of terriers in high resolution (appendix of the paper)",
    "strong": "Wider networks with the strong recipe: cross-entropy, then TD(0) from its weights",
    "human": "Networks beside people who had to answer at a deadline",
    "human-augmented": "The same for networks that were trained with gray, noisy and blurred images",
    "run-time": "Training time (appendix table of the paper)",
    "demo": "Networks that come with the package on 1,000 photographs, and one that is trained here",
}
CROSS_VALIDATED = tuple(replace(network, folds=FOLDS) for network in TD_CE)
SERIAL_TD = (*(replace(each, lam=0.0) for each in MULTIHEAD), *MULTIHEAD, *cascades(*SETS, ce=False))
TERRIERS = (*cascades("terriers", lams=TERRIER_LAMBDAS, ce=False), Network("serial-td-multihead", 1.0, "terriers"))
DEPTHS = (*TD_CE, *(replace(network, arch="resnet34") for network in TD_CE))
AS_SHOWN = tuple(  # trained with what people were shown: gray images, any noise with any blur
    replace(each, noise="gray:sd=0+0.04+0.16,sigma=0+1+3") for each in (*TD_CE, Network("serial-td-multihead", 1.0))
)
COMPLIANCE = ("first_step_at_0.35", "compliance_mean", "compliance_above_chance")
SPEED, COSTS, HALF = ("speed_accuracy",), ("area", "cost_to_95", *FRACTIONS), ("accuracy", "cost_to_accuracy_50")
AUROC, MEAN = ("auroc", "fpr95"), "ood_data == 'mean'"
CURVES, STEPS = (figures.speed_accuracy,), figures.accuracy_per_step
BESIDE_PEOPLE = (figures.human_curves, figures.human_fit, figures.human_categories)
BY_DEADLINE = "manipulation == 'noise+blur+color' and level.isna() and rule != 'threshold' and unit != 'operations'"
LIKENESS = ("fit_error", "curve_correlation", "category_correlation", "confusion_similarity_late")
TYPICALITY = (figures.prototypicality, figures.latency_by_decile)

_ALL = (
    Experiment("table-lambda", cascades(*SETS, lams=LAMBDAS), figures=(figures.lambda_effect,), beside_paper=True),
    Experiment("speed-accuracy", SIX, (COARSE, SERIAL), SPEED, COSTS, "rule == 'threshold'", CURVES),
    Experiment("deadline", SIX, (COARSE, SERIAL), SPEED, COSTS, "rule == 'deadline'", (STEPS,)),
    Experiment("serial-td0", SERIAL_TD, (COARSE,), SPEED, ("accuracy", "area"), "rule != 'deadline'", CURVES),
    Experiment(
        "images", CIFAR100 + TD_CE, (FINE,), ("selection_latency",), ("latency", "theta"), "", (figures.settled,)
    ),
    Experiment(
        "prototypicality",
        (*TD_CE, *CROSS_VALIDATED),
        (FINE, VALIDATION),
        ("prototypicality",),
        ("rho",),
        "",
        TYPICALITY,
        True,
    ),
    Experiment("taxonomy", CIFAR100, (COARSE,), ("taxonomic_compliance",), COMPLIANCE, "", (figures.taxonomy,)),
    *(
        Experiment(name, NOISY, (config, replace(config, schedule="serial")), analysis, (metric,), "", (draw,), True)
        for name, config, analysis, metric, draw in (
            ("noise-persistent", PERSISTENT, ("persistent_noise",), "accuracy", figures.persistent_noise),
            ("noise-transient", TRANSIENT, ("transient_noise",), "dip", figures.target_confidence),
        )
    ),
    Experiment(
        "noise-scratch",
        SCRATCH,
        (PERSISTENT, replace(PERSISTENT, schedule="serial"), TRANSIENT, replace(TRANSIENT, schedule="serial")),
        ("persistent_noise", "transient_noise"),
        ("accuracy", "dip"),
    ),
    Experiment("ood", TD, (FINE, VALIDATION, *OOD), ("out_of_distribution",), AUROC, MEAN, (figures.ood,), True),
    Experiment("stopping", TD_CE, (FINE, VALIDATION), ("learned_stopper",), ("area",), "", (figures.stopping_rules,)),
    Experiment("terriers", TERRIERS, (COARSE,), SPEED, HALF, "rule != 'deadline'", (*CURVES, STEPS), True),
    Experiment("alpha", TD_CE, SLOWER_AND_FASTER, ("prototypicality",), ("rho",)),
    Experiment("depth", DEPTHS, (COARSE,), SPEED, ("accuracy", "area"), "rule != 'deadline'"),
    Experiment("strong", STRONG, (COARSE, SERIAL), SPEED, ("accuracy", "area"), "rule != 'deadline'", (STEPS,), True),
    *(
        Experiment(name, networks, human_recordings(), ("human",), LIKENESS, BY_DEADLINE, BESIDE_PEOPLE)
        for name, networks in (("human", eight("cifar10")), ("human-augmented", AS_SHOWN))
    ),
    Experiment("run-time", cascades(*SETS), (), ("run_time",), ("training_hours",)),
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
DEMO = Experiment(
    "demo",
    (
        *(Network(*each, shipped=name, test_data="cifar10-sample") for name, each in SHIPPED.items()),
        Network("cascaded-td", 0.0, "digits"),
    ),
    (replace(COARSE, activations=20), FINE, VALIDATION, *OOD, PERSISTENT, TRANSIENT),
    (
        *("speed_accuracy", "selection_latency", "prototypicality", "persistent_noise", "transient_noise"),
        *("out_of_distribution", "run_time"),
    ),
    where="time == 'coarse'",
)


def find_experiment(name: str) -> Experiment:
    """An experiment by name."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, [*EXPERIMENTS, CLAIMS, ALL])
    return EXPERIMENTS[name]
