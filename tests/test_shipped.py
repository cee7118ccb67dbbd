"""Model cards: what the hub reads, the command that trains a run again, shipped networks that do what they state."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
import torch
import tyro
from huggingface_hub import ModelCard
from safetensors.torch import load_file

import cascaded
from cascaded import Pretrained
from cascaded.cli.train import prepare
from cascaded.data.catalogue import SOURCES
from cascaded.data.sources import load as load_images
from cascaded.hub.card import train_command
from cascaded.hub.locate import NETWORKS, shipped
from cascaded.training.config import FITTED
from tests.made_networks import made, made_run
from tests.pictures import CIFAR10_TEST, CIFAR100_TEST, REAL, needs_real
from tests.tiny_runs import tiny_config

ROOT = Path(__file__).parent.parent
IMAGES = 500


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "ship.py"))


def card_accuracy(folder):
    """The table of a card."""
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) % \|$", (folder / "README.md").read_text(), flags=re.MULTILINE)
    assert [int(step) for step, _ in rows] == list(range(1, len(rows) + 1))
    return [float(percent) / 100 for _, percent in rows]


def test_the_networks_of_the_demo_are_shipped():
    assert {"cifar10-td0", "cifar10-td1", "cifar10-ce", "cifar10-shallow-deep"} <= set(shipped())


@pytest.mark.parametrize("name", shipped())
@torch.no_grad()
def test_a_shipped_network_is_small_and_its_card_is_of_this_network(name):
    net, folder = cascaded.load(name), NETWORKS / name
    images = torch.rand(2, *net.inputs.shape, generator=torch.Generator().manual_seed(0))
    trace = net(images)
    assert trace.shape == (net.steps, 2, len(net.classes))
    assert trace.isfinite().all()
    assert all(each.dtype == torch.float32 for each in net.parameters())
    assert (folder / "model.safetensors").stat().st_size < 3_000_000
    assert card_accuracy(folder) == pytest.approx(net.accuracy, abs=6e-5)
    assert len(net.accuracy) == net.steps
    card = ModelCard.load(folder / "README.md")
    assert (card.data.license, card.data.library_name, card.data.metrics) == ("mit", "cascaded", ["accuracy"])
    assert card.data.datasets == [SOURCES[net.config.data].hub]
    assert f'cascaded.load("{name}")' in card.text
    assert f"--model {name}" in card.text


@needs_real(CIFAR10_TEST, CIFAR100_TEST)
@pytest.mark.parametrize("name", shipped())
@torch.no_grad()
def test_a_shipped_network_has_the_accuracy_of_its_card(name, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    net = cascaded.load(name)
    test = load_images(net.config.data, "test")
    correct = (net(test.images[:IMAGES]).argmax(-1) == test.labels[:IMAGES]).double().mean(1)
    stated = torch.tensor(net.accuracy, dtype=torch.double)
    deviation = (stated * (1 - stated) / IMAGES).sqrt()
    assert correct.shape == stated.shape
    assert ((correct - stated).abs() < 3 * deviation).all()


@pytest.mark.parametrize("method", ["cascaded-td", "serial-td-multihead"])
@torch.no_grad()
def test_a_network_is_shipped_with_the_accuracy_of_its_rounded_weights(method, script, tmp_path):
    run = made(method)
    script["ship"](made_run(tmp_path / "run", run), "tiny", into=tmp_path)
    net, test = Pretrained.from_pretrained(tmp_path / "tiny"), load_images("digits", "test")
    correct = (net(test.images).argmax(-1) == test.labels).double().mean(1)
    assert correct.tolist() == pytest.approx(net.accuracy)
    assert card_accuracy(tmp_path / "tiny") == pytest.approx(net.accuracy, abs=6e-5)
    stored = load_file(tmp_path / "tiny" / "model.safetensors")
    for name, tensor in run.state_dict().items():
        rounded = tensor.dim() == 4
        assert stored[name].dtype == (torch.float16 if rounded else tensor.dtype)
        assert torch.equal(net.state_dict()[name], tensor.half().float() if rounded else tensor)


def test_the_page_and_the_cards_are_up_to_date(script):
    assert (ROOT / "docs" / "pretrained.md").read_text() == script["page"](), "run scripts/ship.py"
    for name in shipped():
        assert f"`{name}`" in script["page"]()
        card = script["card_text"](NETWORKS / name)
        assert (NETWORKS / name / "README.md").read_text() == card, "run scripts/ship.py"


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
    plain = card(max_images=None).text
    assert not re.search(r"^\| (training images|fold|initial weights|noise.*) \|", plain, flags=re.MULTILINE)
    assert "Not measured." in plain


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
