"""`cascaded reproduce --list`: what there is to reproduce, what is there already, and how long training would take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cascaded.paper.experiments import CLAIMS, ITEMS
from cascaded.paper.ledger import is_reproduced, published
from cascaded.paper.reproduce import RESULTS, Work
from cascaded.paper.scales import Scale
from cascaded.progress import minutes, progress

if TYPE_CHECKING:
    from rich.table import Table


def listing(scale: Scale, out: Path) -> Table:
    """All items, with a progress bar while a few steps of each kind of network are timed."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=f"scale {scale.name}: {scale.about}", title_justify="left")
    for heading in ("item", "shows", "in the paper", "data", "networks", "results", "training left here"):
        table.add_column(heading)
    with progress("timing a few steps", len(ITEMS)) as bar:
        for item in ITEMS.values():
            table.add_row(*_row(Work(item, scale, out)))
            bar.advance(1, f"timing a few steps: {item.name}")
    folder = published(scale.name)
    there = "yes" if is_reproduced(out) else "no" if folder is None else f"published in {folder}"
    table.add_row(CLAIMS, "All claims, from whatever was reproduced", "", "", "", there, "")
    return table


def _row(work: Work) -> list[str]:
    from cascaded.paper.estimate import seconds_left
    from cascaded.training.runs import is_done, read_config

    item, configs, runs = work.item, work.configs(), len(work.asked())
    own = [job.folder for job, config in configs.items() if not read_config(job.folder).differences(config)]
    done, others = sum(map(is_done, own)), len(configs) - len(own)
    trained = f"{done} of {runs} trained" + (f", {others} other runs in their place" if others else "")
    data = list(dict.fromkeys(network.data for network in work.networks))
    data += list(work.scale.outside) if "outside" in item.shows else []
    file, folder = f"{item.name}.json", published(work.scale.name)
    there = "yes" if (work.out / RESULTS / file).exists() else "no"
    if there == "no" and folder is not None and (folder / file).exists():
        there = f"published in {folder}"
    left = seconds_left(work) if done < runs else 0.0
    told = "none" if not left else f"about {minutes(left)}"
    return [
        item.name,
        item.title,
        item.place,
        ", ".join(map(_whence, data)),
        trained,
        there,
        told,
    ]


def _whence(data: str) -> str:
    """A data set, and that the hub would be asked for it where it is not below $CASCADED_DATA."""
    from cascaded.data.sources import SOURCES, local_splits

    source = SOURCES[data]
    return data if source.hub is None or local_splits(source) else f"{data} (from the hub)"
