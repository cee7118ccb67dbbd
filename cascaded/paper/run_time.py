"""How long training takes: by the clock of the runs, and step against step on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cascaded.exhibits.names import spoken
from cascaded.exhibits.published import HOURS_CE, HOURS_TD
from cascaded.paper.estimate import measured
from cascaded.paper.paper import LAST, TD0
from cascaded.paper.rows import Row
from cascaded.results.subjects import find_subjects
from cascaded.training.runs import last_metrics

if TYPE_CHECKING:
    from cascaded.paper.network import Network
    from cascaded.paper.reproduce import Work

ROUNDS = 9
MODELS = ("cascaded-td", "cascaded-ce")
HOURS = {LAST: HOURS_CE, TD0: HOURS_TD}


def run_times(work: Work) -> list[Row]:
    """Hours of training, and a step of TD against one of CE, measured in turns."""
    clock = [_clock(network, work) for network in work.networks]
    td, ce = (next(each for each in work.item.networks if each.model == model) for model in MODELS)
    steps = measured([each.jobs((0,), Path(), work.scale.config(each))[0].config for each in (td, ce)], ROUNDS)
    of = f"{ROUNDS} training steps in turns of networks made for it, one core"
    what = "a training step, times CascadedCE's"
    ratio, paper = steps[0] / steps[1], HOURS_TD / HOURS_CE
    return [*clock, Row("cifar10", "", TD0, what, ratio, None, None, "", "no interval", of, (), paper)]


def _clock(network: Network, work: Work) -> Row:
    """The mean over seeds of what the runs took, whatever else the machine did at the time."""
    from cascaded.paper.reproduce import place_of

    folders = [job.folder for job in work.jobs(network)]
    hours = [(last_metrics(folder) or {})["seconds"] / 3600 for folder in folders]
    model = spoken(find_subjects(folders[:1])[0].label)
    runs = tuple(place_of(str(folder), work.runs) for folder in folders)
    mean, of = sum(hours) / len(hours), "the clock of the runs, other work beside them"
    return Row(
        network.data, "", model, "training time", mean, None, None, "h", "no interval", of, runs, HOURS.get(model)
    )
