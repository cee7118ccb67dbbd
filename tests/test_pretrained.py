"""Networks that are kept and found again: the same to the bit, and nothing in their files can run."""

import json
import shutil
import subprocess
import sys

import pytest
import torch

import cascaded
from cascaded import ExponentialSmoothing, Pretrained
from cascaded.errors import InputError
from cascaded.learning.trained import load_run
from tests.made_networks import made, made_run, pixels
from tests.pictures import evil_pickle


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder that `save_pretrained` wrote."""
    folder = tmp_path_factory.mktemp("kept") / "mine"
    made(accuracy=(0.5, 0.75)).save_pretrained(folder)
    return folder


@pytest.fixture
def saved(kept, tmp_path):
    """A copy of it, to be spoilt."""
    return shutil.copytree(kept, tmp_path / "mine")


@pytest.mark.parametrize("model", ["cascaded-td", "serial-td-multihead", "shallow-deep"])
@torch.no_grad()
def test_what_was_saved_answers_the_same_to_the_bit_and_says_nothing_on_the_way(model, tmp_path, capsys):
    net = made(model, accuracy=(0.25, 0.5))
    net.save_pretrained(tmp_path / "mine")
    assert sorted(file.name for file in (tmp_path / "mine").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    for again in (Pretrained.from_pretrained(str(tmp_path / "mine")), cascaded.load(tmp_path / "mine")):
        assert torch.equal(again(pixels()), net(pixels()))
        assert (again.spec, again.inputs, again.accuracy) == (net.spec, net.inputs, (0.25, 0.5))
        assert not any(module.training for module in again.modules())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("model", ["cascaded-td", "cascaded-ce", "shallow-deep"])
@torch.no_grad()
def test_a_run_is_loaded_as_it_is_with_what_it_measured(model, tmp_path):
    folder = made_run(tmp_path / "0", made(model, accuracy=(0.25, 0.5)))
    run, net = load_run(folder), cascaded.load(str(folder))
    trace = net(pixels())
    assert torch.equal(trace, run.net(run.normalised(pixels()), schedule=run.spec.method.schedule))
    assert (net.spec, net.inputs, net.accuracy) == (run.spec, run.inputs, (0.25, 0.5))
    assert net.classes == tuple("0123456789")
    assert len(trace) == net.steps == 9


@pytest.mark.parametrize("told", [{"step": 99}, {"test": None}])
def test_without_a_measurement_of_these_very_weights_no_accuracy_is_claimed(told, tmp_path):
    net = Pretrained.of_run(made_run(tmp_path / "0", made(accuracy=(0.25, 0.5)), **told))
    assert net.accuracy == ()
    assert "Not measured" in str(net.generate_model_card())


@torch.no_grad()
def test_bytes_and_floats_are_normalised_alike_and_films_as_their_frames():
    net = made()
    trace = net(pixels())
    torch.testing.assert_close(net(pixels() / 255), trace, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(trace, net.net((pixels() / 255 - 0.3) / 0.4), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net(pixels().expand(9, -1, -1, -1, -1)), trace, rtol=1e-4, atol=1e-4)
    assert trace.std() > 1e-2  # there is something to compare


@torch.no_grad()
def test_kernel_and_steps_are_those_of_a_cascade():
    net, kernel = made(), ExponentialSmoothing(0.9)
    assert torch.equal(net(pixels(), kernel=kernel, steps=3), net.net(net.normalised(pixels()), kernel=kernel, steps=3))


@pytest.mark.parametrize("shape", [(3, 3, 8, 8), (3, 1, 8, 9), (1, 8, 8)])
def test_images_of_another_shape_are_refused_with_both_shapes(shape):
    with pytest.raises(InputError, match=r"images have shape \(.*\), this network takes a batch of 1 channel of 8 x 8"):
        made()(torch.zeros(shape))


def test_an_accuracy_that_was_measured_anew_is_kept_and_an_edited_card_too(tmp_path):
    net = made(accuracy=(0.5,))
    net.save_pretrained(tmp_path)
    assert "50.00 %" in (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").write_text("mine")
    net.accuracy = (0.25, 0.75)
    net.save_pretrained(tmp_path)
    assert Pretrained.from_pretrained(tmp_path).accuracy == (0.25, 0.75)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_pickle_is_refused_and_never_opened(saved, tmp_path):
    (saved / "model.safetensors").unlink()
    (saved / "pytorch_model.bin").write_bytes(evil_pickle(tmp_path / "ran"))
    with pytest.raises(
        InputError, match=r"holds no model\.safetensors, and .* pytorch_model\.bin, are never unpickled"
    ):
        cascaded.load(saved)
    assert not (tmp_path / "ran").exists()


def changed(**changes):
    def change(folder):
        told = json.loads((folder / "config.json").read_text())
        for path, value in changes.items():
            *above, name = path.split("__")
            place = told
            for each in above:
                place = place[each]
            place[name] = value
        (folder / "config.json").write_text(json.dumps(told))

    return change


def cut_short(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"holds neither a run nor a saved network"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), r"does not tell spec and inputs"),
        (lambda folder: (folder / "config.json").write_text('{"hidden_size": 9}'), r"is of another library or damaged"),
        (changed(spec={}), r"config\.json of .*mine: .* does not describe one .*: save it again with save_pretrained"),
        (changed(spec__model="cascaded-tdd"), r"there is no model 'cascaded-tdd': say cascaded-td\?"),
        (changed(spec__network="resnet19"), r"there is no network 'resnet19': say resnet18\?"),
        (changed(spec__recipe__width="4"), r"does not describe one"),
        (changed(spec__seed="0"), r"network is 'resnet18', width 4, seed '0'"),
        (changed(inputs__shape=[8, 8]), r"shape is \[8, 8\], not channels, height and width"),
        (changed(inputs__std=[0.0]), r"mean \[0\.3\] and deviation \[0\.0\] are not of 1 channels"),
        (changed(inputs__mean=[0.1, 0.1]), r"are not of 1 channels"),
        (changed(inputs__classes=[]), r"its classes have no names"),
        (changed(accuracy=[2]), r"accuracies are \[2\.0\], not from 0 to 1"),
        (changed(spec__recipe__width=8), r"does not hold the weights that its config\.json asks for"),
        (changed(inputs__classes=["a", "b"]), r"does not hold the weights that its config\.json asks for"),
        (cut_short, r"does not hold the weights that its config\.json asks for"),
    ],
)
def test_a_folder_that_is_not_what_was_saved_is_refused_in_one_sentence(saved, spoil, told):
    spoil(saved)
    with pytest.raises(InputError, match=told) as raised:
        cascaded.load(saved)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cifar10-tdo", "there is no network 'cifar10-tdo': say cifar10-td0?"),
        ("xyz", "there is no network 'xyz': see `cascaded models`, or give a folder, or OWNER/NAME on the hub"),
        ("runs/td0/7", "there is no folder runs/td0/7: give one that save_pretrained wrote, or a run, as runs/td0/0"),
        ("./mine", "there is no folder ./mine: give one that save_pretrained wrote, or a run, as runs/td0/0"),
    ],
)
def test_a_name_that_leads_nowhere_is_answered_with_the_nearest(name, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        cascaded.load(name)
    assert str(raised.value) == told


def test_a_place_that_cannot_be_written_is_said_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file cannot be written \(.*\): make room, or choose another folder"):
        made().save_pretrained(tmp_path / "file")


def test_importing_the_package_imports_neither_torch_nor_the_hub():
    program = "import sys, cascaded; sys.exit(bool({'torch', 'huggingface_hub'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
