"""Recorded activations for the explorer and the figure of both schedules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cascaded.errors import InputError
from cascaded.figures.style import color
from cascaded.report.explorer import Explorer
from cascaded.results.names import display_name
from cascaded.traces.activations import Activations, load_activations
from cascaded.training.runs import weights_digest


def find_activations(runs: Iterable[Path]) -> tuple[list[Activations], list[str]]:
    """The activations of the runs' current weights, one seed per network; and why others cannot be used."""
    found: dict[tuple[object, ...], Activations] = {}
    notes = []
    for file in (file for run in runs for file in sorted((run / "activations").glob("*.safetensors"))):
        try:
            own = load_activations(file)
        except InputError as error:
            notes.append(str(error))
            continue
        now, then = weights_digest(file.parent.parent), own.provenance.weights
        if now is not None and now != then:
            notes.append(f"{file} has weights {then[:12]}, the last checkpoint has {now[:12]}: record it again.")
        elif own.provenance.in_distribution:
            found.setdefault((_name(own), *_images(own)), own)
    return sorted(found.values(), key=_order), notes


def explorers(found: Sequence[Activations]) -> tuple[Explorer, ...]:
    """One explorer per set of images, the one with the most networks first."""
    sets: dict[tuple[object, ...], dict[str, Activations]] = {}
    for own in found:
        sets.setdefault(_images(own), {})[_name(own)] = own
    return tuple(sorted(sets.values(), key=len, reverse=True))


def explorer_color(own: Activations) -> str:
    """The color of a network, as in figures."""
    return color(own.provenance.method, last_lam(own.provenance.lam), own.config.schedule)


def _images(own: Activations) -> tuple[object, ...]:
    return own.config.data, own.config.split, own.provenance.images, own.provenance.items, own.provenance.classes


def _order(own: Activations) -> tuple[int, float]:
    """The two that differ most come first: TD with the lowest lambda, then cross-entropy at the last step."""
    lam = last_lam(own.provenance.lam)
    return 2 if lam == 1 else {"cascaded-td": 0, "cascaded-ce": 1}.get(own.provenance.method, 2), lam or 0.0


def last_lam(lam: float | tuple[float, ...] | None) -> float | None:
    """The lambda of a network; of a schedule of lambdas its last."""
    return lam[-1] if isinstance(lam, tuple) else lam


def _name(own: Activations) -> str:
    name = display_name(own.provenance.method, last_lam(own.provenance.lam), own.config.schedule)
    return name if own.config.time == "coarse" else f"{name}, {own.config.kernel}"
