"""What the networks of an item are shown, at a scale."""

from __future__ import annotations

from dataclasses import replace

from cascaded.paper.experiments import Item
from cascaded.paper.network import Network
from cascaded.paper.scales import FINE, Scale
from cascaded.traces.config import RecordingConfig


def shown_to(network: Network, item: Item, scale: Scale) -> list[RecordingConfig]:
    """Everything that an item shows a network; nothing twice."""
    found = [shown for what in item.shows for shown in _shown(what, network, scale)]
    return list(dict.fromkeys(found))


def _shown(what: str, network: Network, scale: Scale) -> list[RecordingConfig]:
    if network.folds:  # a fold has images of its own alone
        return [_fine(scale, split="validation", embeddings=True)] if what == "held out" else []
    if what == "whole":
        return [RecordingConfig(max_images=scale.test)]
    if what == "serial":  # the paper's SerialCE has the weights of CascadedCE
        return [RecordingConfig(max_images=scale.test, schedule="serial")] if network.model == "cascaded-ce" else []
    if what in ("persistent", "transient"):
        return _noisy(what == "transient", network, scale)
    if network.is_serial:
        return []
    if what == "fine":
        return [_fine(scale, max_images=scale.fine, embeddings=True)]
    if what == "held out":
        return [_fine(scale, split="validation", max_images=scale.held_out, embeddings=True)]
    others = [(data, split) for data in scale.outside for split in ("validation", "test")]
    return [_fine(scale, data=data, split=split, max_images=scale.other) for data, split in others]


def _fine(scale: Scale, **more: str | int | None) -> RecordingConfig:
    return replace(RecordingConfig(kernel=FINE, steps=scale.steps), **more)


def _noisy(passing: bool, network: Network, scale: Scale) -> list[RecordingConfig]:
    """A network under its own noise; CascadedCE also with every frame processed in full, which is SerialCE x 9."""
    showing = RecordingConfig(noise=network.noise, trials=scale.trials, max_images=scale.noisy)
    if passing:
        showing = replace(showing, protocol="transient")
    schedules = (None, "serial") if network.model == "cascaded-ce" else (None,)
    return [replace(showing, schedule=schedule) for schedule in schedules]
