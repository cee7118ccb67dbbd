"""The architectures that conversion is tested on: they run, and `torch.export` captures them."""

import sys
import warnings

import pytest
import torch
from torch._dynamo.exc import UserError
from torch.export import Dim

from tests.architectures import ARCHITECTURES, OTHER_PACKAGES, QUICK, REFUSED, call, first


def made(architecture):
    """Model and inputs; skips where a package is missing."""
    if reason := architecture.missing():
        pytest.skip(reason)
    return architecture.make()


def captured(model, inputs):
    """The model as `torch.export` captures it, with a batch of any size."""
    arguments = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    batch = {0: Dim("batch")}
    shapes = dict.fromkeys(inputs, batch) if isinstance(inputs, dict) else (batch,) * len(inputs)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="The tensor attributes .* were assigned during export"
        )  # torch's LSTM
        return torch.export.export(model, *arguments, dynamic_shapes=shapes, strict=False).module(check_guards=False)


def test_there_are_enough_of_them():
    assert len(ARCHITECTURES) >= 25
    assert len(REFUSED) >= 8
    assert set(QUICK) <= set(ARCHITECTURES)
    assert len(QUICK) >= 12


@pytest.mark.parametrize("name", QUICK)
def test_an_export_computes_what_the_model_does_for_other_batch_sizes(name):
    architecture = ARCHITECTURES[name]
    model, inputs = made(architecture)
    fewer = first(inputs, 2)
    with torch.no_grad():
        expected = architecture.predicted(call(model, fewer))
        found = architecture.predicted(call(captured(model, inputs), fewer))
    torch.testing.assert_close(found, expected)


def test_an_architecture_whose_batch_is_fixed_is_marked():
    (architecture,) = [each for each in ARCHITECTURES.values() if not each.dynamic]
    with pytest.raises(UserError, match="batch"):
        captured(*architecture.make())


@pytest.mark.parametrize("name", REFUSED)
def test_refused_models_run_as_they_are(name):
    architecture = REFUSED[name]
    model, inputs = made(architecture)
    call(model, inputs)


def test_a_missing_package_is_a_reason_and_not_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "monai", None)
    assert "monai is not installed" in OTHER_PACKAGES["monai-unet-2d"].missing()
