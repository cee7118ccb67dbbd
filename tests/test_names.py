"""Networks under the paper's names."""

import pytest

from cascaded.results.metrics import METRICS
from cascaded.results.names import display_name


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("CascadedTD(0)", ("cascaded-td", 0.0)),
        ("CascadedTD(0.5)", ("cascaded-td", 0.5, "cascaded")),
        ("CascadedTD(0)-MultiHead", ("cascaded-td-multihead", 0.0)),
        ("CascadedCE", ("cascaded-ce", None)),
        ("CascadedCE", ("cascaded-ce", float("nan"), "cascaded", "focus")),
        ("SerialCE", ("cascaded-ce", None, "serial")),
        ("SerialCEx9", ("cascaded-ce", None, "serial", "focus")),
        ("SerialCE", ("serial-ce", None)),
        ("SerialTD(1)", ("serial-td", 1.0)),
        ("Shallow-Deep", ("serial-td-multihead", 1.0, "serial")),
        ("Shallow-Deep (0)", ("serial-td-multihead", 0.0)),
        ("Shallow-Deep, own features", ("shallow-deep", 1.0, "serial")),
        ("CascadedTD(0), serial", ("cascaded-td", 0.0, "serial")),
    ],
)
def test_display_name(name, about):
    assert display_name(*about) == name


def test_values_are_written_with_their_units():
    assert METRICS["accuracy"].format(0.7134) == "71.3 %"
    assert METRICS["accuracy"].format_difference(0.012) == "+1.2 points"
    assert METRICS["latency"].format(31.415) == "31.4 steps"
    assert METRICS["rho"].format(-0.1234) == "-0.123"
    assert METRICS["rho"].format(float("nan")) == "-"
