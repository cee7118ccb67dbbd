"""The analyses by name: what each measures and which recordings it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cascaded.errors import unknown
from cascaded.traces.config import RecordingConfig
from cascaded.traces.stimuli import human_recordings
from cascaded.traces.store import TraceFile, find_traces
from cascaded.training.config import RunConfig
from cascaded.training.runs import is_done, last_metrics, read_config, read_run_file


@dataclass(frozen=True)
class Analysis:
    """One of the paper's measurements.

    Attributes:
        label: What it measures.
        needs: The recordings that it is computed from.
        settings: Which settings its rows depend on, besides the seed and number of draws.
        version: Counted up when the same traces and settings would give other rows, or when what it needs is presented
            in another way. Rows of two versions are never compared.
        claimed: The metrics that claims of the paper are about, with `Settings.claim_draws`; points of curves and other
            metrics have `Settings.draws`.
    """

    label: str
    needs: tuple[RecordingConfig, ...] = ()
    settings: tuple[str, ...] = ()
    version: int = 1
    claimed: tuple[str, ...] = ()


COARSE = RecordingConfig()
FINE = RecordingConfig(kernel="ews:0.9", steps=70)
EMBEDDINGS = replace(FINE, embeddings=True)
PERSISTENT = RecordingConfig(noise="occlusion")
TRANSIENT = replace(PERSISTENT, protocol="transient")
OOD_DATA = "photographs"
"""An embedded data set: it needs neither files nor a connection, and fits every size of images."""
BOTH = tuple(replace(FINE, split=split) for split in ("validation", "test"))
OOD = tuple(replace(each, data=OOD_DATA) for each in BOTH)
LATENCY = ("unsettled_fraction",)
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""Classes of the images that people were shown."""
SPEED = ("accuracy", "area", "area_above_deadline", "cost_to_accuracy_50")
COMPLIANCE = ("compliance_mean", "compliance_above_chance", "first_step_at_0.35")
DETECTION = ("auroc", "fpr95", "auroc_gain")
METACOG = ("epochs", "metacog_trials", "metacog_standardize")

ANALYSES: dict[str, Analysis] = {
    "speed_accuracy": Analysis("accuracy per step, and against cost under stopping rules", (COARSE,), (), 2, SPEED),
    "selection_latency": Analysis("step from which the prediction stays above a threshold", (FINE,), LATENCY),
    "prototypicality": Analysis(
        "rank correlation of latency with typicality", (EMBEDDINGS,), LATENCY, 3, ("rho", "rho_p")
    ),
    "taxonomic_compliance": Analysis("fraction of errors within the right coarse class", (COARSE,), (), 2, COMPLIANCE),
    "persistent_noise": Analysis("accuracy under noise on every frame", (PERSISTENT,), claimed=("accuracy",)),
    "transient_noise": Analysis(
        "drop of confidence during and after some noisy frames", (TRANSIENT,), claimed=("dip",)
    ),
    "learned_stopper": Analysis(
        "accuracy against cost with a learned stopper", BOTH, ("epochs",), 2, ("area_above_deadline",)
    ),
    "out_of_distribution": Analysis("detection of out-of-distribution images", (*BOTH, *OOD), METACOG, 3, DETECTION),
    "human": Analysis("speed and accuracy beside people", human_recordings(), ("human_data",)),
    "run_time": Analysis("training time"),
}


def chosen_analyses(only: Sequence[str]) -> list[str]:
    """Names of analyses as people type them; all where none is given."""
    names = [each.replace("-", "_") for each in only]
    for name in names:
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    return names or list(ANALYSES)


def missing_recordings(run: Path, name: str) -> tuple[RecordingConfig, ...] | str:
    """The recordings that an analysis of a run still needs, as `cascaded record` takes them; or why there are none.

    Args:
        run: Folder of the run.
        name: Name of the analysis.
    """
    config, traces = read_config(run), find_traces(run)
    if name == "run_time":
        return "the run has no metrics.jsonl, where training writes its time"
    if name == "taxonomic_compliance":
        return f"it needs data with two levels of classes, such as cifar100, and {config.data} has one"
    if name == "human" and set(read_run_file(run).inputs.classes) != set(CIFAR10):
        return f"people were shown the classes of cifar10, and {config.data} has others"
    two_splits = any(need.split for need in ANALYSES[name].needs)
    default = "test" if has_test_split(run, traces) else "validation"
    if two_splits and default == "validation":
        return f"it trains on one split and tests on another, and {config.data} has the validation split only"
    if two_splits and config.fold is not None:
        return "it needs a test split, and folds are tested on their validation splits"
    needs = [_for_run(need, config) for need in ANALYSES[name].needs]
    missing = [need for need in needs if not any(_satisfies(trace, need, default) for trace in traces)]
    recorded = [trace.config.data for trace in traces if trace.provenance.in_distribution]
    own = None if not recorded or config.data in recorded else recorded[0]  # a saved network may have no data itself
    return tuple(replace(need, data=need.data or own) for need in missing)


def has_test_split(run: Path, traces: Sequence[TraceFile]) -> bool:
    """Whether the data of a run has a test split: a finished run without one has no test accuracy."""
    if any(trace.provenance.in_distribution and trace.config.split == "test" for trace in traces):
        return True
    return not is_done(run) or "test" in (last_metrics(run) or {"test": None})


def _for_run(need: RecordingConfig, config: RunConfig) -> RecordingConfig:
    """A recording as one run needs it."""
    if config.get_method().schedule == "serial" and need.kernel == FINE.kernel:
        need = replace(need, kernel=COARSE.kernel, steps=None)  # nothing is delayed: there is no finer time
    if need.noise is not None and config.noise is not None and need.protocol != "still":
        need = replace(need, noise=config.noise)
    if need.split == "test" and need.data is None:
        need = replace(need, split=None)
    return need


def _satisfies(trace: TraceFile, need: RecordingConfig, default: str) -> bool:
    """Whether a trace is of the kind of data that is needed, recorded in the same way."""
    config = trace.config
    return (
        trace.provenance.in_distribution == (need.data is None)
        and config.split == (need.split or default)
        and config.time == need.time
        and (config.noise is None) == (need.noise is None)
        and config.protocol == (need.protocol or (need.noise and "persistent"))
        and (need.protocol != "still" or config.noise == need.noise)
        and config.embeddings >= need.embeddings
    )
