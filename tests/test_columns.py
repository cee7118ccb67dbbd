"""Columns are found where they can only be meant, and asked for where they cannot."""

import pytest
from datasets import ClassLabel, Image, Value

from cascaded.data.columns import Columns, found, numbered
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
def test_columns_that_can_only_be_meant_are_found(features, expected):
    columns = found(Columns(), features)
    assert (columns.image, columns.label) == expected


@pytest.mark.parametrize(
    ("asked", "features", "message"),
    [
        (Columns(image="pic"), {"img": IMAGE, "label": CLASS}, "no column 'pic', there are img, label: .*--image"),
        (Columns(label="kind"), {"img": IMAGE, "label": CLASS}, "no column 'kind', there are img, label: .*--label"),
        (Columns(), {"left": IMAGE, "right": IMAGE}, "columns left, right all hold images: .*--image"),
        (Columns(), {"x": NUMBER, "y": TEXT}, "no column holds images, there are x, y"),
        (Columns(), {"img": IMAGE, "a": CLASS, "b": CLASS}, "columns a, b all hold classes: .*--label"),
        (Columns(image="label"), {"img": IMAGE, "label": CLASS}, "column 'label' holds integers, no images"),
        (Columns(label="age"), {"img": IMAGE, "age": FLOAT}, "column 'age' holds float32, labels are integers"),
    ],
)  # fmt: skip
def test_what_is_missing_or_ambiguous_is_said(asked, features, message):
    with pytest.raises(InputError, match=message):
        found(asked, features)


def test_undeclared_classes_are_numbers_up_to_the_largest_or_names_in_order():
    assert numbered([3, 0, None, 3]) == ("0", "1", "2", "3")
    assert numbered(["wasp", "ant", "wasp"]) == ("ant", "wasp")
    assert numbered([]) == ()
    with pytest.raises(InputError, match="no numbers of classes"):
        numbered([20_260_101])
