"""C-scores and CIFAR-10H: the right rows of the published files, and one sentence for any other file."""

import io
from pathlib import Path

import numpy as np
import pytest

from cascaded.data.human import COUNTS, CSCORES, cscores, human_counts
from cascaded.errors import InputError
from tests.pictures import REAL, evil_pickle, needs_real, own_places  # noqa: F401

SCORES = np.linspace(0, 1, 50_000)
LABELS = np.arange(50_000) % 10
PEOPLE = np.arange(100_000).reshape(10_000, 10)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Made-up files of the published form."""
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    np.savez(tmp_path / CSCORES, scores=SCORES, labels=LABELS)
    np.save(tmp_path / COUNTS, PEOPLE)
    return tmp_path


def npy(values):
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def test_rows_come_by_index_in_the_given_order(place):
    rows = np.array([49_999, 0, 7, 7])
    assert cscores(rows).tolist() == SCORES[rows].tolist()
    assert cscores(rows, LABELS[rows]).tolist() == SCORES[rows].tolist()
    assert human_counts(np.array([9_999, 3])).tolist() == [PEOPLE[9_999].tolist(), PEOPLE[3].tolist()]
    assert human_counts(np.array([], dtype=int)).shape == (0, 10)


@pytest.mark.parametrize(
    ("read", "rows", "labels", "message"),
    [
        (cscores, [5, 6, 7], [5, 0, 0], r"2 of 3 labels, first that of image 6, differ .*npz.*original order"),
        (cscores, [5, 6, 7], [5, 6], r"3 indices and labels of shape \(2,\)"),
        (cscores, [0, -1], None, "index -1 is not in the 50000 images of cifar10 train: give 0 to 49999"),
        (cscores, [0, 50_000], None, "index 50000 is not in the 50000 images of cifar10 train"),
        (human_counts, [0, -1], None, "index -1 is not in the 10000 images of cifar10 test"),
        (human_counts, [0, 50_000], None, "index 50000 is not in the 10000 images of cifar10 test"),
        (human_counts, [0.5], None, "float64: give one integer per image"),
    ],
)
def test_rows_and_labels_that_do_not_fit_the_files_are_refused(read, rows, labels, message, place):
    with pytest.raises(InputError, match=message):
        read(np.array(rows), None if labels is None else np.array(labels))


@pytest.mark.parametrize(
    ("read", "name", "published"),
    [(cscores, CSCORES, "pluskid.github.io/structural-regularity"), (human_counts, COUNTS, "jcpeterson/cifar-10h")],
)
def test_a_missing_file_is_named_with_its_place_and_where_it_is_published(read, name, published, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=rf"no {name} in \$CASCADED_DATA, which is not set.*{published}"):
        read(np.array([0]))
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path))
    with pytest.raises(InputError, match=rf"no {name} in {tmp_path}: .*{published} and put it there"):
        read(np.array([0]))
    monkeypatch.setenv("CASCADED_DATA", str(tmp_path / "nope"))
    with pytest.raises(InputError, match=r"CASCADED_DATA is .*nope, which does not exist: set it to a folder"):
        read(np.array([0]))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"<html>not found</html>", "pickle"])
@pytest.mark.parametrize(("read", "name"), [(cscores, CSCORES), (human_counts, COUNTS)])
def test_damaged_files_and_pickles_end_in_a_sentence(read, name, content, place):
    (place / name).write_bytes(evil_pickle(place / "ran") if content == "pickle" else content)
    with pytest.raises(InputError, match=r"cannot be read .*: download it again from https"):
        read(np.array([0]))
    assert not (place / "ran").exists()


def test_a_pickle_within_the_file_is_never_opened(place):
    marker = place / "ran"
    header = npy(np.array([None], dtype=object)).split(b"\n")[0] + b"\n"
    (place / COUNTS).write_bytes(header + evil_pickle(marker))
    with pytest.raises(InputError, match=r"cannot be read \(Object arrays cannot be loaded"):
        human_counts(np.array([0]))
    np.savez(place / CSCORES, scores=np.array([{}], dtype=object), labels=LABELS)
    with pytest.raises(InputError, match=r"cannot be read \(Object arrays cannot be loaded"):
        cscores(np.array([0]))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"labels": LABELS}, "contains labels and no scores"),
        ({"scores": SCORES[:7], "labels": LABELS}, r"scores in .* have shape \(7,\) and type float64, \(50000,\)"),
        ({"scores": LABELS, "labels": LABELS}, "type int64, .* of floating are expected"),
        ({"scores": SCORES * 2, "labels": LABELS}, r"scores outside 0\.\.1"),
        ({"scores": SCORES * np.nan, "labels": LABELS}, r"scores outside 0\.\.1"),
        ({"scores": SCORES, "labels": SCORES}, "labels in .* type float64"),
        (PEOPLE[:, :9], r"shape \(10000, 9\) and type int64, \(10000, 10\)"),
        (PEOPLE / 2, "type float64, .* of integer are expected"),
        (PEOPLE - 1, "counts below 0"),
    ],
)
def test_files_of_another_form_are_refused(content, message, place):
    of_scores = isinstance(content, dict)
    np.savez(place / CSCORES, **content) if of_scores else np.save(place / COUNTS, content)
    with pytest.raises(InputError, match=message):
        (cscores if of_scores else human_counts)(np.array([0]), np.array([0]))


@needs_real(CSCORES, COUNTS)
def test_the_real_files_are_read_as_published(monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    rows = np.random.default_rng(0).integers(0, 10_000, 500)
    published = np.load(Path(str(REAL)) / CSCORES, allow_pickle=False)
    assert cscores(rows, published["labels"][rows]).tolist() == published["scores"][rows].tolist()
    people = human_counts(np.arange(10_000))
    assert (people.sum(axis=1) >= 47).all()
    assert people[rows].tolist() == np.load(Path(str(REAL)) / COUNTS, allow_pickle=False)[rows].tolist()
