"""The results table: what analyses measured, and how runs compare."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.results.compare import bands as bands
    from cascaded.results.compare import difference as difference
    from cascaded.results.compare import differences as differences
    from cascaded.results.compare import estimates as estimates
    from cascaded.results.metrics import METRICS as METRICS
    from cascaded.results.names import display_name as display_name
    from cascaded.results.table import load as load

__getattr__, __dir__ = lazy(__name__)
