"""Analyses: everything the paper measures, as functions of traces that return rows of the results table."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.analysis.curves import Curve, Sweep, deadline_curve, speed_accuracy, threshold_curve
    from cascaded.analysis.latency import by_latency, selection_latency, selection_latency_rows
    from cascaded.analysis.ood import Pair, auroc, fpr_at, out_of_distribution
    from cascaded.analysis.prototypes import centrality, human_agreement, prototypicality
    from cascaded.analysis.ranks import spearman
    from cascaded.analysis.robustness import persistent_noise, transient_noise
    from cascaded.analysis.stopper import Stopper, learned_stopper, load_stopper, train_stopper
    from cascaded.analysis.taxonomy import taxonomic_compliance

__all__ = [
    "Curve",
    "Pair",
    "Stopper",
    "Sweep",
    "auroc",
    "by_latency",
    "centrality",
    "deadline_curve",
    "fpr_at",
    "human_agreement",
    "learned_stopper",
    "load_stopper",
    "out_of_distribution",
    "persistent_noise",
    "prototypicality",
    "selection_latency",
    "selection_latency_rows",
    "spearman",
    "speed_accuracy",
    "taxonomic_compliance",
    "threshold_curve",
    "train_stopper",
    "transient_noise",
]

_HOMES = {
    "cascaded.analysis.curves": ("Curve", "Sweep", "deadline_curve", "speed_accuracy", "threshold_curve"),
    "cascaded.analysis.latency": ("by_latency", "selection_latency", "selection_latency_rows"),
    "cascaded.analysis.ood": ("Pair", "auroc", "fpr_at", "out_of_distribution"),
    "cascaded.analysis.prototypes": ("centrality", "human_agreement", "prototypicality"),
    "cascaded.analysis.ranks": ("spearman",),
    "cascaded.analysis.robustness": ("persistent_noise", "transient_noise"),
    "cascaded.analysis.stopper": ("Stopper", "learned_stopper", "load_stopper", "train_stopper"),
    "cascaded.analysis.taxonomy": ("taxonomic_compliance",),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
