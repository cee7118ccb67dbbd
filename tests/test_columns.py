"""Columns are detected if there is one candidate; classes are selected by name, first synonym or WordNet id."""

import pytest
from datasets import ClassLabel, Image, Value

from cascaded.data.catalogue import TERRIERS
from cascaded.data.columns import Columns, find_columns, names_of_values, select_classes
from cascaded.errors import InputError

IMAGE, CLASS, NUMBER, TEXT, FLOAT = Image(), ClassLabel(names=["a"]), Value("int64"), Value("string"), Value("float32")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"img": IMAGE, "label": CLASS}, ("img", "label")),
        ({"photo": IMAGE, "breed": CLASS, "id": NUMBER}, ("photo", "breed")),
        ({"photo": IMAGE, "labels": NUMBER}, ("photo", "labels")),
        ({"photo": IMAGE, "class": TEXT}, ("photo", "class")),
        ({"img": IMAGE, "fine_label": CLASS, "coarse_label": CLASS}, ("img", "fine_label")),
        ({"photo": IMAGE, "id": NUMBER}, ("photo", None)),
        ({"photo": {"bytes": Value("binary"), "path": TEXT}, "label": NUMBER}, ("photo", "label")),
        ({"photo": Value("binary"), "label": NUMBER}, ("photo", "label")),
    ],
)
def test_unambiguous_columns_are_detected(features, expected):
    columns = find_columns(Columns(), features)
    assert (columns.image, columns.label) == expected


@pytest.mark.parametrize(
    ("given", "features", "message"),
    [
        (Columns(image="pic"), {"img": IMAGE, "label": CLASS}, "no column 'pic', there are img, label: .*--image-c"),
        (Columns(label="kind"), {"img": IMAGE, "label": CLASS}, "no column 'kind', there are img, label: .*--label-c"),
        (Columns(), {"left": IMAGE, "right": IMAGE}, "columns left, right all contain images: .*--image-column"),
        (Columns(), {"x": NUMBER, "y": TEXT}, "no column contains images, there are x, y"),
        (Columns(), {"img": IMAGE, "a": CLASS, "b": CLASS}, "columns a, b all contain classes: .*--label-column"),
        (Columns(image="label"), {"img": IMAGE, "label": CLASS}, "column 'label' contains integers, no images"),
        (Columns(label="age"), {"img": IMAGE, "age": FLOAT}, "column 'age' contains float32, labels are integers"),
    ],
)  # fmt: skip
def test_missing_and_ambiguous_columns_are_named(given, features, message):
    with pytest.raises(InputError, match=message):
        find_columns(given, features)


def test_undeclared_classes_are_numbers_up_to_the_largest_or_names_in_order():
    assert names_of_values([3, 0, None, 3]) == ("0", "1", "2", "3")
    assert names_of_values(["wasp", "ant", "wasp"]) == ("ant", "wasp")
    assert names_of_values([]) == ()
    with pytest.raises(InputError, match="too large for class numbers"):
        names_of_values([20_260_101])


HUB = ["tench, Tinca tinca", "goldfish, Carassius auratus", "Airedale, Airedale terrier"]
WORDNET = ["n01440764", "n01443537", "n02096051"]


@pytest.mark.parametrize("name", ["goldfish, Carassius auratus", "goldfish", "n01443537 goldfish, Carassius auratus"])
def test_a_class_goes_by_its_name_and_by_its_first_synonym(name):
    assert select_classes([name], HUB) == [1]


@pytest.mark.parametrize("name", ["n01443537", "n01443537 goldfish, Carassius auratus"])
def test_a_class_goes_by_its_wordnet_id(name):
    assert select_classes([name], WORDNET) == [1]


def test_classes_come_in_the_given_order():
    assert select_classes(["Airedale", "tench"], HUB) == [2, 0]


def test_a_whole_name_wins_over_a_synonym():
    assert select_classes(["crane"], ["crane, bird", "crane"]) == [1]


def test_the_ten_terriers_are_found_under_both_kinds_of_names():
    ids, names = zip(*(terrier.split(" ", 1) for terrier in TERRIERS), strict=True)
    assert len(set(ids)) == len(set(names)) == 10
    assert select_classes(TERRIERS, ids) == select_classes(TERRIERS, names) == list(range(10))


def test_an_unknown_class_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="no class 'goldfsh' among the 3 classes: did you mean 'goldfish'"):
        select_classes(["goldfsh"], HUB)
    with pytest.raises(InputError, match="leave --classes out"):
        select_classes(["cat"], [])


def test_a_class_is_given_once():
    with pytest.raises(InputError, match="'tench, Tinca tinca' is given twice"):
        select_classes(["tench", "tench, Tinca tinca"], HUB)
