"""What is known of images besides their labels: how central, how regular, how clear to people they are."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from cascaded.analysis.prototypes import centrality, human_agreement
from cascaded.data.clutter import NAME as CLUTTERED
from cascaded.data.clutter import clutter
from cascaded.data.human import cscores, human_counts
from cascaded.errors import InputError
from cascaded.traces.store import TraceFile

JUDGED = "cifar10"
"""The data whose images people, and other networks, have judged one by one."""
CSCORE, HUMAN, CENTRALITY, TYPICALITY = "C-score", "human agreement", "centrality", "typicality"


def measures_of(found: TraceFile) -> tuple[dict[str, Float[np.ndarray, "items"]], dict[str, str]]:
    """Every measure there is for the items of a trace, and for each that is missing what would bring it.

    Args:
        found: A trace; of folds, centrality is computed fold by fold, each with its own head.
    """
    measures, missing = {}, {}
    config, parts = found.config, found.load_folds()
    indices = np.concatenate([part.indices for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    order = np.argsort(indices, kind="stable") if len(parts) > 1 else np.arange(len(indices))  # as they are joined
    if config.embeddings:
        measures[CENTRALITY] = np.concatenate([centrality(part) for part in parts])[order]
    else:
        missing[CENTRALITY] = "record with --embeddings"
    if config.data == JUDGED:
        name = HUMAN if config.split == "test" else CSCORE
        try:
            if name == HUMAN:
                measures[name] = human_agreement(human_counts(indices[order], labels[order]))
            else:
                measures[name] = cscores(indices[order], labels[order])
        except InputError as error:
            missing[name] = str(error)
    if config.data == CLUTTERED:
        split = "test" if config.split == "test" else "train"  # what was held out keeps its rows
        measures[TYPICALITY] = -clutter(split, indices[order])
    return measures, missing
