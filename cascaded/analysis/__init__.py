"""Analyses: everything the paper measures, as functions of traces. No network is run here, none is imported.

Each is called as on the command line: `cascaded.analysis.speed_accuracy(trace)` is `--only speed_accuracy`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cascaded.analysis.curves import Curve, deadline_curve, speed_accuracy, threshold_curve
    from cascaded.analysis.lambdas import lambda_effect
    from cascaded.analysis.latency import gallery, selection_latency
    from cascaded.analysis.ood import Pair, auroc, fpr_at, out_of_distribution
    from cascaded.analysis.prototypes import centrality, human_agreement, prototypicality, rho_difference
    from cascaded.analysis.robustness import persistent_noise, transient_noise
    from cascaded.analysis.stopping import Stopper, learned_stopper, load_stopper, train_stopper
    from cascaded.analysis.taxonomy import taxonomic_compliance

__all__ = [
    "Curve",
    "Pair",
    "Stopper",
    "auroc",
    "centrality",
    "deadline_curve",
    "fpr_at",
    "gallery",
    "human_agreement",
    "lambda_effect",
    "learned_stopper",
    "load_stopper",
    "out_of_distribution",
    "persistent_noise",
    "prototypicality",
    "rho_difference",
    "selection_latency",
    "speed_accuracy",
    "taxonomic_compliance",
    "threshold_curve",
    "train_stopper",
    "transient_noise",
]

_HOMES = {
    "cascaded.analysis.curves": ("Curve", "deadline_curve", "speed_accuracy", "threshold_curve"),
    "cascaded.analysis.lambdas": ("lambda_effect",),
    "cascaded.analysis.latency": ("gallery", "selection_latency"),
    "cascaded.analysis.ood": ("Pair", "auroc", "fpr_at", "out_of_distribution"),
    "cascaded.analysis.prototypes": ("centrality", "human_agreement", "prototypicality", "rho_difference"),
    "cascaded.analysis.robustness": ("persistent_noise", "transient_noise"),
    "cascaded.analysis.stopping": ("Stopper", "learned_stopper", "load_stopper", "train_stopper"),
    "cascaded.analysis.taxonomy": ("taxonomic_compliance",),
}


def __getattr__(name: str):
    # most analyses need no torch, which takes more than a second to import
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'cascaded.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
