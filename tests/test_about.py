"""What a trace tells of itself, what it is called, and that nothing else of its name is lost or taken for it."""

import shutil
from dataclasses import replace

import pytest
import torch

from cascaded.cascade.named import make_kernel
from cascaded.data.images import Images
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces.about import coarse_of
from cascaded.traces.protocols import Still, Transient
from cascaded.traces.record import record
from cascaded.traces.shown import shown_images
from cascaded.traces.store import load_trace
from cascaded.training.load import load_run
from tests.pictures import image_folder
from tests.tiny_runs import tiny_run  # noqa: F401

OSD, EWS = make_kernel("osd"), make_kernel("ews:0.9")
SHORT = Still(EWS, "cascaded", 3)


@pytest.fixture
def run(tiny_run, tmp_path):  # noqa: F811
    """A run of the test's own to record into."""
    return load_run(shutil.copytree(tiny_run(), tmp_path / "0"))


def some(items):
    return load("digits", "test").select(torch.arange(items))


def recorded(run, images, view, **options):
    """The only trace of a view."""
    (file,) = record(run, images, view, **options)
    return load_trace(file)


def test_the_origin_tells_network_images_and_costs(run):
    images, view = some(4), Still(EWS, "cascaded", 6)
    trace = recorded(run, images, view)
    origin, net = trace.origin, run.net
    assert (origin.run, origin.weights) == (run.folder.as_posix(), run.weights)
    assert (origin.data, origin.split, origin.images) == ("digits", "test", images.fingerprint())
    assert (origin.model, origin.lam, origin.seed, origin.fold) == ("cascaded-td", 0.0, 0, None)
    assert (origin.schedule, origin.kernel, origin.noise) == ("cascaded", "ews:0.9", None)
    assert (origin.known, origin.classes, origin.coarse_of) == (True, images.classes, ())
    assert list(origin.updates) == net.cycles("cascaded", kernel=EWS, steps=6)
    assert list(origin.operations) == net.operations(8, 8, "cascaded", kernel=EWS, steps=6)
    assert origin.made_with["torch"] == torch.__version__


def test_the_labels_of_other_data_are_not_the_network_s(run, tmp_path):
    place = image_folder(tmp_path / "other", [f"test/kind {number}" for number in range(12)], each=1, grey=True)
    images, items = shown_images(run, str(place), "test")
    trace = recorded(run, images, SHORT, items=items)
    assert not trace.origin.known
    assert trace.labels.tolist() == list(range(12))  # two more than the network knows
    assert (trace.origin.classes, trace.classes) == (run.inputs.classes, 10)
    (file,) = (run.folder / "traces").glob("*.safetensors")
    assert file.name.startswith("other-")


def two_levels(labels, coarse, classes=("ant", "bee", "cat")):
    labels = torch.tensor(labels)
    pixels = torch.zeros(len(labels), 1, 8, 8, dtype=torch.uint8)
    return Images("made", "test", pixels, labels, classes, torch.arange(len(labels)), torch.tensor(coarse), ("a", "b"))


def test_every_class_has_its_coarser_one():
    assert coarse_of(two_levels([2, 0, 1, 2], [1, 0, 0, 1])) == (0, 0, 1)


@pytest.mark.parametrize(
    ("labels", "coarse"), [([2, 0, 1, 2], [1, 0, 0, 0]), ([0, 1, 1], [0, 1, 1])], ids=["in two groups", "not there"]
)
def test_a_class_in_two_groups_or_in_none_leaves_one_level(labels, coarse):
    assert coarse_of(two_levels(labels, coarse)) == ()
    assert coarse_of(replace(two_levels(labels, coarse), coarse=None)) == ()


def test_coarser_classes_are_told_where_the_classes_are_the_network_s(run):
    names = run.inputs.classes
    images = two_levels([*range(10)], [number % 2 for number in range(10)], names)
    trace = recorded(run, images, SHORT)
    assert trace.origin.coarse_of == (0, 1) * 5
    assert trace.origin.coarse_classes == ("a", "b")
    other = recorded(run, replace(images, name="other", classes=names[::-1]), SHORT)
    assert (other.origin.coarse_of, other.origin.coarse_classes) == ((), ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run, images: (replace(run, weights="another"), images, {}), "weights {weights:.12}..., now another"),
        (lambda run, images: (run, replace(images, images=images.images + 1), {}), "images {images:.12}..., now"),
        (lambda run, images: (run, images, {"embeddings": True}), "embeddings False, now True"),
        (lambda run, images: (run, images, {"items": torch.arange(9, -1, -1)}), "rows"),
        (lambda run, images: (run, images, {"items": torch.arange(9)}), "items 10, now 9"),
    ],
    ids=["weights", "images", "embeddings", "rows", "items"],
)
def test_something_else_of_the_same_name_is_refused_and_replaced_if_asked(run, change, told):
    images = some(10)
    (file,) = record(run, images, SHORT)
    before = file.read_bytes()
    other, others, options = change(run, images)
    with pytest.raises(
        InputError, match=f"{file} was recorded with .* is asked for: say --again to replace it"
    ) as raised:
        record(other, others, SHORT, **options)
    assert told.format(weights=run.weights, images=images.fingerprint()) in str(raised.value)
    assert file.read_bytes() == before
    record(other, others, SHORT, again=True, **options)
    assert file.read_bytes() != before
    assert record(other, others, SHORT, **options) == {file: False}


def test_fewer_images_of_a_validation_set_are_another_trace_of_the_same_name(run):
    images, items = shown_images(run, None, "validation")
    (file,) = record(run, images, SHORT, items=items)
    with pytest.raises(InputError, match=f"items {len(items)}, now 20 is asked for"):
        record(run, images, SHORT, items=items[:20])
    assert load_trace(file).items == len(items)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 1}, "noise seed 0, now 1 is"),
        ({"trials_each": 2}, "noise trials 1, now 2 is"),
        ({"before": 3}, "noise onset 2, now 4 is"),
    ],
)
def test_other_noise_of_the_same_name_is_refused(run, change, told):
    view, images = Transient(OSD, "cascaded", "focus", 1, lengths=(1,), before=1, after=1), some(3)
    record(run, images, view)
    with pytest.raises(InputError, match=f"was recorded with {told}"):
        record(run, images, replace(view, **change))


def test_a_longer_film_of_the_same_name_is_refused(run):
    view, images = Transient(OSD, "cascaded", "focus", 1, lengths=(1,), before=1, after=1), some(3)
    record(run, images, view)
    with pytest.raises(InputError, match="was recorded with steps 3, now 6 is asked for"):
        record(run, images, replace(view, after=4))


def test_a_part_of_the_images_has_a_name_of_its_own(run):
    images = some(30)
    (whole,), (ten,) = record(run, images, SHORT), record(run, images, SHORT, items=torch.arange(10), part="-10images")
    assert [file.name for file in (whole, ten)] == [
        "digits-test-ews0.9-3.safetensors",
        "digits-test-ews0.9-3-10images.safetensors",
    ]


def test_folders_of_one_name_in_two_places_have_traces_of_their_own(run):
    names = ["here/pictures", "there/pictures"]
    files = [next(iter(record(run, replace(some(3), name=name), SHORT))).name for name in names]
    assert len(set(files)) == 2
    assert all(file.startswith("pictures-") and file.endswith("-test-ews0.9-3.safetensors") for file in files)


def test_half_precision_does_not_do_where_full_is_asked_for(run):
    (file,) = record(run, some(3), SHORT, half=True)
    with pytest.raises(InputError, match="was recorded with half True, now False is asked for: say --again"):
        record(run, some(3), SHORT)
    assert record(run, some(3), SHORT, again=True) == {file: True}
    assert record(run, some(3), SHORT, half=True) == {file: False}  # more than was asked for
