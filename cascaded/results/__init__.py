"""The results table: what analyses measured, and how runs compare."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.results.compare import bands, difference, differences, estimates
    from cascaded.results.metrics import METRICS
    from cascaded.results.names import display_name
    from cascaded.results.table import load

__all__ = ["METRICS", "bands", "difference", "differences", "display_name", "estimates", "load"]

_HOMES = {
    "cascaded.results.compare": ("bands", "difference", "differences", "estimates"),
    "cascaded.results.metrics": ("METRICS",),
    "cascaded.results.names": ("display_name",),
    "cascaded.results.table": ("load",),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
