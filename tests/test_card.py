"""Model cards: the metadata that the hub reads, the facts of a run, and the command that trains it again."""

import re
import shlex

import pytest
import tyro
from huggingface_hub import ModelCard

from cascaded.cli.train import prepare
from cascaded.hub.card import facts, train_command
from cascaded.training.config import FITTED
from tests.made_networks import made
from tests.tiny_runs import tiny_config


def card(method="cascaded-td", name="", **options):
    return made(method, **options).generate_model_card(name=name)


def test_the_hub_reads_the_metadata_of_a_card():
    parsed = ModelCard(str(card(accuracy=(0.5, 0.75), data="cifar10", name="me/mine")))
    assert (parsed.data.library_name, parsed.data.pipeline_tag) == ("cascaded", "image-classification")
    assert {"anytime-prediction", "pytorch_model_hub_mixin"} <= set(parsed.data.tags)
    assert (parsed.data.datasets, parsed.data.license) == (["uoft-cs/cifar10"], None)
    (result,) = parsed.data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("cifar10", "accuracy", 0.75)
    assert 'cascaded.load("me/mine")' in parsed.text
    assert parsed.text.count("\n# ") == 1


def test_data_that_are_not_on_the_hub_have_no_metadata():
    parsed = card("serial-ce", accuracy=(0.5,), data="my/flowers")
    assert (parsed.data.datasets, parsed.data.eval_results) == (None, None)
    assert "# SerialCE\n\nSerialCE trained on my/flowers" in parsed.text
    assert "one after the other" in parsed.text


@pytest.mark.parametrize("option", [{"classes": tuple("0123456789")}, {"image_size": 8}, {"label_column": "coarse"}])
def test_the_result_of_another_task_is_not_in_the_metadata(option):
    parsed = card(accuracy=(0.5,), data="cifar100", **option)
    assert (parsed.data.datasets, parsed.data.eval_results) == (["uoft-cs/cifar100"], None)
    data = "10 classes of cifar100" if "classes" in option else "cifar100"
    assert f"Measured on the test images of {data}." in parsed.text


def test_a_card_has_the_facts_of_the_run():
    text = card(max_images=320, fold=(3, 10), init_from="5" * 64).text
    assert "| training images | at most 320, the same number per class |" in text
    assert "| fold | 3 of 10 was held out for validation |" in text
    assert f"| initial weights | those of another run, SHA-256 {'5' * 64} |" in text
    assert "starting from the weights of another run" in text
    plain = card(max_images=None).text
    assert not re.search(r"^\| (training images|fold|initial weights|noise.*) \|", plain, flags=re.MULTILINE)
    assert "trained on digits only" in plain
    assert "Not measured." in plain


def test_facts_have_no_control_characters():
    net = made(data="my\x1b]0;data")
    assert "my\ufffd]0;data" in dict(facts(net.run_file, net.num_parameters)).values()


@pytest.mark.parametrize(
    "config",
    [
        tiny_config(),
        tiny_config(seed=3, lam=(1.0, 0.25), warmup_fraction=0.2, cutout=0, classes=("3", "a b"), image_column="x"),
        tiny_config("shallow-deep", fold=(3, 10), max_images=None, lr_schedule="steps", noise="focus", flip=False),
        tiny_config("serial-ce", data="my pictures", arch="resnet34", image_size=16, nesterov=False),
    ],
)
def test_the_command_of_a_card_trains_the_same_run(config, monkeypatch):
    words = shlex.split(train_command(config) or "")
    assert words[:2] == ["cascaded", "train"]
    configs, fitted = [], []
    monkeypatch.setattr("cascaded.training.fit.fit", lambda config, given: (fitted.append(given), (config, []))[1])
    monkeypatch.setattr("cascaded.training.loop.train", lambda config, *args, **kwargs: configs.append(config))
    tyro.cli(prepare(words[2:]), args=words[2:])
    assert configs[0].differences(config) == []
    assert fitted in ([], [FITTED])  # nothing is chosen from the number of images


def test_a_run_that_needs_other_weights_has_no_command():
    assert train_command(tiny_config(init_from="5" * 64)) is None
    assert "cascaded train" not in card(init_from="5" * 64).text
