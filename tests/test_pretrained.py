"""Saved networks: loaded again they are equal to the bit, and nothing in their files can be executed."""

import json
import shutil

import pytest
import torch

import cascaded
from cascaded import ExponentialSmoothing, Norm, OneStepDelay, Pretrained
from cascaded.errors import InputError
from cascaded.shell import program
from cascaded.training.load import load_run
from tests.made_networks import INPUTS, made, made_run, pixels
from tests.pictures import evil_pickle
from tests.refused import refused
from tests.tiny_runs import tiny_config


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder that `save_pretrained` wrote."""
    folder = tmp_path_factory.mktemp("networks") / "mine"
    made(accuracy=(0.5, 0.75)).save_pretrained(folder)
    return folder


@pytest.fixture
def saved(original, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(original, tmp_path / "mine")


@pytest.mark.parametrize("method", ["cascaded-td", "serial-td-multihead", "shallow-deep"])
@torch.no_grad()
def test_a_loaded_network_has_the_same_outputs_to_the_bit_and_prints_nothing(method, tmp_path, capsys):
    net = made(method, accuracy=(0.25, 0.5))
    net.save_pretrained(tmp_path / "mine")
    files = sorted(file.name for file in (tmp_path / "mine").iterdir())
    assert files == ["README.md", "config.json", "model.safetensors"]
    for again in (Pretrained.from_pretrained(str(tmp_path / "mine")), cascaded.load(tmp_path / "mine")):
        assert torch.equal(again(pixels()), net(pixels()))
        assert (again.config, again.inputs, again.accuracy) == (net.config, net.inputs, (0.25, 0.5))
        assert not any(module.training for module in again.modules())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["cascaded-td", "cascaded-ce", "shallow-deep"])
@torch.no_grad()
def test_a_run_is_loaded_with_its_configuration_and_test_accuracy(method, tmp_path):
    folder = made_run(tmp_path / "0", made(method, accuracy=(0.25, 0.5)))
    run, net = load_run(folder), cascaded.load(str(folder))
    trace = net(pixels())
    assert torch.equal(trace, run.net(run.normalized(pixels()), schedule=net.schedule))
    assert (net.config, net.inputs, net.accuracy) == (run.config, run.inputs, (0.25, 0.5))
    assert net.classes == tuple("0123456789")
    assert len(trace) == net.steps == 9


@pytest.mark.parametrize("metrics", [{"step": 99}, {"test": None}])
def test_accuracy_is_empty_unless_it_was_measured_with_these_weights(metrics, tmp_path):
    net = Pretrained.of_run(made_run(tmp_path / "0", made(accuracy=(0.25, 0.5)), **metrics))
    assert net.accuracy == ()
    assert "Not measured" in str(net.generate_model_card())


@torch.no_grad()
def test_bytes_floats_and_frame_sequences_are_normalized_alike():
    net = made()
    trace = net(pixels())
    torch.testing.assert_close(net(pixels() / 255), trace, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(trace, net.net((pixels() / 255 - 0.3) / 0.4), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net(pixels().expand(9, -1, -1, -1, -1)), trace, rtol=1e-4, atol=1e-4)
    assert trace.std() > 1e-2  # there is something to compare


@torch.no_grad()
def test_kernel_and_steps_are_those_of_a_cascade():
    net, kernel = made(), ExponentialSmoothing(0.9)
    assert torch.equal(net(pixels(), kernel=kernel, steps=3), net.net(net.prepare(pixels()), kernel=kernel, steps=3))


@pytest.mark.parametrize(
    ("shape", "fix"),
    [
        ((3, 3, 8, 8), "resize them to that shape"),
        ((3, 1, 8, 9), "resize them to that shape"),
        ((1, 8, 8), r"give a batch, images\[None\]"),
        ((3, 8, 8, 1), "move the channels before height and width"),
    ],
)
def test_images_of_another_shape_are_refused_with_both_shapes(shape, fix):
    message = rf"images have shape \(.*\), this network takes a batch of 1 channel of 8 x 8: {fix}$"
    refused(message, made(), torch.zeros(shape))


def test_arrays_are_refused():
    refused(r"images are a ndarray: give a tensor, as of torch\.as_tensor\(images\)", made(), pixels().numpy())


def own(**options):
    """A network from the user's own training loop, with batch statistics for every step."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet18(**{"num_classes": 10, "width": 4, "in_channels": 1, "generator": generator, **options})
    with torch.no_grad():
        net(torch.rand(8, 1, 8, 8, generator=generator), kernel=OneStepDelay())
    return net


@pytest.mark.parametrize("norm", [Norm(), Norm(momentum=None)])
@torch.no_grad()
def test_a_network_from_the_users_own_loop_is_copied_and_saved(norm, tmp_path):
    net = own(norm=norm)
    mine = Pretrained.of(net, tiny_config(), INPUTS, accuracy=torch.tensor([0.5]))
    assert net.training
    mine.save_pretrained(tmp_path / "mine")
    again = cascaded.load(tmp_path / "mine")
    assert torch.equal(again(pixels()), net.eval()(again.prepare(pixels())))
    assert (again.config, again.inputs, again.accuracy) == (tiny_config(), INPUTS, (0.5,))
    assert mine.net is not net


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"width": 8},
            r"not a resnet18, width 4, shared heads, 10 classes and 1 channel of 8 x 8 \(its stem\.0\.weight has "
            r"shape \(8, 1, 3, 3\), the configuration gives \(4, 1, 3, 3\)\): change config and inputs",
        ),
        ({"heads": "per_step"}, r"its readout\.linears\.0\.weight has shape \(10, 32\), the configuration gives None"),
        ({"num_classes": 2}, r"has shape \(2, 32\), the configuration gives \(10, 32\)"),
        ({"pool": False}, r"has other outputs than the one built from its configuration .*pooling.*: build it alike"),
        ({"norm": Norm(eps=0.1)}, r"has other outputs"),
        ({"kernel": ExponentialSmoothing(0.9)}, r"\(kernel Expo.*\) has other outputs .* \(kernel OneStepDelay"),
    ],
)
def test_a_network_that_its_configuration_would_not_build_is_refused(options, message):
    refused(message, Pretrained.of, own(**options), tiny_config(), INPUTS)


def test_the_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    made().save_pretrained("~/mine")
    assert (tmp_path / "home" / "mine" / "config.json").exists()
    assert not (tmp_path / "~").exists()
    assert Pretrained.from_pretrained("~/mine").config == cascaded.load("~/mine").config
    refused("there is no folder ~nobody-here/x/y", cascaded.load, "~nobody-here/x/y")


def test_an_unknown_option_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="save_pretrained has no nonsense"):
        made().save_pretrained(tmp_path / "mine", nonsense=5)
    assert not (tmp_path / "mine").exists()


def test_a_new_accuracy_and_an_edited_card_are_kept(tmp_path):
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
    with pytest.raises(InputError):
        cascaded.load(saved)
    assert not (tmp_path / "ran").exists()


def changed(**changes):
    def change(folder):
        content = json.loads((folder / "config.json").read_text())
        for path, value in changes.items():
            *above, name = path.split("__")
            inner = content
            for each in above:
                inner = inner[each]
            inner[name] = value
        (folder / "config.json").write_text(json.dumps(content))

    return change


def cut_short(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"contains no run, no config\.json is in or below it"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json is not JSON"),
        (changed(inputs__classes=[]), r"classes"),
        (changed(config__width=8), r"the weights in .* are of another network"),
        (changed(inputs__classes=["a", "b"]), r"the weights in .* are of another network"),
        (cut_short, r"model\.safetensors cannot be read"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_sentence(saved, damage, message):
    damage(saved)
    with pytest.raises(InputError, match=message) as raised:
        cascaded.load(saved)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar10-tdo", "there is no network 'cifar10-tdo': did you mean cifar10-td1?"),
        ("xyz", f"there is no network 'xyz': see {program()} models, or give a folder, or OWNER/NAME on the hub"),
        ("runs/td0/7", "there is no folder runs/td0/7: give a run folder, as runs/td0/0, or a saved network"),
        ("./mine", "there is no folder ./mine: give a run folder, as runs/td0/0, or a saved network"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        cascaded.load(name)
    assert str(raised.value) == message


def test_a_folder_that_cannot_be_written_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file cannot be written \(.*\): free some space, or choose another folder"):
        made().save_pretrained(tmp_path / "file")
