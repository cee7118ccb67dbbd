"""Use a trained network: early exit, latency, predictions for your own images, and export without torch."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.runtime.runner import Runner as Runner
    from cascaded.runtime.runner import RunnerState as RunnerState

__getattr__, __dir__ = lazy(__name__)
