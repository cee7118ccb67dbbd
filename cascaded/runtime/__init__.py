"""Use a trained network: early exit, latency, predictions for your own images, and export without torch."""

import os
from typing import TYPE_CHECKING

from cascaded.lazy import lazy

# Before ONNX Runtime is imported: version 1.29 and newer otherwise write an identifier of the machine into the home
# folder and send reports on the models that are opened. Whoever has set the variable decides.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from cascaded.runtime.runner import Runner as Runner
    from cascaded.runtime.runner import RunnerState as RunnerState

__getattr__, __dir__ = lazy(__name__)
