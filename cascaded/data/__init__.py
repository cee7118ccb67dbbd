"""Data: images as one tensor with labels, and their augmentation and noise."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

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

__getattr__, __dir__ = lazy(__name__, _HOMES)
