"""Delete what is not to be kept of a network once everything is measured. Its results always stay."""

from __future__ import annotations

import shutil
from pathlib import Path

from cascaded.files import write_whole
from cascaded.paper.work import DONE, Keep
from cascaded.training.run_file import WEIGHTS
from cascaded.training.runs import checkpoint_places, is_whole


def tidy(folder: Path, keep: Keep) -> None:
    """Delete what is not kept of a finished network; killed on the way, the next call deletes the rest.

    Args:
        folder: The folder of the run.
        keep: weights: weights, configuration, metrics and results; traces: everything; none: configuration, metrics and
            results.
    """
    if keep == "traces":
        return
    shutil.rmtree(folder / "traces", ignore_errors=True)
    places = checkpoint_places(folder)
    whole = [place for place in places if is_whole(place)]
    if keep == "weights" and places and not whole and not (folder / WEIGHTS).exists():
        return  # no checkpoint is intact: what there is may still be repaired
    if keep == "weights" and whole:  # the same bytes: recordings and networks that start from them name their digest
        write_whole(folder / WEIGHTS, lambda part: shutil.copyfile(whole[-1] / WEIGHTS, part))
    for place in places:  # the newest last: until then, its weights are those of the run
        shutil.rmtree(place)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    if keep == "none":
        (folder / WEIGHTS).unlink(missing_ok=True)
        shutil.rmtree(folder / "stoppers", ignore_errors=True)


def tidy_fold(folder: Path, keep: Keep) -> None:
    """The same for a fold. Its part of `done.json` goes with its traces, so that it is recorded again if need be."""
    if keep != "traces":
        (folder / DONE).unlink(missing_ok=True)
    tidy(folder, keep)
