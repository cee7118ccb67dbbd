"""The paper's tables and figures, one item each: what it needs, what is measured, what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from cascaded.data.noise import NOISES
from cascaded.errors import InputError
from cascaded.exhibits.published import SPLITS
from cascaded.paper.network import FOLDS, Network

Shows = Literal["whole", "serial", "fine", "held out", "outside", "persistent", "transient"]
"""What networks are shown: test images in whole steps; the same, run serially; in fine time; images that were held out
of training; images of another kind; lasting and passing noise."""

SETS = ("cifar10", "cifar100", "tinyimagenet")
LAMBDAS = ("0", "0.25", "0.5", "0.83", "1")


@dataclass(frozen=True)
class Measure:
    """A figure of an item's table.

    Attributes:
        analysis: What it is read from.
        metric: Which of its headline figures.
        told: What it is called.
        unit: `%` for shares, which are told in per cent.
        time: Whether whole steps or fine ones are looked at; empty for both.
        split: Which images; empty for whichever there are.
    """

    analysis: str
    metric: str
    told: str
    unit: str = "%"
    time: Literal["", "whole", "fine"] = ""
    split: str = ""


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes:
        name: What one types.
        title: What it shows.
        place: Where it is in the paper.
        networks: What is trained for it, at the paper's scale; a smaller scale leaves some out.
        shows: What the networks are shown.
        measures: The figures of its table.
        figures: Which of a report's figures belong to it, by how their keys begin; of its table as well if `drawn`.
        drawn: Whether its table is drawn beside the paper's.
    """

    name: str
    title: str
    place: str
    networks: tuple[Network, ...]
    shows: tuple[Shows, ...]
    measures: tuple[Measure, ...]
    figures: tuple[str, ...] = ()
    drawn: bool = False

    @property
    def analyses(self) -> list[str]:
        """What is asked of what was recorded."""
        return list(dict.fromkeys(measure.analysis for measure in self.measures))


def _cascades(
    data: Sequence[str], lams: Sequence[str], *, ce: bool = True, noise: str | None = None
) -> tuple[Network, ...]:
    """CascadedTD with some lambdas, and CascadedCE, on some data."""
    return tuple(
        network
        for each in data
        for network in (
            *(Network("cascaded-td", lam, each, noise) for lam in lams),
            *([Network("cascaded-ce", None, each, noise)] if ce else []),
        )
    )


SIX = tuple(
    network
    for data in SETS
    for network in (
        *_cascades((data,), ("0",)),
        Network("cascaded-td-multihead", "0", data),
        Network("serial-td", "1", data),
        Network("serial-td-multihead", "1", data),
    )
)
"""The six models of the paper; SerialCE is the network of CascadedCE, run serially."""
NOISY = tuple(network for noise in NOISES for network in _cascades(("cifar10",), ("0",), noise=noise))
TD_CE = _cascades(("cifar10",), ("0",))
ACCURACY = Measure("speed_accuracy", "accuracy", "accuracy at the last step", time="whole")
SOONER = "steps to 95 % of its last accuracy"
RULES = ("stopper", "threshold", "deadline")
FORMS = ("msp", "entropy", "softmax", "logits")
OUTSIDE = {"auroc": "AUROC", "fpr": "FPR at 95 % TPR"}
BASELINE = "without MetaCog"

_ALL = (
    Item(
        "table-lambda",
        "Final accuracy by lambda",
        "figure 3, appendix table",
        _cascades(SETS, LAMBDAS),
        ("whole",),
        (ACCURACY,),
        figures=("lambda",),
        drawn=True,
    ),
    Item(
        "speed-accuracy",
        "Speed and accuracy of six models, stopping by confidence",
        "figure 4",
        SIX,
        ("whole", "serial"),
        (
            Measure("speed_accuracy", "area threshold", "area under the curve", time="whole"),
            Measure("speed_accuracy", "cost at 95 % of final, threshold", SOONER, "steps", "whole"),
        ),
        figures=("speed-steps",),
    ),
    Item(
        "deadline",
        "Accuracy at every step: a deadline for all images",
        "appendix",
        SIX,
        ("whole", "serial"),
        (
            Measure("speed_accuracy", "area deadline", "area under the curve", time="whole"),
            Measure("speed_accuracy", "cost at 95 % of final, deadline", SOONER, "steps", "whole"),
        ),
        figures=("accuracy",),
    ),
    Item(
        "serial-td0",
        "Serial networks taught by TD(0)",
        "appendix",
        tuple(Network("serial-td-multihead", lam, data) for data in SETS for lam in ("0", "1"))
        + _cascades(SETS, ("0",), ce=False),
        ("whole",),
        (ACCURACY, Measure("speed_accuracy", "area threshold", "area under the curve", time="whole")),
        figures=("speed-steps",),
    ),
    Item(
        "images",
        "Rapid and slow images",
        "figure 2",
        _cascades(("cifar100",), ("0",)),
        ("fine",),
        (
            Measure("selection_latency", "mean latency", "mean latency", "steps", "fine"),
            Measure("selection_latency", "theta", "threshold", "", "fine"),
        ),
        figures=("gallery", "latency"),
    ),
    Item(
        "prototypicality",
        "Do typical images take less time?",
        "table 1",
        TD_CE + tuple(replace(network, folds=FOLDS) for network in TD_CE),
        ("fine", "held out"),
        tuple(
            Measure("prototypicality", f"rho {measure}", f"rho with {measure}", "", "fine", split)
            for measure, split in SPLITS.items()
        ),
        figures=("prototypes", "tenths"),
        drawn=True,
    ),
    Item(
        "taxonomy",
        "The coarse class before the fine one",
        "figure 5",
        _cascades(("cifar100",), ("0",)),
        ("whole",),
        (
            Measure("taxonomic_compliance", "first step at 0.35", "first step with a compliance of .35", "", "whole"),
            Measure("taxonomic_compliance", "mean compliance", "mean compliance", "", "whole"),
            Measure("taxonomic_compliance", "compliance above chance", "mean compliance above chance", "", "whole"),
        ),
        figures=("taxonomy",),
    ),
    Item(
        "noise-persistent",
        "Noise that lasts",
        "table 2, left",
        NOISY,
        ("persistent",),
        (Measure("persistent_noise", "accuracy", "accuracy while it lasts"),),
        drawn=True,
    ),
    Item(
        "noise-transient",
        "Noise that passes",
        "table 2, right",
        NOISY,
        ("transient",),
        (Measure("transient_noise", "dip", "drop of confidence"),),
        figures=("confidence",),
        drawn=True,
    ),
    Item(
        "ood",
        "Images of another kind, told from the trace",
        "figure 7, appendix table",
        _cascades(("cifar10",), ("0",), ce=False),
        ("fine", "held out", "outside"),
        tuple(
            measure
            for metric, told in OUTSIDE.items()
            for measure in (
                *(
                    Measure("out_of_distribution", f"{metric} {form} {steps}", f"{told}, {form}, {steps} step{s}")
                    for form in FORMS
                    for steps, s in (("last", ""), ("all", "s"))
                ),
                Measure("out_of_distribution", f"{metric} baseline", f"{told}, {BASELINE}"),
            )
        ),
        figures=("outside",),
        drawn=True,
    ),
    Item(
        "stopping",
        "When to answer: learned stopper, confidence, deadline",
        "appendix",
        _cascades(("cifar10",), ("0",), ce=False),
        ("fine", "held out"),
        tuple(Measure("learned_stopper", f"area {rule}", f"area under the curve, {rule}") for rule in RULES),
        figures=("stopping",),
    ),
    Item(
        "terriers",
        "Ten terriers in high resolution",
        "appendix",
        (*_cascades(("terriers",), ("0", "0.55", "1"), ce=False), Network("serial-td-multihead", "1", "terriers")),
        ("whole",),
        (
            ACCURACY,
            Measure("speed_accuracy", "cost at accuracy 0.5, deadline", "steps to 50 % right", "steps", "whole"),
        ),
        figures=("speed-steps", "accuracy"),
        drawn=True,
    ),
    Item("run-time", "Training time", "appendix table", TD_CE, (), ()),
)
ITEMS: dict[str, Item] = {item.name: item for item in _ALL}
"""By name. `run-time` reads the clock of its runs; all else is read from traces."""
CLAIMS = "claims"
"""What one types for the claims, which all items speak to."""


def find_item(name: str) -> Item:
    """An item by name."""
    if name not in ITEMS:
        near = get_close_matches(name, [*ITEMS, CLAIMS], n=1)
        way = f"say {near[0]}?" if near else f"say {', '.join([*ITEMS, CLAIMS])}"
        raise InputError(f"the paper has no item {name!r} here: {way}")
    return ITEMS[name]
