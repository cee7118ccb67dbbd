"""The networks that come with the package do what their cards say, and so does any that is added."""

import re
import runpy
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

import cascaded
from cascaded import Pretrained
from cascaded.data.catalogue import SOURCES
from cascaded.data.columns import Columns
from cascaded.data.decode import decode
from cascaded.data.open import locate
from cascaded.data.sources import load as load_images
from cascaded.hub.shipped import NETWORKS, names, ship
from tests.made_networks import made, made_run
from tests.pictures import CIFAR10_TEST, CIFAR100_TEST, REAL, needs_real

ROOT = Path(__file__).parent.parent


def told_accuracies(folder):
    """The table of a card, as shares."""
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) % \|$", (folder / "README.md").read_text(), flags=re.MULTILINE)
    assert [int(step) for step, _ in rows] == list(range(1, len(rows) + 1))
    return [float(share) / 100 for _, share in rows]


def test_there_are_networks_and_the_first_of_the_docs_is_among_them():
    assert "cifar10-td0" in names()


@pytest.mark.parametrize("name", names())
@torch.no_grad()
def test_a_shipped_network_is_small_answers_and_has_a_card_that_tells_what_it_does(name):
    net, folder = cascaded.load(name), NETWORKS / name
    images = torch.rand(2, *net.inputs.shape, generator=torch.Generator().manual_seed(0))
    trace = net(images)
    assert trace.shape == (net.steps, 2, len(net.classes))
    assert trace.isfinite().all()
    assert all(each.dtype == torch.float32 for each in net.parameters())
    assert (folder / "model.safetensors").stat().st_size < 3_000_000
    assert told_accuracies(folder) == pytest.approx(net.accuracy, abs=6e-5)
    assert len(net.accuracy) == net.steps
    card = ModelCard.load(folder / "README.md")
    assert (card.data.license, card.data.library_name, card.data.metrics) == ("mit", "cascaded", ["accuracy"])
    assert card.data.datasets == [SOURCES[net.config.data].hub]
    assert f'cascaded.load("{name}")' in card.text
    assert f"--model {name}" in card.text


@needs_real(CIFAR10_TEST, CIFAR100_TEST)
@pytest.mark.parametrize("name", names())
@torch.no_grad()
def test_a_shipped_network_is_right_as_often_as_it_claims(name, monkeypatch):
    monkeypatch.setenv("CASCADED_DATA", str(REAL))
    net = cascaded.load(name)
    source = SOURCES[net.config.data]
    rows = list(islice(locate(source, "test").open(Columns(source.image, source.label, source.coarse)).rows(), 500))
    images = torch.from_numpy(np.stack([decode(row.read()).pixels for row in rows]))
    labels = torch.tensor([row.label for row in rows])
    right = (net(images).argmax(-1) == labels).double().mean(1)
    claimed = torch.tensor(net.accuracy, dtype=torch.double)
    deviation = (claimed * (1 - claimed) / len(rows)).sqrt()
    assert right.shape == claimed.shape
    assert ((right - claimed).abs() < 3 * deviation).all()


@pytest.mark.parametrize("model", ["cascaded-td", "serial-td-multihead"])
@pytest.mark.parametrize("half", [True, False])
@torch.no_grad()
def test_what_is_shipped_claims_what_its_file_does(half, model, tmp_path):
    run = made(model)
    ship(made_run(tmp_path / "run", run), "tiny", half=half, into=tmp_path)
    net, test = Pretrained.from_pretrained(tmp_path / "tiny"), load_images("digits", "test")
    right = (net(test.images).argmax(-1) == test.labels).double().mean(1)
    assert right.tolist() == pytest.approx(net.accuracy)
    assert told_accuracies(tmp_path / "tiny") == pytest.approx(net.accuracy, abs=6e-5)
    exact, kept = run.state_dict(), net.state_dict()
    stored = load_file(tmp_path / "tiny" / "model.safetensors")
    for name, tensor in exact.items():
        rounded = half and tensor.dim() == 4
        assert stored[name].dtype == (torch.float16 if rounded else tensor.dtype)
        assert torch.equal(kept[name], tensor.half().float() if rounded else tensor)


def test_the_page_lists_what_is_shipped():
    script = runpy.run_path(str(ROOT / "scripts" / "ship.py"))
    assert (ROOT / "docs" / "pretrained.md").read_text() == script["page"](), "run scripts/ship.py"
    for name in names():
        assert f"`{name}`" in script["page"]()
