"""The shipped networks do what their model cards state."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

import cascaded
from cascaded import Pretrained
from cascaded.data.catalogue import SOURCES
from cascaded.data.sources import load as load_images
from cascaded.hub.locate import NETWORKS, shipped
from tests.made_networks import made, made_run
from tests.pictures import CIFAR10_TEST, CIFAR100_TEST, REAL, needs_real

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
