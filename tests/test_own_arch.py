"""Models of the user's own code, and plain ones of ours, from `cascaded train --arch` to the report."""

import json
import shutil
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from cascaded import RunConfig, early_exit, load, load_run, load_trace
from cascaded.cli import main as cli
from cascaded.errors import InputError
from cascaded.files import write_json
from cascaded.models.classifier import Classifier
from cascaded.models.own import PLAIN, make_model
from cascaded.models.vit import ViT
from cascaded.training.config import RECIPES, train_args
from cascaded.training.load import build
from cascaded.training.loop import train

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return (x + self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))).relu()


class Net(nn.Module):
    def __init__(self, classes, channels, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.dropout, self.head = nn.Dropout(0.1), nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.dropout(self.blocks(self.stem(x)).mean((2, 3))))


def make(num_classes, in_channels, width=6):
    return Net(num_classes, in_channels, width)


def fixed(num_classes):
    return Net(num_classes, 1, 4)


def three(num_classes):
    return Net(3, 1, 4)


def number(num_classes):
    return num_classes


def broken(num_classes):
    return Net(num_classes, 1, width=[])


def nothing(size):
    return Net(10, 1, size)


def chain(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, num_classes))


def tied(num_classes):
    net = Net(num_classes, 1, 4)
    net.blocks[1].conv1.weight = net.blocks[0].conv1.weight
    return net
"""
TINY = ["--epochs", "1", "--batch-size", "32", "--max-images", "320", "--device", "cpu", "--threads", "1"]
CONFIG = RunConfig(width=None, arch="my_nets:make", epochs=1, batch_size=32, lr=0.05, max_images=96)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the user's code, which is the current one."""
    (tmp_path / "my_nets.py").write_text(CODE)
    (tmp_path / "bad_nets.py").write_text("import no_such_package\n")
    (tmp_path / "worse_nets.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("my_nets", "bad_nets", "worse_nets"):
        sys.modules.pop(name, None)


@pytest.fixture
def cascaded(here, monkeypatch):
    """The command line in this process."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["cascaded", *map(str, words)])
        cli.main()

    return run


def has_statistics_per_step(net):
    """Whether the last norm has other statistics at its first step than at its last, which are the layer's own."""
    first, last = net.statistics.rows("blocks.1.norm2").mean[1], net.model.blocks[1].norm2.running_mean
    return not torch.equal(first, last) and last.abs().sum() > 0


def check_records(cascaded, run, steps):
    """Record a run under every protocol, analyze and report it."""
    noise = ["--noise", "occlusion", "--trials", "1", "--max-images", "10"]
    for words in (
        ["--embeddings"],
        ["--kernel", "ews:0.9", "--steps", "12"],
        noise,
        [*noise, "--protocol", "transient"],
    ):
        cascaded("record", run, "--device", "cpu", *words)
    trace = load_trace(run / "traces" / f"digits-test-osd-{steps}.safetensors")
    assert trace.logits.shape[0] == steps == len(trace.provenance.updates) == len(trace.provenance.operations)
    assert min(trace.provenance.operations) > 0
    net = load_run(run).net
    torch.testing.assert_close(
        torch.tensor(trace.embeddings) @ net.model.head.weight.T + net.model.head.bias,
        torch.tensor(trace.logits[-1]),
    )
    cascaded("analyze", run)
    cascaded("report", run)


def test_a_users_own_network_is_trained_recorded_analyzed_and_reported(cascaded, here):
    run = here / "runs" / "run" / "0"
    cascaded("train", "--arch", "my_nets:make", "--width", "4", *TINY)
    check_records(cascaded, run, steps=3)
    assert "my_nets:make, width 4" in (here / "report" / "index.html").read_text()
    trained = load_run(run)
    assert isinstance(trained.net.serial(), sys.modules["my_nets"].Net)
    assert has_statistics_per_step(trained.net)


@pytest.mark.long
def test_our_vision_transformer_is_trained_recorded_analyzed_and_reported(cascaded, here, monkeypatch):
    monkeypatch.setitem(PLAIN, "vit", partial(ViT, patch=2, depth=3))  # twelve layers take longer
    cascaded("train", "--arch", "vit", "--joins", r"layers\.\d", "--width", "8", "--method", "serial-td", *TINY)
    cascaded("record", "runs/run/0", "--device", "cpu")
    cascaded("analyze", "runs/run/0")
    cascaded("report", "runs/run/0")
    assert load_trace(here / "runs/run/0/traces/digits-test-serial-4.safetensors").logits.shape[0] == 4


def test_a_plain_network_of_ours_is_saved_loaded_and_exits_early(here):
    train(replace(CONFIG, arch="highway", width=4), here / "run")
    pretrained, images = load(here / "run"), torch.randint(256, (5, 1, 8, 8), dtype=torch.uint8)
    assert early_exit(pretrained, images, 1.0).predictions.tolist() == pretrained(images)[-1].argmax(dim=-1).tolist()
    pretrained.save_pretrained("saved")
    torch.testing.assert_close(load(here / "saved")(images), pretrained(images))


@pytest.mark.parametrize(
    ("arch", "message"),
    [
        ("no_such_nets:make", "there is no module no_such_nets in .*: correct the name, or run this in the folder"),
        ("my_nets.inner:make", "there is no module my_nets.inner in"),
        ("my_nets:mak", "there is no function in my_nets called 'mak': did you mean make\\?"),
        ("my_nets:CODE", "there is no function in my_nets called 'CODE': write one that returns"),
        ("my_nets:number", "my_nets:number returned a int: return a torch.nn.Module"),
        ("my_nets:nothing", "my_nets:nothing has no argument num_classes"),
        (
            "my_nets:broken",
            "my_nets:broken failed when called with num_classes=10 \\(.*py:\\d+, TypeError: ",
        ),
        ("bad_nets:make", "needs no_such_package: install that"),
        ("worse_nets:make", "fails on import \\(worse_nets.py:1, ZeroDivisionError: .*\\): correct it"),
        ("my_nets:three", "cannot be converted: its output for 2 images has shape \\(2, 3\\): return logits of shape"),
        ("my_nets:chain", "my_nets:chain cannot be converted: Sequential has no skip connection"),
        ("my_nets:tied", "blocks.0.conv1.weight and blocks.1.conv1.weight are one parameter"),
    ],
)
def test_code_that_is_not_a_classifier_with_skip_connections_is_refused(arch, message, here):
    with pytest.raises(InputError, match=message):
        train(replace(CONFIG, arch=arch), here / "run")
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": "resnet19"}, "there is no architecture 'resnet19': did you mean resnet18\\?"),
        ({"arch": "net.py"}, "there is no architecture 'net.py': give one of .*, or package.module:function"),
        ({"arch": "net:"}, "there is no architecture 'net:'"),
        ({"method": "shallow-deep"}, "shallow-deep has heads of its own .* my_nets:make has the one head"),
        ({"method": "cascaded-td-multihead"}, "cascaded-td-multihead has heads of its own"),
        ({"pool": True}, "pool is True, which my_nets:make does not have: leave it out"),
        ({"joins": "("}, "joins is '\\(', no regular expression"),
        ({"arch": "resnet18"}, "width is None, resnet18 has none of its own"),
        ({"arch": "resnet18", "width": 4, "joins": "blocks"}, "joins is 'blocks', resnet18 has its own: leave it out"),
    ],
)
def test_what_an_architecture_cannot_do_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(CONFIG, **change)


def test_a_width_is_for_functions_that_have_one(here):
    assert make_model("my_nets:make", 5, (1, 8, 8), 3).head.weight.shape == (5, 3)
    with pytest.raises(InputError, match="width is 3, my_nets:fixed has no argument width: leave --width out"):
        make_model("my_nets:fixed", 5, (1, 8, 8), 3)
    with pytest.raises(
        InputError, match="images are 8 x 6 pixels, vit has one argument image_size: give --image-size 8"
    ):
        make_model("vit", 5, (1, 8, 6))
    with pytest.raises(InputError, match="cannot be converted: no module's name matches 'nothing'"):
        build(replace(CONFIG, joins="nothing"), 10, torch.Size((1, 8, 8)))


def test_the_command_line_of_a_run_gives_the_same_run():
    for config in (CONFIG, replace(CONFIG, width=5), replace(RECIPES["strong"], arch="vit", pool=None, joins="a.b")):
        words = train_args(config)
        assert words[words.index("--arch") + 1] == config.arch
        assert ("--width" in words) == (config.width is not None)
        assert "--pool" not in words


@pytest.mark.parametrize("method", ["cascaded-ce", "serial-ce"])
def test_cross_entropy_has_the_statistics_of_the_last_step_at_every_step(method, here):
    train(replace(CONFIG, method=method, ema=0.9), here / "run")
    net = load_run(here / "run").net
    rows, layer = net.statistics.rows("blocks.1.norm2"), net.model.blocks[1].norm2
    assert layer.running_mean.abs().sum() > 0
    torch.testing.assert_close(rows.mean, layer.running_mean.expand_as(rows.mean))
    torch.testing.assert_close(rows.var, layer.running_var.expand_as(rows.var))


def test_statistics_of_every_step_can_be_filled_in(here):
    train(replace(CONFIG, method="cascaded-ce", fill_statistics=True), here / "run")
    assert has_statistics_per_step(load_run(here / "run").net)


def test_an_interrupted_run_with_dropout_ends_with_the_same_weights(here):
    config = replace(CONFIG, epochs=2)
    train(config, here / "whole")
    train(config, here / "cut")
    newest = max((here / "cut" / "checkpoints").iterdir())
    shutil.rmtree(newest)
    metrics = (here / "cut" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (here / "cut" / "metrics.jsonl").write_text(metrics[0])
    train(config, here / "cut", resume=True)
    whole, cut = (load_run(here / name).net.state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_a_saved_folder_never_imports_code(here):
    train(CONFIG, here / "run")
    sys.modules.pop("my_nets")
    with pytest.raises(InputError, match="names the function my_nets:make, and code is imported for your own training"):
        load(here / "run")
    newest = max((here / "run" / "checkpoints").iterdir())
    (here / "saved").mkdir()
    shutil.copy(newest / "model.safetensors", here / "saved" / "model.safetensors")
    write_json(here / "saved" / "config.json", json.loads((here / "run" / "config.json").read_text()))
    for read in (load, load_run):
        with pytest.raises(InputError, match="names the function my_nets:make"):
            read(here / "saved")
    assert "my_nets" not in sys.modules
    assert isinstance(load_run(here / "run").net, Classifier)  # the user's own run


def test_operations_and_updates_of_a_chain(here):
    net = build(CONFIG, 10, torch.Size((1, 8, 8)))
    assert net.cycles() == [0, 2, 1]
    assert net.cycles("serial") == [0, 1, 1]
    assert net.cycles(steps=4, moving=True) == [0, 2, 2, 2]
    stem, block, head = 2 * 9 * 16 * 6, 2 * 2 * 9 * 36 * 16, 2 * 6 * 10  # multiplications and additions
    assert net.operations(8, 8) == [stem + head, 2 * block + head, block + head]
    assert net.operations(8, 8, "serial") == [stem + head, block + head, block + head]
    assert net.operations(8, 8, steps=5)[3:] == [0, 0]
