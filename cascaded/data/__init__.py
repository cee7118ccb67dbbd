"""Data: images as one tensor, their labels, and what is done to them on the way to a network."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cascaded.data.images import Images
    from cascaded.data.sources import SOURCES, Source, augmentation, load
    from cascaded.data.split import hold_out, limit

__all__ = ["SOURCES", "Images", "Source", "augmentation", "hold_out", "limit", "load"]

_HOMES = {
    "cascaded.data.images": ("Images",),
    "cascaded.data.sources": ("SOURCES", "Source", "augmentation", "load"),
    "cascaded.data.split": ("hold_out", "limit"),
}


def __getattr__(name: str):
    # as in `cascaded` itself: the command line answers `--help` without torch
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'cascaded.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
