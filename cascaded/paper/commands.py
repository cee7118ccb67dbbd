"""An item as commands that one can type: what `cascaded reproduce` does, step by step."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import TYPE_CHECKING

from cascaded.paper.showings import shown_to
from cascaded.traces.config import RecordingConfig

if TYPE_CHECKING:
    from cascaded.paper.network import Network
    from cascaded.paper.reproduce import Work
    from cascaded.training.sweep import Job


def commands_for(work: Work) -> list[str]:
    """Train, record, analyse, report: the same runs in the same folders."""
    found = [_train(job) for job in dict.fromkeys([*work.first(), *work.asked()])]
    for network in work.networks:
        found += [_record(network, shown, work) for shown in shown_to(network, work.item, work.scale)]
    if work.item.analyses:
        only = " ".join(work.item.analyses)
        epochs = f" --epochs {work.scale.learned}" if work.scale.learned != 300 else ""
        found += [f"cascaded analyse {_typed(work.runs / part)} --only {only}{epochs}" for part in work.parts]
    return found


def _train(job: Job) -> str:
    return f"cascaded train {shlex.join(job.arguments())}"


def _record(network: Network, shown: RecordingConfig, work: Work) -> str:
    words: list[str] = []
    for field in fields(RecordingConfig):
        value = getattr(shown, field.name)
        if value is True:
            words.append("--" + field.name)
        elif value != field.default and value is not None:
            words += [
                "--" + field.name.replace("_", "-"),
                *(map(str, value) if isinstance(value, tuple) else [str(value)]),
            ]
    return " ".join(["cascaded record", _typed(work.runs / network.part / network.name), *words])


def _typed(path) -> str:
    return shlex.quote(path.as_posix())
