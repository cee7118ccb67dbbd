"""Inside the networks: both schedules, and the explorer's images with what every block makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascaded.errors import InputError
from cascaded.exhibits.kinds import Figure, Missing, Section, Squares
from cascaded.exhibits.material import Material
from cascaded.exhibits.page import Explorer, Watched
from cascaded.results.asked import is_fine
from cascaded.results.subjects import Subject
from cascaded.traces.activations import Activations, load_activations
from cascaded.training.method import CE
from cascaded.training.runs import weights_digest

COUNT = 40
"""Images of an explorer that a command asks for."""


@dataclass(frozen=True)
class Seen:
    """States of one condition: of its first seed that has some."""

    label: str
    states: Activations


def seen(material: Material) -> tuple[list[Seen], tuple[str, ...]]:
    """All states that were recorded of the networks as they are now, one seed a condition; and what cannot be used."""
    found, notes = [], []
    groups = {each.group.label: each.group for each in material.conditions}
    for label, group in groups.items():
        for _, answered in sorted(group.by_seed.items()):
            usable, why = _states(answered.subject)
            notes += why
            found += [Seen(label, states) for states in usable]
            if usable:
                break
    return found, tuple(notes)


def _states(subject: Subject) -> tuple[list[Activations], list[str]]:
    """What was recorded of a subject, of folds of the first; and why some of it cannot be used."""
    run = subject.runs[0]
    files = sorted((run / "activations").glob("*.safetensors"))
    weights = weights_digest(run) if files else None
    looked = [_current(file, weights) for file in files]
    return [each for each in looked if isinstance(each, Activations)], [
        each for each in looked if isinstance(each, str)
    ]


def _current(file: Path, weights: str | None) -> Activations | str:
    """States of the network as it is now; or why they cannot be used."""
    try:
        states = load_activations(file)
    except InputError as error:
        return str(error)
    if not states.provenance.in_distribution:
        return f"{file} is of images of other classes than the network's: it cannot be shown"
    there = states.provenance.weights
    if weights is None or there == weights:
        return states
    return f"{file} is of weights {there[:12]}, the run's last checkpoint has {weights[:12]}: record it again"


def wanting(material: Material) -> Missing:
    """What would have to be recorded."""
    return Missing("what every block holds at every step", f"cascaded record {material.words} --activations {COUNT}")


def unexplored(material: Material, shown: Sequence[Explorer]) -> tuple[Missing, ...]:
    """What would have to be recorded for all models to stand beside each other; nothing where they do."""
    if not shown:
        return (wanting(material),)
    own = {material.names[each.label] for each in material.conditions if each.label == each.group.label}
    first = {watched.of for watched in shown[0].models}
    if len(shown) > 1 and len({subject.config.data for subject in material.subjects}) > 1:
        first = {watched.of for explorer in shown for watched in explorer.models}  # each data has its own
    lacking = [name for name in material.names.values() if name in own - first]
    if not lacking:
        return ()
    what = f"what every block of {', '.join(dict.fromkeys(lacking))} holds, for the images the others were shown"
    return (Missing(what, f"cascaded record {material.words} --activations {len(shown[0].labels)}"),)


def schedule_section(material: Material, found: list[Seen]) -> Section:
    """One network under both schedules."""
    lead = (
        "The same network, run in two ways. Serially, a block is computed when its input has settled: one block a "
        "cycle. In a cascade all blocks are computed at every step, from what has arrived so far."
    )
    drawn = [each for each in found if len(each.states.cascaded)]
    if not drawn:
        return Section("schedules", "Two schedules", lead, (), (wanting(material),))
    first = drawn[0]
    name = material.names[first.label]
    body = Squares((("serial", first.states.serial), ("cascaded", first.states.cascaded)), name)
    caption = (
        f"A square is a block at a step of {name}, on {first.states.config.data} {first.states.config.split}. Serial: "
        "filled once the block has been computed. Cascaded: the fuller, the further it has come from what it holds at "
        "step 1 to what it holds in the end, as a mean over eight images."
    )
    return Section("schedules", "Two schedules", lead, (Figure("schedules", "Two schedules", caption, body),))


def explorers(material: Material, found: list[Seen]) -> tuple[Explorer, ...]:
    """For each set of images that networks were watched with, all of them that were."""
    sets: dict[tuple[object, ...], list[Seen]] = {}
    for each in found:
        config, source = each.states.config, each.states.provenance
        kind = (config.data, config.split, source.items, source.classes)
        sets.setdefault(kind, []).append(each)
    made = []
    for (data, split, *_), some in sets.items():
        first = some[0].states
        images = np.broadcast_to(first.images, (len(first.images), 3, *first.images.shape[2:])).transpose(0, 2, 3, 1)
        models = tuple(_watched(material, each) for each in _contrasting(material, some))
        labels = tuple(int(label) for label in first.labels)
        made.append(Explorer(f"{data} {split}", first.provenance.classes, images, labels, models))
    return tuple(sorted(made, key=lambda explorer: -len(explorer.models)))


def _contrasting(material: Material, some: list[Seen]) -> list[Seen]:
    """The first model, then one that was taught at its last step alone, if there is one: these two are shown first."""
    taught_late = {
        each.group.label for each in material.conditions if isinstance(each.group.first.config.get_method().loss, CE)
    }
    late = [each for each in some[1:] if each.label in taught_late][:1]
    return [*some[:1], *late, *(each for each in some[1:] if each not in late)]


def _watched(material: Material, each: Seen) -> Watched:
    from cascaded.analysis.outputs import softmax

    origin, states = each.states.config, each.states
    name = material.names[each.label]
    own = next(c.group.first.config.get_method().schedule for c in material.conditions if c.group.label == each.label)
    fine = f", {origin.kernel}" if is_fine(origin.kernel) else ""
    other = f", {origin.schedule}" if origin.schedule != own else ""
    probabilities = softmax(states.logits).astype(np.float32)
    return Watched(f"{name}{other}{fine}", probabilities, states.maps, states.convergence, name)
