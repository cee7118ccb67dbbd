"""Anytime image classifiers in PyTorch: a prediction after every step, and better ones the longer they run."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded import analysis as analysis
    from cascaded import data as data
    from cascaded import figures as figures
    from cascaded import results as results
    from cascaded import runtime as runtime
    from cascaded.cascade.block import DenseBlock as DenseBlock
    from cascaded.cascade.block import Layers as Layers
    from cascaded.cascade.block import ResidualBlock as ResidualBlock
    from cascaded.cascade.convert.calibrate import calibrate as calibrate
    from cascaded.cascade.convert.convert import convert as convert
    from cascaded.cascade.convert.network import ConvertedModel as ConvertedModel
    from cascaded.cascade.convert.state import GraphState as GraphState
    from cascaded.cascade.kernels import ExponentialSmoothing as ExponentialSmoothing
    from cascaded.cascade.kernels import Kernel as Kernel
    from cascaded.cascade.kernels import NoDelay as NoDelay
    from cascaded.cascade.kernels import OneStepDelay as OneStepDelay
    from cascaded.cascade.kernels import TappedDelay as TappedDelay
    from cascaded.cascade.network import Cascade as Cascade
    from cascaded.cascade.norm import TimeBatchNorm as TimeBatchNorm
    from cascaded.cascade.state import State as State
    from cascaded.hub.pretrained import Pretrained as Pretrained
    from cascaded.hub.pretrained import load as load
    from cascaded.losses import EligibilityTraces as EligibilityTraces
    from cascaded.losses import ce_loss as ce_loss
    from cascaded.losses import td_loss as td_loss
    from cascaded.losses import td_targets as td_targets
    from cascaded.models.build import Norm as Norm
    from cascaded.models.densenet import densenet as densenet
    from cascaded.models.densenet import densenet121 as densenet121
    from cascaded.models.resnet import resnet as resnet
    from cascaded.models.resnet import resnet18 as resnet18
    from cascaded.models.resnet import resnet34 as resnet34
    from cascaded.models.resnet import resnet50 as resnet50
    from cascaded.runtime.early_exit import early_exit as early_exit
    from cascaded.runtime.export import export as export
    from cascaded.traces.config import Provenance as Provenance
    from cascaded.traces.config import RecordingConfig as RecordingConfig
    from cascaded.traces.store import load_trace as load_trace
    from cascaded.traces.store import save_trace as save_trace
    from cascaded.traces.trace import Trace as Trace
    from cascaded.training.config import RunConfig as RunConfig
    from cascaded.training.inputs import Inputs as Inputs
    from cascaded.training.load import Trained as Trained
    from cascaded.training.load import load_run as load_run

__version__ = "0.2.0"
PROTOCOL_VERSION = 2
"""Counted up when what is presented, trained with noise or measured changes; numbers of two versions do not compare."""

__getattr__, __dir__ = lazy(__name__)
