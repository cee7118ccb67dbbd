"""Accuracy at fractions of the full network's operations: hand-computed, and beside the exact curves."""

import numpy as np
import pandas as pd
import pytest

from cascaded.analysis import outputs
from cascaded.analysis.curves import deadline_curve, speed_accuracy, threshold_curve
from cascaded.results.compare import estimates
from cascaded.results.operations import FRACTIONS, accuracy_at_operations
from cascaded.results.table import empty, to_table
from tests.made_traces import made_trace

KEYS = {"data": "digits", "arch": "resnet18", "width": 8, "time": "coarse", "analysis": "speed_accuracy", "seed": 0}


def curve(schedule, costs, accuracy, **more):
    """A stored curve."""
    keys = KEYS | {"run": schedule, "method": f"{schedule}-td", "schedule": schedule, "rule": "deadline"} | more
    same = {"metric": "accuracy_at_cost", "unit": "operations"}
    return pd.DataFrame([{**keys, **same, "x": x, "value": y} for x, y in zip(costs, accuracy, strict=True)])


def values_of(rows):
    return dict(zip(rows["metric"], rows["value"], strict=True))


def fractions(*values):
    return pytest.approx(dict(zip(FRACTIONS, values, strict=True)))


def test_the_full_network_is_one_serial_pass():
    serial, cascaded = curve("serial", [10, 40], [0.2, 0.8]), curve("cascaded", [10, 50, 90], [0.1, 0.5, 0.9])
    rows = accuracy_at_operations(to_table(pd.concat([serial, cascaded])))
    assert values_of(rows[rows.schedule == "serial"]) == fractions(0.2, 0.4, 0.6, 0.8)
    assert values_of(rows[rows.schedule == "cascaded"]) == fractions(0.1, 0.2, 0.3, 0.4)


def test_fractions_below_the_first_step_and_networks_without_a_serial_one_are_left_out():
    serial = curve("serial", [15, 40], [0.2, 0.8])
    assert set(values_of(accuracy_at_operations(to_table(serial)))) == set(FRACTIONS) - {"accuracy_at_25"}
    other = [curve("cascaded", [15, 90], [0.1, 0.9], width=16), curve("cascaded", [20, 90], [0.1, 0.9])]
    assert set(accuracy_at_operations(to_table(pd.concat([serial, *other]))).schedule) == {"serial"}
    assert accuracy_at_operations(empty()).empty


def test_equal_to_the_exact_curves_and_averaged_over_seeds():
    costs = np.cumsum([100] * 6)
    tables, exact = [], []
    for seed in range(3):
        trace = made_trace(seed, items=400, operations=(100,) * 6)
        keys = KEYS | {"run": str(seed), "seed": seed, "method": "serial-td", "schedule": "serial"}
        tables.append(to_table(speed_accuracy(trace, draws=2).assign(**keys)))
        correct, confidence = outputs.correct(trace), outputs.confidence(trace)
        both = deadline_curve(correct, costs), threshold_curve(confidence, correct, costs)
        exact.append([[each.accuracy_at(fraction * 600) for fraction in FRACTIONS.values()] for each in both])
    found = estimates(accuracy_at_operations(pd.concat(tables, ignore_index=True)))
    wide = found.pivot(index="rule", columns="metric", values="value")[list(FRACTIONS)]
    np.testing.assert_allclose(wide.loc[["deadline", "threshold"]], np.mean(exact, axis=0), atol=2e-3)
    assert set(found.interval_over) == {"seeds"}
