"""Several processes train one network as one would."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed

import cascaded
from cascaded.cli.main import run
from cascaded.training import checkpoint
from cascaded.training.distributed import Distributed, choose_device, share_statistics, wrap_ddp
from cascaded.training.method import get_method
from cascaded.training.runs import read_metrics
from cascaded.training.step import LossModule
from tests.forked import PATIENCE
from tests.refused import refused

ROOT = Path(__file__).parent.parent


MODELS = ["cascaded-td", "cascaded-td-multihead", "cascaded-ce", "serial-td", "shallow-deep"]


def network(model):
    generator = torch.Generator().manual_seed(0)
    heads = get_method(model).heads
    if model == "cascaded-ce":
        return cascaded.densenet((1, 1), growth=2, num_classes=3, generator=generator).double()
    return cascaded.resnet((1, 1), width=4, num_classes=3, heads=heads, generator=generator).double()


def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(6, 3, 8, 8, generator=generator, dtype=torch.float64), torch.arange(6) % 3


def learned(loss, net, images, labels):
    loss(images, labels).backward()
    gradients = {f"gradient of {name}": p.grad for name, p in net.named_parameters()}
    return gradients | {name: buffer for name, buffer in net.named_buffers() if "running" in name}


def half(rank, folder):
    """What one of two processes does; afterwards everything it has is compared."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    processes, found = Distributed(rank, 2), {}
    for model in MODELS:
        net = network(model)
        share_statistics(net)
        loss = wrap_ddp(LossModule(net, get_method(model)))
        images, labels = (processes.share(each) for each in batch())
        found[model] = learned(loss, net, images, labels)
    assert processes.mean(torch.tensor(float(rank))) == 0.5
    assert processes.broadcast(b"content" if processes.is_main else None) == b"content"
    assert processes.broadcast(None) == b""
    torch.save(found, f"{folder}/{rank}")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def halves(ended):
    return [torch.load(ended[0] / str(rank), weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("model", MODELS)
def test_two_half_batches_give_the_gradient_and_the_statistics_of_the_whole_batch(model, halves):
    net = network(model)
    whole = learned(LossModule(net, get_method(model)), net, *batch())
    for found in halves:
        torch.testing.assert_close(found[model], whole, rtol=1e-9, atol=1e-11)  # the same keys, and their tensors


def test_without_shared_statistics_two_halves_are_not_the_whole():
    """What the test above would miss if nothing were shared."""
    net, (images, labels) = network("cascaded-td"), batch()
    loss = LossModule(net, get_method("cascaded-td"))
    whole = learned(loss, net, images, labels)["gradient of stem.0.weight"].clone()
    net.zero_grad()
    ((loss(images[:3], labels[:3]) + loss(images[3:], labels[3:])) / 2).backward()
    assert not torch.allclose(net.stem[0].weight.grad, whole, rtol=0.01)


COMMANDS = """
import json, os, sys
from cascaded.cli.main import main
from tests.test_processes import half
from torch.distributed import TCPStore

half(int(os.environ["RANK"]), sys.argv[2])

agent, stores = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False), []
for number, words in enumerate(json.loads(sys.argv[1])):
    if number:  # processes can meet once in the store of torchrun's agent: each later command has a store of its own
        if os.environ["RANK"] == "0":  # the system chooses the port, and the store has it from then on
            stores.append(TCPStore("localhost", 0, is_master=True, wait_for_workers=False))
            agent.set(f"port of {number}", str(stores[-1].port))
        os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": agent.get(f"port of {number}").decode()}
    sys.argv = ["cascaded", "train", *words]
    main()
"""


def torchrun(commands, tmp_path):
    """Two processes that do their `half`, then `cascaded train` as if torchrun had started every command itself."""
    (tmp_path / "commands.py").write_text(COMMANDS)
    # --standalone: the agent's store listens on a port that the system chooses
    options = ["--standalone", "--nproc-per-node", "2", "--log-dir", str(tmp_path / "torchrun")]
    words = [sys.executable, "-m", "torch.distributed.run", *options, str(tmp_path / "commands.py")]
    words += [json.dumps(commands), str(tmp_path)]
    found = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": found}
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The only two processes of these tests, which import torch for seconds: their folder, and how torchrun ended."""
    folder = tmp_path_factory.mktemp("processes")
    arguments = shlex.split("--max-images 64 --epochs 2 --width 2 --batch-size 64 --lr 0.01 --device cpu")
    one, two, begun, half = (folder / name for name in ("one", "two", "begun", "half"))
    run(["train", *arguments, "--out", str(one)])
    shutil.copytree(one, begun)
    (max((begun / "0" / "checkpoints").iterdir()) / "manifest.json").unlink()
    again, coarse = [*arguments, "--out", str(two)], ["--epochs", "1", "--precision", "bfloat16"]
    resumed = ["--resume", str(begun), "--device", "cpu"]
    return folder, torchrun([again, resumed, [*arguments, "--out", str(half), *coarse], again], folder)


def test_torchrun_trains_goes_on_and_agrees_with_one_process(ended):
    folder, ended = ended
    one, two, begun, half = (folder / name for name in ("one", "two", "begun", "half"))
    assert ended.stdout.count("wrote") == 3, ended.stderr  # one process prints
    assert "resuming after step 1 of 2" in ended.stderr
    expected = checkpoint.newest(one / "0").model
    for out in (two, begun):
        found = checkpoint.newest(out / "0").model
        assert len(read_metrics(out / "0")) == 2
        for name, weight in expected.items():
            torch.testing.assert_close(found[name], weight, rtol=5e-3, atol=5e-3)
    assert len(read_metrics(half / "0")) == 1

    assert ended.returncode != 0
    assert ended.stderr.count("contains this run already: resume it with") == 1
    assert "Warning" not in ended.stderr
    assert "gloo" not in ended.stderr


def test_a_device_that_is_not_there_is_refused():
    assert choose_device("cpu") == torch.device("cpu")
    refused("--device is toaster: give auto, cpu, cuda", choose_device, "toaster")
    for name in ("cuda:99", "mps"):
        refused(f"--device is {name}, which is not available here .*: use --device cpu", choose_device, name)
