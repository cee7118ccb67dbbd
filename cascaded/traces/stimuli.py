"""What people were shown, as recordings: gray images, with noise or blurred, and color images."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cascaded.errors import InputError
from cascaded.traces.config import RecordingConfig

READINGS = {"noise": ("noise",), "blur": ("blur", "blur-190"), "color": ("color", "color-swapped")}
"""How a manipulation can be read, the likelier one first.

The sigma of blur may be in pixels of the 32 px image, or of the 190 px image on the screen. Level 1 of color may be the
color images and level 0 the gray ones, or the other way around.
"""
CONDITIONS = (
    *(("noise", level) for level in (0.0, 0.04, 0.16)),
    *(("blur", level) for level in (0.0, 1.0, 3.0)),
    *(("color", level) for level in (0.0, 1.0)),
)
"""Manipulations and levels of the answers in `cascaded.data.human`."""


def noise_of(reading: str, level: float) -> str | None:
    """The noise, as `cascaded record --noise` takes it, that shows what people were shown; None for color images.

    Args:
        reading: A manipulation as it is read: noise, blur, blur-190, color or color-swapped.
        level: Standard deviation of the noise, sigma of the blur, or which of the two levels of color.
    """
    if reading.startswith("color"):
        if level not in (0, 1):
            raise InputError(f"color has level {level:g}: give 0 and 1")
        return None if level == (reading == "color") else "gray"
    if level == 0:
        return "gray"
    return {
        "noise": f"gray:sd={level:g}",
        "blur": f"gray:sigma={level:g}",
        "blur-190": f"gray:sigma={level:g},side=190",
    }[reading]


def human_recordings(
    config: RecordingConfig | None = None, conditions: Iterable[tuple[str, float]] = CONDITIONS
) -> tuple[RecordingConfig, ...]:
    """The recordings of everything that people were shown, each once: color images first, then gray ones.

    Args:
        config: How the network is run, and on which images.
        conditions: Manipulations and levels.
    """
    config = config or RecordingConfig()
    if config.noise is not None or config.protocol is not None:
        given = config.noise or config.protocol
        raise InputError(f"--human has its own noises, and {given} is given: leave out --noise and --protocol")
    noises = [noise_of(reading, level) for name, level in conditions for reading in READINGS[name]]
    distinct = sorted(dict.fromkeys(noises), key=lambda noise: noise is not None)
    return tuple(config if each is None else replace(config, noise=each, protocol="still") for each in distinct)
