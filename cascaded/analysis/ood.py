"""Does it notice images it was not made for? Out-of-distribution detection from all steps, and from the last alone.

A classifier (`cascaded.analysis.metacog`) is trained for every outside set, on validation images, and scored on test
images. It reads the trace in one of four forms; the baseline reads the confidence at the last step and is not trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32

from cascaded.analysis.metacog import MetaCog, MetaCogRecipe, train_metacog
from cascaded.analysis.outputs import confidence, entropy, softmax
from cascaded.analysis.statistics import Estimate, percentile_interval, plain
from cascaded.errors import InputError
from cascaded.progress import progress
from cascaded.traces.trace import Trace

Form = Literal["msp", "entropy", "softmax", "logits"]
FORMS: tuple[Form, ...] = ("msp", "entropy", "softmax", "logits")
BASELINE = "baseline"
Scores = tuple[Float[np.ndarray, "inside"], Float[np.ndarray, "outside"]]


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


@dataclass(frozen=True)
class Detection:
    """How well images are told apart.

    Attributes:
        auroc: Area under the ROC curve, from 0 to 1.
        fpr: Which share of outside images passes where 95 % of inside ones do.
    """

    auroc: float
    fpr: float


@dataclass(frozen=True)
class OutOfDistribution:
    """How well outside images are detected: a row for each outside set, a column for each way to detect them.

    Attributes:
        scores: By outside set and way (`logits all`, `logits last`, ..., `baseline`), those of inside and of outside
            test images.
        recipe: How the classifiers were trained.
        seed: What they were trained from.
    """

    scores: Mapping[str, Mapping[str, Scores]]
    recipe: MetaCogRecipe
    seed: int

    @cached_property
    def pairs(self) -> dict[str, dict[str, Detection]]:
        """Both figures, by outside set and way."""
        return {name: {way: _detection(*each) for way, each in row.items()} for name, row in self.scores.items()}

    @property
    def mean(self) -> dict[str, Detection]:
        """The mean over outside sets. Their items are not pooled: each set has a classifier with a scale of its own."""
        rows = list(self.pairs.values())
        return {
            way: Detection(*np.mean([(row[way].auroc, row[way].fpr) for row in rows], axis=0).tolist())
            for way in rows[0]
        }

    @property
    def headline(self) -> dict[str, float]:
        """Both figures for every way, as means over outside sets: `auroc logits all`, `fpr baseline`.

        And for every form what all steps win over the last one: `auroc gain logits`, `fpr gain logits`.
        """
        mean = self.mean
        told = {f"auroc {way}": each.auroc for way, each in mean.items()}
        told |= {f"fpr {way}": each.fpr for way, each in mean.items()}
        both = [form for form in FORMS if {f"{form} all", f"{form} last"} <= set(mean)]
        told |= {f"auroc gain {form}": told[f"auroc {form} all"] - told[f"auroc {form} last"] for form in both}
        return told | {f"fpr gain {form}": told[f"fpr {form} last"] - told[f"fpr {form} all"] for form in both}

    def intervals(self, draws: int = 200, level: float = 0.95, seed: int = 0) -> dict[str, Estimate]:
        """Intervals of the headline over test images, which are drawn again; the classifiers stay as they are.

        Inside images are drawn once for all outside sets, and all images once for all ways.
        """
        generator, value = np.random.default_rng(seed), self.headline
        drawn: dict[str, list[float]] = {name: [] for name in value}
        sizes = {name: [len(each) for each in row[BASELINE]] for name, row in self.scores.items()}
        n = next(iter(sizes.values()))[0]
        for _ in range(draws):
            inside = generator.integers(n, size=n)
            outside = {name: generator.integers(m, size=m) for name, (_, m) in sizes.items()}
            again = {
                name: {way: (one[inside], other[outside[name]]) for way, (one, other) in row.items()}
                for name, row in self.scores.items()
            }
            for name, figure in replace(self, scores=again).headline.items():
                drawn[name].append(figure)
        return {name: percentile_interval(value[name], np.array(drawn[name]), n, level) for name in value}

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; None for what is not known."""
        pairs = {name: {way: asdict(each) for way, each in row.items()} for name, row in self.pairs.items()}
        told = {"headline": self.headline, "pairs": pairs, "recipe": asdict(self.recipe), "seed": self.seed}
        return plain(told)


def features(trace: Trace, form: Form, last: bool = False) -> Float32[np.ndarray, "items features"]:
    """A trace as a classifier reads it: for each item one step after the other, k numbers a step.

    Args:
        trace: What was said.
        form: `msp`, the highest probability; `entropy` of all; `softmax`, all probabilities; `logits`, all scores.
        last: The last step alone.
    """
    if form not in FORMS:
        raise InputError(f"form is {form!r}: say {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    if last:
        trace = Trace(trace.logits[-1:], trace.labels, trace.indices, trace.config, trace.provenance)
    if form in ("msp", "entropy"):
        return (confidence if form == "msp" else entropy)(trace).T.astype(np.float32, order="C")
    read = np.empty((trace.items, trace.steps, trace.classes), np.float32)
    for step, said in enumerate(trace.logits):
        read[:, step] = softmax(said) if form == "softmax" else said
    return read.reshape(trace.items, -1)


def auroc(scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"]) -> float:
    """How often an inside image scores above an outside one; a tie counts half.

    P(s_in > s_out) + P(s_in = s_out) / 2
    """
    _check_scores(scores_in, scores_out)
    out = np.sort(scores_out)
    below, up_to = (int(np.searchsorted(out, scores_in, side).sum()) for side in ("left", "right"))
    return (below + up_to) / (2 * len(scores_in) * len(out))


def fpr_at(
    scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"], tpr: float = 0.95
) -> float:
    """Which share of outside images passes the highest threshold that a share `tpr` of inside images pass.

    Args:
        scores_in: Scores of inside images, which should be the higher ones.
        scores_out: Scores of outside images.
        tpr: Which share of inside images has to pass, at least; above 0, up to 1.
    """
    _check_scores(scores_in, scores_out)
    if not 0 < tpr <= 1:
        raise InputError(f"tpr is {tpr}: give a share above 0, up to 1")
    n = len(scores_in)
    passing = np.arange(1, n + 1) / n
    threshold = np.sort(scores_in)[::-1][np.searchsorted(passing, tpr)]
    return float(np.mean(scores_out >= threshold))


def out_of_distribution(
    inside: Pair,
    outside: Mapping[str, Pair],
    *,
    recipe: MetaCogRecipe | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> OutOfDistribution:
    """Train and score a classifier for every outside set, form of the trace, and all steps or the last.

    Args:
        inside: Traces of the data the network was made for.
        outside: By name, traces of other data by the same network.
        recipe: How classifiers are trained; None takes the paper's.
        seed: What all of them are trained from.
        quiet: Show no progress.
    """
    if not outside:
        raise InputError("there is no outside set to tell from the inside one: give at least one")
    for pair in outside.values():
        check_same_network(inside.validation, pair.validation)
    recipe = recipe or MetaCogRecipe()
    base = confidence(inside.test)[-1]
    scores: dict[str, dict[str, Scores]] = {
        name: {BASELINE: (base, confidence(pair.test)[-1])} for name, pair in outside.items()
    }
    train = partial(train_metacog, recipe=recipe, seed=seed)
    with progress("detecting", 2 * len(FORMS) * len(outside), quiet=quiet) as told:
        for form, last in product(FORMS, (False, True)):
            way = f"{form} {'last' if last else 'all'}"
            for name, found in _scored(inside, outside, partial(features, form=form, last=last), train):
                scores[name][way] = found
                told.advance(what=f"detecting {name} from {way}")
    return OutOfDistribution(scores, recipe, seed)


def _scored(
    inside: Pair, outside: Mapping[str, Pair], read: Callable[[Trace], np.ndarray], train: Callable[..., MetaCog]
) -> Iterator[tuple[str, Scores]]:
    """One way to detect, for each outside set; what is read of the inside is read once."""
    train_in, test_in = read(inside.validation), read(inside.test)
    for name, pair in outside.items():
        train_out = read(pair.validation)
        known = np.arange(len(train_in) + len(train_out)) < len(train_in)
        net = train(np.concatenate([train_in, train_out]), known)
        yield name, (net.scores(test_in), net.scores(read(pair.test)))


def check_same_network(mine: Trace, yours: Trace) -> None:
    """Two traces are of one network that ran in one way, whatever images it was shown."""
    a, b = mine.provenance, yours.provenance
    if a.weights != b.weights:
        raise InputError(
            f"one trace is of {a.run or 'no run'}, weights {a.weights[:12] or 'unknown'}, the other of "
            f"{b.run or 'no run'}, weights {b.weights[:12] or 'unknown'}: record both from the same run"
        )
    for what, x, y in (
        ("kernel", mine.config.kernel, yours.config.kernel),
        ("schedule", mine.config.schedule, yours.config.schedule),
        ("number of steps", mine.steps, yours.steps),
        ("number of classes", mine.classes, yours.classes),
    ):
        if x != y:
            raise InputError(f"one trace has the {what} {x}, the other {y}: record both alike")


def check_apart(validation: Trace, test: Trace) -> None:
    """No image that is trained on is scored. Traces made by hand do not tell what they show and pass."""
    a, b = validation.config, test.config
    if validation is test:
        raise InputError("one trace is given as validation and as test: give traces of different images")
    if (
        not validation.provenance.images or validation.provenance.images != test.provenance.images
    ):  # whatever they are called: splits of two names can be one file
        return
    both = np.intersect1d(validation.indices, test.indices)
    if len(both):
        raise InputError(
            f"{a.data} {a.split} and {b.data} {b.split} both show image {both[0]} of one source, {len(both)} are in "
            "both: give traces of different images"
        )


def _detection(scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"]) -> Detection:
    return Detection(auroc(scores_in, scores_out), fpr_at(scores_in, scores_out))


def _check_scores(scores_in: Float[np.ndarray, "inside"], scores_out: Float[np.ndarray, "outside"]) -> None:
    if scores_in.ndim != 1 or scores_out.ndim != 1 or not len(scores_in) or not len(scores_out):
        raise InputError(
            f"inside scores have shape {scores_in.shape}, outside ones {scores_out.shape}: give at least one of each"
        )
    if np.isnan(scores_in).any() or np.isnan(scores_out).any():
        raise InputError("a score is nan, which is neither above nor below another: the detector has diverged")
