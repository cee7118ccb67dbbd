"""Measures of how typical images are, besides what the network computes: C-scores, human judgements, clutter."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float

from cascaded.analysis.prototypes import centrality, human_agreement
from cascaded.data.clutter import NAME as CLUTTERED
from cascaded.data.clutter import clutter
from cascaded.data.human import cscores, human_counts
from cascaded.errors import CascadedWarning, InputError
from cascaded.traces.store import TraceFile

JUDGED = "cifar10"
"""The data whose images people, and other networks, have judged one by one."""
SAMPLE = "cifar10-sample"
"""Both its splits are rows of the test set of cifar10."""
MEASURED = (JUDGED, SAMPLE, CLUTTERED)
"""Data with a measure that needs no embeddings."""


def typicality(trace: TraceFile) -> dict[str, Float[np.ndarray, "items"]]:
    """Every measure that there is for the items of a trace, by name.

    C-scores and human judgements are read from files that come with the data; where these are not there, or do not fit
    the items, the measure is left out with a warning.

    Args:
        trace: Of folds, centrality is computed fold by fold, each with its own output layer.
    """
    folds, config = trace.load_folds(), trace.config
    indices = np.concatenate([fold.indices for fold in folds])
    order = np.argsort(indices, kind="stable") if len(folds) > 1 else np.arange(len(indices))  # as they are joined
    rows, labels = indices[order], np.concatenate([fold.labels for fold in folds])[order]
    measures = {}
    if config.embeddings:
        measures["centrality"] = np.concatenate([centrality(fold) for fold in folds])[order]
    of_test = config.split == "test" or config.data == SAMPLE
    name = "human agreement" if of_test else "C-score"
    try:
        if config.data in (JUDGED, SAMPLE):
            measures[name] = human_agreement(human_counts(rows, labels)) if of_test else cscores(rows, labels)
    except InputError as error:
        if config.data == JUDGED:  # the embedded sample comes without the judgements, and nobody misses them there
            warnings.warn(f"{config.data} {config.split} has no {name}: {error}", CascadedWarning, stacklevel=2)
    if config.data == CLUTTERED:  # validation images keep their rows in the training split
        measures["typicality"] = -clutter("test" if of_test else "train", rows)
    return measures
