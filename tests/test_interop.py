"""A Hugging Face `Trainer` and a Lightning module train converted models with the TD loss."""

import runpy
import warnings
from pathlib import Path

import pytest
import torch

import cascaded
from cascaded.models.highway import Highway
from tests.architectures import HUGGING_FACE, why_missing

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name, package):
    """The names of an example script; skips where its package is missing."""
    if reason := why_missing(package):
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other packages, while they are imported
        return runpy.run_path(str(EXAMPLES / name))


def accuracies(text):
    rows = [line.split() for line in text.splitlines()]
    return [float(row[1].removesuffix("%")) / 100 for row in rows if row and row[0].isdigit()]


@pytest.mark.parametrize(
    ("name", "package", "epochs", "steps"),
    [("hugging_face_trainer.py", "transformers", 4, 7), ("lightning_module.py", "lightning", 1, 5)],
)
@pytest.mark.filterwarnings("ignore")  # of other packages
def test_every_step_is_trained(name, package, epochs, steps, capsys):
    example(name, package)["main"](epochs)
    found = accuracies(capsys.readouterr().out)
    assert len(found) == steps
    assert found[-1] > 0.2  # chance: 0.1


@pytest.mark.filterwarnings("ignore")
def test_the_trainers_loss_is_the_td_loss_of_the_converted_model():
    trainer = example("hugging_face_trainer.py", "transformers")["AnytimeTrainer"]
    model, inputs = HUGGING_FACE["vit"].make()
    net, labels = cascaded.convert(model, inputs), torch.tensor([0, 4, 2])
    loss, outputs = trainer.compute_loss(None, net, {**inputs, "labels": labels}, return_outputs=True)
    assert torch.equal(loss, cascaded.td_loss(net(**inputs), labels, lam=0.0))
    torch.testing.assert_close(outputs["logits"], model(**inputs).logits)


@pytest.mark.filterwarnings("ignore")
def test_the_lightning_modules_loss_is_the_td_loss_and_its_parameters_the_models():
    module_class = example("lightning_module.py", "lightning")["Anytime"]
    model, images, labels = Highway(depth=2, width=8), torch.rand(3, 1, 8, 8), torch.tensor([1, 2, 3])
    module = module_class(cascaded.convert(model, images), lam=0.5)
    assert {id(each) for each in module.parameters()} == {id(each) for each in model.parameters()}
    loss = module.training_step((images, labels), 0)
    assert torch.equal(loss, cascaded.td_loss(module.net(images), labels, lam=0.5))
