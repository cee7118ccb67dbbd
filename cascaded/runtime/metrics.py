"""Counters and histograms of a server, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from threading import Lock

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
HELP = {
    "cascaded_requests_total": ("counter", "Requests by endpoint and HTTP status."),
    "cascaded_predictions_total": ("counter", "Final predictions by step."),
    "cascaded_deadline_misses_total": ("counter", "Predictions that were made after their deadline."),
    "cascaded_requests_in_flight": ("gauge", "Requests that are read, wait or are computed now."),
    "cascaded_prediction_seconds": ("histogram", "Time from a complete request to its prediction."),
    "cascaded_batch_size": ("histogram", "Items per run of a file."),
    "cascaded_run_seconds": ("histogram", "Time of one run of a file: a step of a batch, or a full pass."),
    "process_cpu_seconds_total": ("counter", "Processor time of the server."),
}
BUCKETS: dict[str, Sequence[float]] = {
    "cascaded_prediction_seconds": SECONDS,
    "cascaded_batch_size": SIZES,
    "cascaded_run_seconds": SECONDS,
}


class Metrics:
    """What a server has done since its start; every method can be called from any thread."""

    def __init__(self):
        self._lock = Lock()
        self._values: dict[str, dict[str, float]] = {name: defaultdict(float) for name in HELP if name not in BUCKETS}
        self._histograms = {name: [0] * (len(bounds) + 1) for name, bounds in BUCKETS.items()}
        self._sums = dict.fromkeys(BUCKETS, 0.0)

    def add(self, name: str, by: float = 1, **labels: object) -> None:
        """Change a counter or a gauge."""
        with self._lock:
            self._values[name][_labels(labels)] += by

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram."""
        bounds = BUCKETS[name]
        place = next((i for i, bound in enumerate(bounds) if value <= bound), len(bounds))
        with self._lock:
            self._histograms[name][place] += 1
            self._sums[name] += value

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        lines = []
        with self._lock:
            self._values["process_cpu_seconds_total"][""] = time.process_time()
            for name, (kind, what) in HELP.items():
                lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
                lines += self._buckets(name) if name in BUCKETS else self._samples(name)
        return "\n".join(lines) + "\n"

    def _samples(self, name: str) -> list[str]:
        values = self._values[name] or {"": 0.0}
        return [f"{name}{labels} {value:.12g}" for labels, value in sorted(values.items())]

    def _buckets(self, name: str) -> list[str]:
        """Counts of values up to every bound, their sum and their number."""
        lines, total = [], 0
        for bound, count in zip([*map("{:g}".format, BUCKETS[name]), "+Inf"], self._histograms[name], strict=True):
            total += count
            lines.append(f"{name}_bucket{_labels({'le': bound})} {total}")
        return [*lines, f"{name}_sum {self._sums[name]:.12g}", f"{name}_count {total}"]


def _labels(labels: Mapping[str, object]) -> str:
    """`{endpoint="/predict",status="200"}`; the values are our own and need no quoting."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
