"""An experiment as commands: what `cascaded reproduce` does, step by step."""

from __future__ import annotations

import shlex

from cascaded.paper.reproduce import Reproduction
from cascaded.shell import program, to_args
from cascaded.traces.config import RecordingConfig
from cascaded.training.config import ExecutionConfig

FIT_EPOCHS = 300
"""The default of `cascaded analyze --epochs`."""


def commands(work: Reproduction) -> list[str]:
    """Train, record, analyze: the same runs in the same folders."""
    execution = ExecutionConfig(deterministic=work.scale.deterministic)
    found = [["train", *job.arguments(execution)] for job in work.all_jobs()]
    for network in work.networks:
        folder = (work.runs / network.part / network.name).as_posix()
        recordings = work.scale.recordings(network, work.experiment)
        found += [["record", folder, *to_args(each, RecordingConfig())] for each in recordings]
    epochs = [] if work.scale.fit_epochs == FIT_EPOCHS else ["--epochs", str(work.scale.fit_epochs)]
    draws = [] if work.scale.claim_draws is None else ["--claim-draws", str(work.scale.claim_draws)]
    parts = dict.fromkeys((work.runs / network.part).as_posix() for network in work.networks)
    found += [["analyze", part, "--only", *work.experiment.analyses, *epochs, *draws] for part in parts]
    return [f"{program()} {shlex.join(words)}" for words in found]
