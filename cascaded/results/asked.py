"""What was asked of a trace, in words that stay true when the trace is gone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

Row = tuple[str, str, str, str]  # analysis, what was asked, of which source, of which of its images


def is_fine(kernel: str) -> bool:
    """Whether time goes in finer steps than a network's own under a kernel."""
    return kernel not in ("osd", "none")


@dataclass(frozen=True)
class Asked:
    """What an analysis was asked of.

    Attributes:
        analysis: Its name.
        what: In words, whatever the schedule: `cifar10 test, 9 cycles, 10000 images`.
        data: Name of the data.
        split: Which part of it.
        images: A digest of all images of that source.
        shown: A digest of the rows that were shown.
        schedule: How the network was run.
        kernel: How results were delayed.
        steps: How many read-outs there were.
        noise: Which noise there was; empty where there was none.
        protocol: How long it lasted: `persistent`, `transient`, or empty.
        count: How many images there were; 0 where an older version has not counted them.
    """

    analysis: str
    what: str
    data: str
    split: str
    images: str
    shown: str
    schedule: str
    kernel: str
    steps: int
    noise: str = ""
    protocol: str = ""
    count: int = 0

    @property
    def is_fine(self) -> bool:
        """Whether time goes in finer steps than the network's own."""
        return is_fine(self.kernel)

    @property
    def time(self) -> str:
        """How time goes, in a word or two."""
        return self.kernel if self.is_fine else "whole steps"

    @property
    def row(self) -> Row:
        """What is asked, of which images: answers to the same stand side by side."""
        return self.analysis, self.what, self.images, self.shown

    def to_json(self) -> dict[str, Any]:
        """As results keep it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Asked:
        """What `to_json` gave; what a later version may have added is passed over."""
        return cls(**{each.name: told[each.name] for each in fields(cls) if each.name in told})
