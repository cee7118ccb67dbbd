"""Out-of-distribution (OOD) detection from all steps of a trace, and from the last step alone.

A classifier (`cascaded.analysis.metacog`) is trained for every OOD set, on validation images, and scored on test
images. It reads the trace in one of four forms, and is trained several times from the same initial weights. The
baseline is the confidence at the last step and is not trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Float32

from cascaded.analysis.metacog import MetaCogConfig, train_metacog
from cascaded.analysis.outputs import confidence, entropy, softmax
from cascaded.analysis.rows import DRAWS
from cascaded.analysis.statistics import corrected_sem
from cascaded.errors import InputError
from cascaded.progress import progress
from cascaded.traces.trace import Trace, check_equal

Detector = Literal["msp", "entropy", "softmax", "logits"]
DETECTORS: tuple[Detector, ...] = ("msp", "entropy", "softmax", "logits")
BASELINE, MEAN = "baseline", "mean"
STANDARDIZED = "-standardized"
"""Suffix of detectors that read standardized features, in the results table."""
TRIALS = 5
"""Trainings per classifier. The paper has several and does not give their number: as many as it has seeds."""
VARIANT = ["metric", "ood_data", "detector", "reads"]
Key = tuple[str, str, str]  # OOD set, detector, which steps it reads
Scores = tuple[Float[np.ndarray, "inside"], Float[np.ndarray, "outside"]]
Metrics = dict[tuple[str, str, str, str | None], float]  # by metric, OOD set, detector, steps


@dataclass(frozen=True)
class Pair:
    """Traces of one set of images: what a classifier is trained on, and other images it is scored on.

    Attributes:
        validation: What is trained on.
        test: What is scored.
    """

    validation: Trace
    test: Trace

    def __post_init__(self):
        check_same_network(self.validation, self.test)
        check_apart(self.validation, self.test)


def features(trace: Trace, detector: Detector, last: bool = False) -> Float32[np.ndarray, "items features"]:
    """A trace as a classifier reads it: for each item one step after the other.

    Args:
        trace: A recording.
        detector: `msp`, the highest probability; `entropy` of all; `softmax`, all probabilities; `logits`.
        last: Read the last step alone.
    """
    if detector not in DETECTORS:
        raise InputError(f"detector is {detector!r}: choose one of {', '.join(DETECTORS)}")
    if last:
        trace = Trace(trace.logits[-1:], trace.labels, trace.indices, trace.config, trace.provenance)
    if detector in ("msp", "entropy"):
        return (confidence if detector == "msp" else entropy)(trace).T.astype(np.float32, order="C")
    read = np.empty((trace.items, trace.steps, trace.classes), np.float32)
    for step, logits in enumerate(trace.logits):
        read[:, step] = softmax(logits) if detector == "softmax" else logits
    return read.reshape(trace.items, -1)


def auroc(scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"]) -> float:
    """How often an in-distribution image scores above an OOD one; a tie counts half.

    P(s_in > s_out) + P(s_in = s_out) / 2
    """
    _check_scores(scores_in, scores_out)
    out = np.sort(scores_out)
    below, up_to = (int(np.searchsorted(out, scores_in, side).sum()) for side in ("left", "right"))
    return (below + up_to) / (2 * len(scores_in) * len(out))


def fpr_at(
    scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"], tpr: float = 0.95
) -> float:
    """False-positive rate: fraction of OOD images above the highest threshold that a fraction `tpr` of others reaches.

    Args:
        scores_in: Scores of in-distribution images, which should be the higher ones.
        scores_out: Scores of OOD images.
        tpr: True-positive rate, at least; above 0, up to 1.
    """
    _check_scores(scores_in, scores_out)
    if not 0 < tpr <= 1:
        raise InputError(f"tpr is {tpr}: give a fraction above 0, up to 1")
    n = len(scores_in)
    passing = np.arange(1, n + 1) / n
    threshold = np.sort(scores_in)[::-1][np.searchsorted(passing, tpr)]
    return float(np.mean(scores_out >= threshold))


def out_of_distribution(
    inside: Pair,
    outside: Mapping[str, Pair],
    *,
    config: MetaCogConfig | None = None,
    trials: int = TRIALS,
    seed: int = 0,
    draws: int = DRAWS,
    quiet: bool = False,
) -> pd.DataFrame:
    """Train and score classifiers for every OOD set and detector, on all steps and on the last step alone.

    Numbers are means over trials. `auroc_sem` and `fpr95_sem` are their standard errors over trials, without what the
    detectors of all steps and of the last step share in a trial (Masson and Loftus, 2003).

    Test images are drawn again for intervals, the classifiers stay as they are. In-distribution images are drawn once
    for all OOD sets, and all images once for all detectors.

    Args:
        inside: Traces of the data that the network was trained on.
        outside: By name, traces of other data by the same network.
        config: How classifiers are trained; None takes the paper's.
        trials: Trainings per classifier, from the same initial weights.
        seed: Seed of the draws.
        draws: How often test images are drawn for intervals.
        quiet: Show no progress.
    """
    if not outside or trials < 1:
        raise InputError(f"there are {len(outside)} OOD sets and {trials} trials: give at least one of each")
    config = config or MetaCogConfig()
    for pair in outside.values():
        check_same_network(inside.validation, pair.validation)
    scores = _all_scores(inside, outside, config, trials, quiet)
    generator, n = np.random.default_rng(seed), inside.test.items
    values, drawn = _metrics(scores), []
    for _ in range(draws):
        items = generator.integers(n, size=n)
        others = {name: generator.integers(pair.test.items, size=pair.test.items) for name, pair in outside.items()}
        again = {key: [(a[items], b[others[key[0]]]) for a, b in each] for key, each in scores.items()}
        drawn.append(_metrics(again))
    rows = [(*key, None, value, np.array([each[key] for each in drawn], "f4")) for key, value in values.items()]
    rows += [(*key, None, value, None) for key, value in _errors(scores, trials).items()]
    table = pd.DataFrame(rows, columns=pd.Index([*VARIANT, "x", "value", "draws"]))
    renamed = {name: name + STANDARDIZED for name in DETECTORS} if config.standardize else {}
    return table.replace({"detector": renamed})


def _all_scores(
    inside: Pair, outside: Mapping[str, Pair], config: MetaCogConfig, trials: int, quiet: bool
) -> dict[Key, list[Scores]]:
    """Scores of in- and out-of-distribution test images in every trial, by OOD set, detector and what it reads."""
    base = confidence(inside.test)[-1]
    scores: dict[Key, list[Scores]] = {
        (name, BASELINE, "last"): [(base, confidence(pair.test)[-1])] for name, pair in outside.items()
    }
    with progress("detecting", 2 * len(DETECTORS) * len(outside), quiet=quiet) as bar:
        for detector, reads in product(DETECTORS, ("all", "last")):
            read = partial(features, detector=detector, last=reads == "last")
            for name, pairs in _scored(inside, outside, read, config, trials):
                scores[name, detector, reads] = pairs
                bar.advance(what=f"detecting {name}: {detector}, {reads}")
    return scores


def _scored(
    inside: Pair,
    outside: Mapping[str, Pair],
    read: Callable[[Trace], np.ndarray],
    config: MetaCogConfig,
    trials: int,
) -> Iterator[tuple[str, list[Scores]]]:
    """The scores of one detector for each OOD set and trial; the features of the inside are computed once."""
    train_in, test_in = read(inside.validation), read(inside.test)
    for name, pair in outside.items():
        train_out, test_out = read(pair.validation), read(pair.test)
        known = np.arange(len(train_in) + len(train_out)) < len(train_in)
        train = np.concatenate([train_in, train_out])
        nets = (train_metacog(train, known, config, trial) for trial in range(trials))
        yield name, [(net.scores(test_in), net.scores(test_out)) for net in nets]


def _metrics(scores: Mapping[Key, Sequence[Scores]]) -> Metrics:
    """Means over trials of every metric; `mean` is over OOD sets, whose items are not pooled."""
    metrics: Metrics = {}
    for (name, detector, reads), trials in scores.items():
        metrics["auroc", name, detector, reads] = float(np.mean([auroc(*pair) for pair in trials]))
        metrics["fpr95", name, detector, reads] = float(np.mean([fpr_at(*pair) for pair in trials]))
    names = list(dict.fromkeys(name for name, _, _ in scores))
    for metric, detector, reads in dict.fromkeys((metric, detector, reads) for metric, _, detector, reads in metrics):
        metrics[metric, MEAN, detector, reads] = float(
            np.mean([metrics[metric, name, detector, reads] for name in names])
        )
    for name, detector in product([*names, MEAN], DETECTORS):
        gain = metrics["auroc", name, detector, "all"] - metrics["auroc", name, detector, "last"]
        metrics["auroc_gain", name, detector, None] = gain
    return metrics


def _errors(scores: Mapping[Key, Sequence[Scores]], trials: int) -> Metrics:
    """Corrected standard errors over trials, one for what reads all steps and the last; none with one trial."""
    if trials == 1:
        return {}
    each = [_metrics({key: [pairs[min(k, len(pairs) - 1)]] for key, pairs in scores.items()}) for k in range(trials)]
    errors: Metrics = {}
    for metric, name, detector, _ in (key for key in each[0] if key[-1] == "all"):
        values = [[one[metric, name, detector, reads] for reads in ("all", "last")] for one in each]
        errors[f"{metric}_sem", name, detector, None] = corrected_sem(np.array(values))
    return errors


def check_same_network(mine: Trace, yours: Trace) -> None:
    """Two traces are of one network that was run in one way, on whatever images."""
    names = ("provenance.weights", "config.kernel", "config.schedule", "steps", "classes")
    check_equal(mine, yours, names, "record both from the same run and alike")


def check_apart(validation: Trace, test: Trace) -> None:
    """No image that is trained on is scored. Traces that were built by hand have no digest of their images and pass."""
    a, b = validation.provenance, test.provenance
    if validation is test:
        raise InputError("one trace is given as validation and as test: give traces of different images")
    if not a.images or a.images != b.images:  # whatever they are called: splits of two names can be one file
        return
    both = np.intersect1d(validation.indices, test.indices)
    if len(both):
        raise InputError(
            f"{validation.description} and {test.description} have {len(both)} images in common, the "
            f"first is image {both[0]}: give traces of different images"
        )


def _check_scores(scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"]) -> None:
    if scores_in.ndim != 1 or scores_out.ndim != 1 or not len(scores_in) or not len(scores_out):
        raise InputError(
            f"inside scores have shape {scores_in.shape}, outside ones {scores_out.shape}: give at least one of each"
        )
    if np.isnan(scores_in).any() or np.isnan(scores_out).any():
        raise InputError("a score is nan, which is neither above nor below another: the detector has diverged")
