"""Columns are detected if there is one candidate; classes are selected by name, first synonym or WordNet id."""

import pytest
from datasets import ClassLabel, Image, Value

from cascaded.data.columns import Columns, find_columns, most_numerous, names_of_values, select_classes
from tests.refused import refused

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
    refused(message, find_columns, given, features)


def test_undeclared_classes_are_numbers_up_to_the_largest_or_names_in_order():
    assert names_of_values([3, 0, None, 3]) == ("0", "1", "2", "3")
    assert names_of_values(["wasp", "ant", "wasp"]) == ("ant", "wasp")
    assert names_of_values([]) == ()
    refused("too large for class numbers", names_of_values, [20_260_101])


HUB = ["tench, Tinca tinca", "goldfish, Carassius auratus", "Airedale, Airedale terrier"]
WORDNET = ["n01440764", "n01443537", "n02096051"]


def test_a_class_goes_by_its_name_its_first_synonym_and_its_wordnet_id():
    for name in (HUB[1], "goldfish", f"{WORDNET[1]} {HUB[1]}"):
        assert select_classes([name], HUB) == [1]
    for name in (WORDNET[1], f"{WORDNET[1]} {HUB[1]}"):
        assert select_classes([name], WORDNET) == [1]
    assert select_classes(["Airedale", "tench"], HUB) == [2, 0]  # in the given order
    assert select_classes(["crane"], ["crane, bird", "crane"]) == [1]  # a whole name wins over a synonym


def test_the_most_numerous_classes_with_a_word_in_their_name_are_in_their_order_of_equals_the_first():
    classes = ["Border terrier", "tench", "Airedale, Airedale terrier", "Terrier mix", "cairn", "bullterrier"]
    labels = [1] * 9 + [0] * 2 + [2] * 3 + [3] * 2 + [5] * 4 + [4] * 8
    assert most_numerous(2, "terrier", classes, labels) == ("Airedale, Airedale terrier", "bullterrier")
    assert most_numerous(3, "terrier", classes, labels) == ("Border terrier", *classes[2:6:3])
    assert most_numerous(4, "terrier", classes, labels) == ("Border terrier", *classes[2:4], "bullterrier")
    refused("4 of the 6 classes have 'terrier' in their name, 5 are", most_numerous, 5, "terrier", classes, labels)


def test_an_unknown_class_is_refused_with_the_nearest_and_so_is_one_that_is_given_twice():
    refused("no class 'goldfsh' among the 3 classes: did you mean 'goldfish'", select_classes, ["goldfsh"], HUB)
    refused("leave --classes out", select_classes, ["cat"], [])
    refused("'tench, Tinca tinca' is given twice", select_classes, ["tench", "tench, Tinca tinca"], HUB)
