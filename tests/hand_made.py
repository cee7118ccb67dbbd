"""Traces made by hand: arrays, with any field of their configuration and provenance by name."""

import numpy as np

from cascaded.traces.trace import Trace
from tests.made_traces import facts


def trace_of(logits, labels, indices=None, embeddings=None, head=None, **about) -> Trace:
    """A trace with these fields of `RecordingConfig` and `Provenance`."""
    return Trace(np.asarray(logits), np.asarray(labels), indices, **facts(**about), embeddings=embeddings, head=head)


def value_of(rows, metric, **variant) -> float:
    """The one number of a metric among rows."""
    found = rows[(rows.metric == metric) & rows.x.isna()]
    for name, value in variant.items():
        found = found[found[name] == value]
    assert len(found) == 1, (metric, variant, len(found))
    return float(found.value.iloc[0])


def curve_of(rows, metric, **variant) -> dict[float, float]:
    """The points of a curve among rows, by their place."""
    found = rows[(rows.metric == metric) & rows.x.notna()]
    for name, value in variant.items():
        found = found[found[name] == value]
    assert found.x.is_unique
    return dict(zip(found.x, found.value, strict=True))
