"""Anytime prediction with cascaded networks: an answer at once, and a better one at every step."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.cascade.block import DenseBlock, Layers, ResidualBlock
    from cascaded.cascade.kernels import ExponentialSmoothing, Kernel, NoDelay, OneStepDelay, TappedDelay
    from cascaded.cascade.network import Cascade
    from cascaded.cascade.norm import TimeBatchNorm
    from cascaded.cascade.state import State
    from cascaded.learning.eligibility import EligibilityTraces
    from cascaded.learning.recipe import Recipe
    from cascaded.learning.runs import Inputs
    from cascaded.learning.spec import Spec
    from cascaded.learning.td import ce_loss, td_loss, td_targets
    from cascaded.learning.trained import Trained, load_run
    from cascaded.models.build import Norm
    from cascaded.models.densenet import densenet, densenet121
    from cascaded.models.resnet import resnet, resnet18, resnet34, resnet50
    from cascaded.pretrained.places import load
    from cascaded.pretrained.pretrained import Pretrained
    from cascaded.recording.clock import early_exit
    from cascaded.trace.origin import Origin
    from cascaded.trace.store import load_trace, save_trace
    from cascaded.trace.trace import Trace

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
    "Origin",
    "Pretrained",
    "Recipe",
    "ResidualBlock",
    "Spec",
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
    "cascaded.learning.eligibility": ("EligibilityTraces",),
    "cascaded.learning.recipe": ("Recipe",),
    "cascaded.learning.runs": ("Inputs",),
    "cascaded.learning.spec": ("Spec",),
    "cascaded.learning.td": ("ce_loss", "td_loss", "td_targets"),
    "cascaded.learning.trained": ("Trained", "load_run"),
    "cascaded.models.build": ("Norm",),
    "cascaded.models.densenet": ("densenet", "densenet121"),
    "cascaded.models.resnet": ("resnet", "resnet18", "resnet34", "resnet50"),
    "cascaded.pretrained.places": ("load",),
    "cascaded.pretrained.pretrained": ("Pretrained",),
    "cascaded.recording.clock": ("early_exit",),
    "cascaded.trace.origin": ("Origin",),
    "cascaded.trace.store": ("load_trace", "save_trace"),
    "cascaded.trace.trace": ("Trace",),
}

__getattr__, __dir__ = lazy(__name__, _HOMES, parts=("analysis", "data"))
