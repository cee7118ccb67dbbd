"""Pictures from inside: galleries that were kept, states of the networks as they are now, explorers by image set."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from cascaded.cli.main import run
from cascaded.data.sources import load
from cascaded.exhibits.images import latency_section
from cascaded.exhibits.inside import explorers, schedule_section, seen
from cascaded.exhibits.kinds import Pictures
from cascaded.exhibits.material import gather
from cascaded.results.galleries import KINDS, ends_file
from cascaded.traces.activations import Activations, save_activations
from tests.made_materials import analyse
from tests.made_traces import CLASSES, facts, made_run, made_trace


def made_states(seed=0, items=3, digest="these", **values):
    rng = np.random.default_rng(seed)
    told = {"data": "digits", "split": "test", "items": digest, "classes": CLASSES, **values}
    config, provenance = facts(**told).values()
    return Activations(
        config,
        provenance,
        rng.integers(0, 256, (items, 1, 8, 8)).astype(np.uint8),
        np.arange(items) % 4,
        np.arange(items),
        rng.normal(size=(5, items, 4)).astype(np.float32) * 3,
        rng.integers(0, 256, (5, items, 3, 8, 8)).astype(np.uint8),
        rng.random((5, items, 3)).astype(np.float32),
        rng.random((4, 2)).astype(np.float32),
        np.eye(4, 2, dtype=np.float32),
    )


def runs_with_states(folder, **by_name):
    """Runs, each with states: `td=(spec, states)`."""
    for name, (spec, states) in by_name.items():
        save_activations(states, made_run(folder / name / "0", **spec) / "activations" / "s.safetensors")
    return gather([folder])


def test_probabilities_are_softmax_of_what_was_said(tmp_path):
    states = made_states()
    material = runs_with_states(tmp_path, td=({}, states))
    (explorer,) = explorers(material, seen(material)[0])
    z = states.logits.astype(float)
    expected = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(explorer.models[0].probabilities, expected, atol=1e-6)
    assert (explorer.data, explorer.classes, explorer.labels) == ("digits test", CLASSES, (0, 1, 2))
    assert explorer.images.shape == (3, 8, 8, 3)
    assert (explorer.images == states.images[:, 0, :, :, None]).all()
    assert (explorer.models[0].maps == states.maps).all()


def test_networks_that_were_shown_the_same_images_stand_in_one_explorer(tmp_path):
    material = runs_with_states(
        tmp_path,
        a=({}, made_states(1)),
        b=({"lam": 1.0}, made_states(2, kernel="ews:0.9")),
        c=({"model": "cascaded-ce"}, made_states(3, items=2, digest="others")),
        d=({"model": "serial-td"}, made_states(4, kernel="none", schedule="serial")),
        e=({"model": "serial-ce"}, made_states(5, schedule="cascaded")),
    )
    one, other = explorers(material, seen(material)[0])
    assert [each.model for each in one.models] == [
        "CascadedTD(0)",
        "SerialCE, cascaded",  # taught at its last step: the two that are shown first differ most
        "CascadedTD(1), ews:0.9",
        "SerialTD(0)",
    ]
    assert [each.model for each in other.models] == ["CascadedCE"]
    assert (len(one.labels), len(other.labels)) == (3, 2)


def test_states_of_images_of_other_classes_are_not_shown(tmp_path):
    material = runs_with_states(tmp_path, a=({}, made_states(1, in_distribution=False)))
    found, notes = seen(material)
    assert found == []
    assert "is of images of other classes than the network's: it cannot be shown" in notes[0]


def test_networks_that_tell_other_classes_apart_stand_in_explorers_of_their_own(tmp_path):
    others = made_states(2, classes=(*CLASSES[:-1], "other"))
    material = runs_with_states(tmp_path, a=({}, made_states(1)), b=({"lam": 1.0}, others))
    assert [[each.model for each in explorer.models] for explorer in explorers(material, seen(material)[0])] == [
        ["CascadedTD(0)"],
        ["CascadedTD(1)"],
    ]


def test_a_model_in_fine_time_keeps_its_colour(tmp_path):
    material = runs_with_states(tmp_path, a=({}, made_states(1, kernel="ews:0.9")))
    (explorer,) = explorers(material, seen(material)[0])
    assert (explorer.models[0].model, explorer.models[0].of) == ("CascadedTD(0), ews:0.9", "CascadedTD(0)")


def test_of_several_seeds_the_first_that_has_states_is_shown(tmp_path):
    made_run(tmp_path / "td" / "0")
    for seed in (1, 2):
        folder = made_run(tmp_path / "td" / str(seed), seed=seed)
        save_activations(made_states(seed), folder / "activations" / "s.safetensors")
    found, _ = seen(gather([tmp_path]))
    assert [(each.states.images == made_states(1).images).all() for each in found] == [True]


def test_states_that_are_damaged_are_passed_over_and_said_to_be(tmp_path):
    folder = made_run(tmp_path / "0")
    (folder / "activations").mkdir()
    (folder / "activations" / "odd.safetensors").write_bytes(b"odd")
    found, (note,) = seen(gather([folder]))
    assert found == []
    assert "odd.safetensors cannot be read" in note


def test_both_schedules_are_those_that_were_recorded_of_one_network(tmp_path):
    serial = replace(made_states(1, schedule="serial"), cascaded=np.zeros((0, 2), dtype=np.float32))
    states = made_states(2)
    material = runs_with_states(tmp_path, a=({"model": "serial-td"}, serial), b=({}, states))
    (figure,) = schedule_section(material, seen(material)[0]).figures
    schedules = dict(figure.body.schedules)
    assert figure.body.model == "CascadedTD(0)"  # the serial one has no cascade to draw
    assert (schedules["serial"] == states.serial).all()
    assert (schedules["cascaded"] == states.cascaded).all()


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    """A run on digits whose gallery was drawn, and the images of both of its ends."""
    folder = tmp_path_factory.mktemp("pictured") / "0"
    images = load("digits", "test")
    trace = made_trace(items=40, images=images.fingerprint(), indices=images.indices[:40].numpy())
    made_run(folder, {"t": trace})
    run(["analyse", str(folder), "--only", "selection_latency"])
    return folder, images


def gallery(folder):
    section = latency_section(gather([folder]))
    return [figure for figure in section.figures if isinstance(figure.body, Pictures)], section.notes


def test_a_gallery_shows_the_images_that_were_kept_with_their_class_and_step(pictured):
    folder, images = pictured
    material = gather([folder])
    (asked,) = material.rows("selection_latency")
    ends = material.answers(asked.row)["cascaded-td(0)"][0]["gallery"]["overall"]
    (figure,), notes = gallery(folder)
    place_of = {row: place for place, row in enumerate(images.indices.tolist())}
    assert [label for label, _ in figure.body.rows] == ["fastest first", "slowest first"]
    for (_, thumbs), kind in zip(figure.body.rows, KINDS, strict=True):
        assert len(thumbs) == len(ends[kind]) > 0
        for thumb, told in zip(thumbs, ends[kind], strict=True):
            pixels = images.images[place_of[told["index"]]].permute(1, 2, 0).expand(-1, -1, 3)
            assert torch.equal(torch.tensor(np.ascontiguousarray(thumb.pixels)), pixels)
            when = "never" if told["failed"] else f"{told['latency']:g}"
            assert thumb.caption == f"{CLASSES[told['label']]}, {when}"
            assert thumb.about == f"row {told['index']}"
    assert notes == []


@pytest.mark.parametrize("change", ["one fewer", "damaged", "gone"])
def test_a_gallery_whose_images_cannot_be_told_is_left_out(pictured, tmp_path, change):
    folder = shutil.copytree(pictured[0], tmp_path / "0")
    file = ends_file(gather([folder]).subjects[0], "t")
    if change == "one fewer":
        ends = load_file(file)
        save_file({**ends, "slowest": ends["slowest"][1:]}, file)
    elif change == "damaged":
        file.write_bytes(b"odd")
    else:
        file.unlink()
    found, notes = gallery(folder)
    assert found == []
    assert notes == ["No image is shown: cascaded analyse draws galleries where the data is at hand."]


def test_galleries_are_of_fine_time_where_there_is_some(pictured, tmp_path):
    folder = shutil.copytree(pictured[0], tmp_path / "0")
    whole = made_trace(1, items=40, images=pictured[1].fingerprint(), indices=np.arange(40), kernel="osd")
    made_run(folder, {"whole": whole})
    analyse(folder, "selection_latency")
    section = latency_section(gather([folder]))
    lines = [figure.title for figure in section.figures if not isinstance(figure.body, Pictures)]
    assert lines == ["When images settle, digits, whole steps", "When images settle, digits, ews:0.9"]
    assert ["ews:0.9" in figure.caption for figure in gallery(folder)[0]] == [True]
