"""Analyses: everything the paper measures, as functions of traces that return rows of the results table."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.analysis.curves import Curve as Curve
    from cascaded.analysis.curves import Sweep as Sweep
    from cascaded.analysis.curves import deadline_curve as deadline_curve
    from cascaded.analysis.curves import speed_accuracy as speed_accuracy
    from cascaded.analysis.curves import threshold_curve as threshold_curve
    from cascaded.analysis.human import compare_with_people as compare_with_people
    from cascaded.analysis.latency import by_latency as by_latency
    from cascaded.analysis.latency import selection_latency as selection_latency
    from cascaded.analysis.latency import selection_latency_rows as selection_latency_rows
    from cascaded.analysis.ood import Pair as Pair
    from cascaded.analysis.ood import auroc as auroc
    from cascaded.analysis.ood import fpr_at as fpr_at
    from cascaded.analysis.ood import out_of_distribution as out_of_distribution
    from cascaded.analysis.prototypes import centrality as centrality
    from cascaded.analysis.prototypes import human_agreement as human_agreement
    from cascaded.analysis.prototypes import prototypicality as prototypicality
    from cascaded.analysis.ranks import spearman as spearman
    from cascaded.analysis.robustness import persistent_noise as persistent_noise
    from cascaded.analysis.robustness import transient_noise as transient_noise
    from cascaded.analysis.stopper import Stopper as Stopper
    from cascaded.analysis.stopper import learned_stopper as learned_stopper
    from cascaded.analysis.stopper import load_stopper as load_stopper
    from cascaded.analysis.stopper import train_stopper as train_stopper
    from cascaded.analysis.taxonomy import taxonomic_compliance as taxonomic_compliance

__getattr__, __dir__ = lazy(__name__)
