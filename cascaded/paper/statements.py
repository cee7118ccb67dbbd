"""The paper's claims: for each a statement, the experiments that measure it, and its measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MARGINS = {"accuracy": 0.01, "rho": 0.05}
"""Differences that count as none, by metric; fixed before results were seen."""

STATEMENTS = {
    "C1": "A lambda below 1 ends more accurate than lambda 1.",
    "C2": "CascadedTD lies above the Shallow-Deep network in speed and accuracy; one head beats many for cascaded "
    "networks, many beat one for serial ones.",
    "C3": "TD stratifies latency by prototypicality more than CE does.",
    "C4": "The coarse class is predicted before the fine one, and sooner with TD.",
    "C5": "TD suppresses noise that removes information, persistent and transient.",
    "C6": "All steps detect out-of-distribution images better than the last step.",
    "C7": "The learned stopper and the confidence threshold beat the deadline.",
    "C8": "Training with TD costs no final accuracy.",
    "C9": "TD(0) improves the Shallow-Deep network.",
    "C10": "CascadedTD beats a Shallow-Deep network that is trained with TD(0), too.",
    "C11": "CascadedTD ends more accurate than the Shallow-Deep network.",
    "C12": "TD beats CE in speed and accuracy, for cascaded and for serial networks.",
    "C13": "Cascaded networks beat serial ones with the same heads and the same loss.",
    "C14": "CascadedTD is strictly superior: it is more accurate at every cost.",
    "C15": "The confidence threshold beats the deadline for the other models, too.",
    "C16": "The learned stopper beats the deadline for CascadedCE, too.",
    "C17": "SerialCEx9 is best under noise that keeps information: persistent translation and rotation, and transient "
    "translation.",
    "C18": "Prototypical images are classified sooner: all rank correlations are positive, with p < .001.",
    "C19": "All steps lower the false-positive rate of out-of-distribution detection, and beat the maximum softmax "
    "probability.",
    "C20": "On terriers, CascadedTD reaches an accuracy of 50 % sooner than the Shallow-Deep network.",
    "C21": "The results do not depend on theta, alpha, the kernel and the depth of the network.",
    "C22": "TD training takes 22 to 36 % more time than CE training.",
}
EXPERIMENTS = {
    "C1": ("table-lambda",),
    "C2": ("speed-accuracy",),
    "C3": ("prototypicality",),
    "C4": ("taxonomy",),
    "C5": ("noise-persistent", "noise-transient"),
    "C6": ("ood",),
    "C7": ("stopping",),
    "C8": ("table-lambda",),
    **dict.fromkeys(("C9", "C10"), ("serial-td0",)),
    **dict.fromkeys(("C11", "C12"), ("speed-accuracy",)),
    "C13": ("table-lambda", "speed-accuracy", "serial-td0"),
    **dict.fromkeys(("C14", "C15"), ("speed-accuracy",)),
    "C16": ("stopping",),
    "C17": ("noise-persistent", "noise-transient"),
    "C18": ("prototypicality",),
    "C19": ("ood",),
    "C20": ("terriers",),
    "C21": ("prototypicality", "alpha", "depth"),
    "C22": ("run-time",),
}
"""The experiments that measure a claim, by the names that `cascaded reproduce` accepts."""


@dataclass(frozen=True)
class Claim:
    """One measurement behind a claim: a metric and two queries.

    Attributes:
        claim: Which claim, such as `C1`.
        label: What is measured.
        metric: Which metric of the results table.
        where: A pandas query that selects the rows: analysis, rule, measure, noise.
        a: A query that selects the networks that the claim is about.
        b: A query that selects those they are compared with; None if the metric itself is the effect.
        sign: -1 if less is better.
        within: The effect that is claimed lies between these numbers, in the unit of the results table.
        prefer: Values of columns that are used where the data have them, such as the time that the paper measures in.
        across: Columns in which a and b differ, besides those that tell networks apart.
        relative: Whether the effect is a fraction of b, a / b - 1, instead of a difference.
        at_every_x: Whether the metric is a curve; the effect is the smallest one over all points.
        paper_metric: Name of the paper's value if the paper prints the effect instead of a and b.
    """

    claim: str
    label: str
    metric: str
    where: str
    a: str
    b: str | None = None
    sign: int = 1
    within: tuple[float, float] = (0.0, math.inf)
    prefer: Mapping[str, str] = field(default_factory=dict)
    across: tuple[str, ...] = ()
    relative: bool = False
    at_every_x: bool = False
    paper_metric: str = ""


def _td(lam: float, method: str = "cascaded-td") -> str:
    return f"method == '{method}' and lam == {lam} and schedule == '{method.partition('-')[0]}'"


def _no_difference(metric: str) -> tuple[float, float]:
    return -MARGINS[metric], MARGINS[metric]


def _no_loss(metric: str) -> tuple[float, float]:
    return -MARGINS[metric], math.inf


TD0, TD1, BELOW_1 = _td(0), _td(1), "method == 'cascaded-td' and lam < 1 and schedule == 'cascaded'"
CE = "method == 'cascaded-ce' and schedule == 'cascaded'"
SERIAL_CE = "method in ('cascaded-ce', 'serial-ce') and schedule == 'serial'"
MULTIHEAD, SERIAL_TD = _td(0, "cascaded-td-multihead"), _td(1, "serial-td")
MANY_HEADS, MANY_HEADS_TD0 = _td(1, "serial-td-multihead"), _td(0, "serial-td-multihead")
SHALLOW_DEEP = "method in ('serial-td-multihead', 'shallow-deep') and lam == 1 and schedule == 'serial'"
LOSSY = ("focus", "occlusion", "perlin", "resolution")
"""The noises that remove information; rotation and translation only move it."""
MEASURES = {"centrality": "validation", "C-score": "validation", "human agreement": "test", "typicality": "test"}
"""Measures of prototypicality, with the split that the paper reads each from; typicality is of embedded data only."""
OF_PAPER = ("centrality", "C-score", "human agreement")
DETECTORS = ("msp", "entropy", "softmax", "logits")
ALPHAS = (0.8, 0.95)
"""Smoothing besides the paper's .9."""

TEST = {"split": "test"}
COARSE, FINE = {"time": "coarse", **TEST}, {"time": "fine", "kernel": "ews:0.9"}
LAST, AREA = "accuracy at the last step", "area under the speed-accuracy curve, confidence threshold"
SPEED, TAXONOMY = "analysis == 'speed_accuracy'", "analysis == 'taxonomic_compliance'"
OOD = "analysis == 'out_of_distribution' and ood_data == 'mean'"
THRESHOLD = f"{SPEED} and rule == 'threshold'"
STOPPER = "analysis == 'learned_stopper' and rule == 'stopper'"


def _area(claim: str, a: str, b: str) -> Claim:
    return Claim(claim, AREA, "area", THRESHOLD, a, b, prefer=COARSE)


def _last(claim: str, a: str, b: str, within: tuple[float, float] = (0.0, math.inf)) -> Claim:
    return Claim(claim, LAST, "accuracy", SPEED, a, b, within=within, prefer=COARSE)


def _rho(claim: str, measure: str, a: str, b: str | None, metric: str = "rho", **options) -> Claim:
    label = f"Spearman's rho of {measure} with negative latency" if metric == "rho" else f"p value of rho, {measure}"
    prefer = {**FINE, "split": MEASURES[measure]}
    return Claim(claim, label, metric, f"measure == '{measure}'", a, b, prefer=prefer, **options)


def _noise(claim: str, protocol: str, noise: str, a: str, b: str) -> Claim:
    where = f"analysis == '{protocol}_noise' and noise == '{noise}'"
    if protocol == "persistent":
        return Claim(claim, "accuracy under persistent noise", "accuracy", where, a, b, prefer=TEST)
    return Claim(claim, "dip of confidence under transient noise", "dip", where, a, b, -1, prefer=TEST)


def _reads(metric: str, label: str, detector: str, other: str, sign: int) -> Claim:
    """All steps against something else that the same network gives."""
    a, b = f"{TD0} and detector == '{detector}' and reads == 'all'", f"{TD0} and {other}"
    return Claim("C19", label, metric, OOD, a, b, sign, across=("detector", "reads"))


def _robust(measure: str, by: str) -> Claim:
    label = (
        f"smallest difference in rho of {measure} over "
        + {"theta": "thresholds", "unsettled": "unsettled fractions"}[by]
    )
    return replace(_rho("C21", measure, TD0, CE), label=label, metric=f"rho_by_{by}", at_every_x=True)


def _alpha(measure: str, alpha: float) -> Claim:
    rho, prefer = _rho("C21", measure, TD0, CE), {"split": MEASURES[measure]}
    where = f"{rho.where} and kernel == 'ews:{alpha}'"
    return replace(rho, label=f"{rho.label}, alpha {alpha}", where=where, prefer=prefer)


CLAIMS: tuple[Claim, ...] = (
    _last("C1", BELOW_1, TD1),
    *(_area("C2", a, b) for a, b in ((TD0, SHALLOW_DEEP), (TD0, MULTIHEAD), (MANY_HEADS, SERIAL_TD))),
    *(_rho("C3", measure, TD0, CE) for measure in MEASURES if measure != "human agreement"),
    _rho("C3", "human agreement", TD0, CE, within=_no_difference("rho")),
    Claim("C4", "mean compliance above chance", "compliance_above_chance", TAXONOMY, TD0, prefer=COARSE),
    Claim("C4", "first step with a compliance of .35", "first_step_at_0.35", TAXONOMY, TD0, CE, -1, prefer=COARSE),
    Claim("C4", "mean compliance over steps", "compliance_mean", TAXONOMY, TD0, CE, prefer=COARSE),
    *(
        _noise("C5", protocol, noise, TD0, b)
        for protocol in ("persistent", "transient")
        for noise in LOSSY
        for b in (CE, SERIAL_CE)
    ),
    *(
        Claim("C6", f"AUROC gain, {detector}", "auroc_gain", f"detector == '{detector}' and ood_data == 'mean'", TD0)
        for detector in DETECTORS
    ),
    *(
        Claim("C7", f"area above deadline, {label}", "area_above_deadline", query, TD0, prefer=TEST)
        for label, query in (
            ("confidence threshold", f"{THRESHOLD} and kernel in ('osd', 'ews:0.9')"),
            ("learned stopper", STOPPER),
        )
    ),
    _last("C8", TD0, CE, _no_loss("accuracy")),
    *(make("C9", MANY_HEADS_TD0, MANY_HEADS) for make in (_area, _last)),
    *(make("C10", TD0, MANY_HEADS_TD0) for make in (_area, _last)),
    _last("C11", TD0, SHALLOW_DEEP),
    *(_area("C12", a, b) for a, b in ((TD0, CE), (SERIAL_TD, SERIAL_CE))),
    *(_area("C13", a, b) for a, b in ((TD1, SERIAL_TD), (MULTIHEAD, MANY_HEADS_TD0), (CE, SERIAL_CE))),
    *(
        Claim(
            "C14",
            "smallest accuracy gap over all costs, confidence threshold",
            "accuracy_at_cost",
            f"{THRESHOLD} and unit == 'steps'",
            TD0,
            b,
            prefer=COARSE,
            at_every_x=True,
        )
        for b in (SHALLOW_DEEP, TD1, CE)
    ),
    *(
        Claim("C15", "area above deadline, confidence threshold", "area_above_deadline", THRESHOLD, a, prefer=COARSE)
        for a in (CE, MULTIHEAD, SERIAL_TD, MANY_HEADS, SERIAL_CE)
    ),
    Claim("C16", "area above deadline, learned stopper", "area_above_deadline", STOPPER, CE, prefer=TEST),
    *(
        _noise("C17", protocol, noise, SERIAL_CE, b)
        for protocol, noise in (("persistent", "translation"), ("persistent", "rotation"), ("transient", "translation"))
        for b in (TD0, CE)
    ),
    *(_rho("C18", measure, a, None) for measure in OF_PAPER for a in (TD0, CE)),
    *(_rho("C18", measure, a, None, "rho_p", within=(-math.inf, 1e-3)) for measure in OF_PAPER for a in (TD0, CE)),
    *(
        _reads(
            "fpr95",
            f"false-positive rate, {each}, all steps against last",
            each,
            f"detector == '{each}' and reads == 'last'",
            -1,
        )
        for each in DETECTORS
    ),
    *(
        _reads("auroc", f"AUROC, {each}, all steps against baseline", each, "detector == 'baseline'", 1)
        for each in DETECTORS
    ),
    Claim(
        "C20",
        "cost of an accuracy of 50 %, confidence threshold",
        "cost_to_accuracy_50",
        f"{THRESHOLD} and data == 'terriers'",
        TD0,
        SHALLOW_DEEP,
        -1,
        prefer=COARSE,
        relative=True,
        paper_metric="cost_to_accuracy_50_relative",
    ),
    *(_robust(measure, by) for measure in OF_PAPER[:2] for by in ("theta", "unsettled")),
    *(_alpha(measure, alpha) for measure in OF_PAPER[:2] for alpha in ALPHAS),
    Claim(
        "C21",
        "accuracy at the last step, smoothing against one-step delay",
        "accuracy",
        SPEED,
        f"{TD0} and kernel == 'ews:0.9'",
        f"{TD0} and kernel == 'osd'",
        within=_no_difference("accuracy"),
        prefer=TEST,
        across=("time", "steps", "items"),
    ),
    Claim(
        "C21",
        "rho of human agreement, smoothing against one-step delay",
        "rho",
        "measure == 'human agreement'",
        f"{TD0} and kernel == 'ews:0.9'",
        f"{TD0} and kernel == 'osd'",
        within=_no_difference("rho"),
        prefer=TEST,
        across=("time", "steps", "items"),
    ),
    *(
        Claim(
            "C21",
            "accuracy at the last step, ResNet-34 against ResNet-18",
            "accuracy",
            SPEED,
            f"{network} and arch == 'resnet34'",
            f"{network} and arch == 'resnet18'",
            within=_no_difference("accuracy"),
            prefer=COARSE,
            across=("steps", "config"),
        )
        for network in (TD0, CE)
    ),
    Claim(
        "C22",
        "training time",
        "training_hours",
        "analysis == 'run_time'",
        TD0,
        CE,
        within=(0.22, 0.36),
        relative=True,
    ),
)
