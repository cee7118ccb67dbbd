"""Analyses: everything the paper measures, as functions of traces. No network is run here, none is imported.

Each is called as on the command line: `cascaded.analysis.speed_accuracy(trace)` is `--only speed_accuracy`.
"""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.analysis.curves import Curve, deadline_curve, speed_accuracy, threshold_curve
    from cascaded.analysis.lambdas import lambda_effect
    from cascaded.analysis.latency import gallery, selection_latency
    from cascaded.analysis.ood import Pair, auroc, fpr_at, out_of_distribution
    from cascaded.analysis.prototypes import centrality, human_agreement, prototypicality, rho_difference
    from cascaded.analysis.robustness import persistent_noise, transient_noise
    from cascaded.analysis.stopper import Stopper, learned_stopper, load_stopper, train_stopper
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
    "cascaded.analysis.stopper": ("Stopper", "learned_stopper", "load_stopper", "train_stopper"),
    "cascaded.analysis.taxonomy": ("taxonomic_compliance",),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
