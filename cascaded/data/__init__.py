"""Data: images as one tensor with labels, and their augmentation and noise."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.data.images import Images as Images
    from cascaded.data.sources import SOURCES as SOURCES
    from cascaded.data.sources import Source as Source
    from cascaded.data.sources import augmentation as augmentation
    from cascaded.data.sources import load as load
    from cascaded.data.split import hold_out as hold_out
    from cascaded.data.split import limit as limit

__getattr__, __dir__ = lazy(__name__)
