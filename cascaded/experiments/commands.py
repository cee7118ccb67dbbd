"""An item as commands that one can type: what `cascaded reproduce` does, step by step."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import TYPE_CHECKING

from cascaded.experiments.showings import shown_to
from cascaded.recording.command import Showing

if TYPE_CHECKING:
    from cascaded.experiments.carry_out import Work
    from cascaded.experiments.network import Network
    from cascaded.experiments.stages import Shown


def commands_for(work: Work) -> list[str]:
    """Train, record, analyse, report: the same runs in the same folders."""
    found = [_train(network, work) for network in work.networks]
    for network in work.networks:
        found += [_record(network, shown, work) for shown in shown_to(network, work.item, work.scale)]
    if work.item.analyses:
        only = " ".join(work.item.analyses)
        epochs = f" --epochs {work.scale.learned}" if work.scale.learned != 300 else ""
        found += [f"cascaded analyse {_typed(work.runs / part)} --only {only}{epochs}" for part in work.parts]
    return found


def _train(network: Network, work: Work) -> str:
    words = [*work.scale.options(network).arguments(), "--models", network.model]
    words += [] if network.lam is None else ["--lam", network.lam]
    words += ["--seeds", *map(str, work.scale.seeds_of(network))]
    words += [] if network.folds is None else ["--folds", str(network.folds)]
    return f"cascaded sweep {shlex.join(words)} --out {_typed(work.runs / network.part)}"


def _record(network: Network, shown: Shown, work: Work) -> str:
    words: list[str] = []
    for field in fields(Showing):
        value = getattr(shown.showing, field.name)
        if value != field.default and value is not None:
            words += ["--" + field.name, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    words += ["--embeddings"] if shown.embeddings else []
    return " ".join(["cascaded record", _typed(work.runs / network.part / network.name), *words])


def _typed(path) -> str:
    return shlex.quote(path.as_posix())
