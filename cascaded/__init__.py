"""Anytime prediction with cascaded networks: an answer at once, and a better one at every step."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.cascade.block import DenseBlock, Layers, ResidualBlock
    from cascaded.cascade.kernels import ExponentialSmoothing, Kernel, NoDelay, OneStepDelay, TappedDelay
    from cascaded.cascade.network import Cascade
    from cascaded.cascade.norm import TimeBatchNorm
    from cascaded.cascade.state import State
    from cascaded.hub.load import load
    from cascaded.hub.pretrained import Pretrained
    from cascaded.losses import EligibilityTraces, ce_loss, td_loss, td_targets
    from cascaded.models.build import Norm
    from cascaded.models.densenet import densenet, densenet121
    from cascaded.models.resnet import resnet, resnet18, resnet34, resnet50
    from cascaded.runtime.early_exit import early_exit
    from cascaded.traces.config import Provenance, RecordingConfig
    from cascaded.traces.store import load_trace, save_trace
    from cascaded.traces.trace import Trace
    from cascaded.training.config import RunConfig
    from cascaded.training.load import Trained, load_run
    from cascaded.training.runs import Inputs

__version__ = "0.1.0"

__all__ = [
    "Cascade",
    "DenseBlock",
    "EligibilityTraces",
    "ExponentialSmoothing",
    "Inputs",
    "Kernel",
    "Layers",
    "NoDelay",
    "Norm",
    "OneStepDelay",
    "Pretrained",
    "Provenance",
    "RecordingConfig",
    "ResidualBlock",
    "RunConfig",
    "State",
    "TappedDelay",
    "TimeBatchNorm",
    "Trace",
    "Trained",
    "ce_loss",
    "densenet",
    "densenet121",
    "early_exit",
    "load",
    "load_run",
    "load_trace",
    "resnet",
    "resnet18",
    "resnet34",
    "resnet50",
    "save_trace",
    "td_loss",
    "td_targets",
]

_HOMES = {
    "cascaded.cascade.block": ("DenseBlock", "Layers", "ResidualBlock"),
    "cascaded.cascade.kernels": ("ExponentialSmoothing", "Kernel", "NoDelay", "OneStepDelay", "TappedDelay"),
    "cascaded.cascade.network": ("Cascade",),
    "cascaded.cascade.norm": ("TimeBatchNorm",),
    "cascaded.cascade.state": ("State",),
    "cascaded.training.runs": ("Inputs",),
    "cascaded.training.config": ("RunConfig",),
    "cascaded.losses": ("EligibilityTraces", "ce_loss", "td_loss", "td_targets"),
    "cascaded.training.load": ("Trained", "load_run"),
    "cascaded.models.build": ("Norm",),
    "cascaded.models.densenet": ("densenet", "densenet121"),
    "cascaded.models.resnet": ("resnet", "resnet18", "resnet34", "resnet50"),
    "cascaded.hub.load": ("load",),
    "cascaded.hub.pretrained": ("Pretrained",),
    "cascaded.runtime.early_exit": ("early_exit",),
    "cascaded.traces.config": ("Provenance", "RecordingConfig"),
    "cascaded.traces.store": ("load_trace", "save_trace"),
    "cascaded.traces.trace": ("Trace",),
}

__getattr__, __dir__ = lazy(__name__, _HOMES, parts=("analysis", "data", "figures", "results"))
