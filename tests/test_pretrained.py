"""Networks that are kept and found again: the same to the bit, and nothing in their files can run."""

import json
import shutil
import subprocess
import sys

import pytest
import torch

import cascaded
from cascaded import ExponentialSmoothing, Norm, OneStepDelay, Pretrained
from cascaded.errors import InputError
from cascaded.shell import program
from cascaded.training.load import load_run
from tests.made_networks import made, made_run, pixels
from tests.pictures import evil_pickle
from tests.tiny_runs import tiny_config


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
        assert (again.config, again.inputs, again.accuracy) == (net.config, net.inputs, (0.25, 0.5))
        assert not any(module.training for module in again.modules())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("model", ["cascaded-td", "cascaded-ce", "shallow-deep"])
@torch.no_grad()
def test_a_run_is_loaded_as_it_is_with_what_it_measured(model, tmp_path):
    folder = made_run(tmp_path / "0", made(model, accuracy=(0.25, 0.5)))
    run, net = load_run(folder), cascaded.load(str(folder))
    trace = net(pixels())
    assert torch.equal(trace, run.net(run.normalised(pixels()), schedule=run.config.get_method().schedule))
    assert (net.config, net.inputs, net.accuracy) == (run.config, run.inputs, (0.25, 0.5))
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


def test_what_is_not_a_tensor_is_refused():
    with pytest.raises(InputError, match=r"images are a ndarray: give a tensor, as of torch\.as_tensor\(images\)"):
        made()(pixels().numpy())


def own(**options):
    """A network of somebody's own loop, with statistics for every step."""
    generator = torch.Generator().manual_seed(0)
    net = cascaded.resnet18(**{"num_classes": 10, "width": 4, "in_channels": 1, "generator": generator, **options})
    with torch.no_grad():
        net(torch.rand(8, 1, 8, 8, generator=generator), kernel=OneStepDelay())
    return net


@pytest.mark.parametrize("norm", [Norm(), Norm(momentum=None)])
@torch.no_grad()
def test_a_network_of_ones_own_loop_is_saved_with_its_configuration_and_left_alone(norm, tmp_path):
    net = own(norm=norm)
    mine = Pretrained.of(net, tiny_config(), made().inputs, accuracy=torch.tensor([0.5]))
    assert net.training
    mine.save_pretrained(tmp_path / "mine")
    again = cascaded.load(tmp_path / "mine")
    assert torch.equal(again(pixels()), net.eval()(again.normalised(pixels())))
    assert (again.config, again.inputs, again.accuracy) == (tiny_config(), made().inputs, (0.5,))
    assert mine.net is not net


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"width": 8},
            r"not a resnet18 of width 4 with shared heads, 10 classes and 1 channel of 8 x 8 \(its stem\.0\.weight has "
            r"shape \(8, 1, 3, 3\), its config asks for shape \(4, 1, 3, 3\)\): make config and inputs those of",
        ),
        ({"heads": "per_step"}, r"its readout\.linears\.0\.weight has shape \(10, 32\), its config asks for none"),
        ({"num_classes": 2}, r"has shape \(2, 32\), its config asks for shape \(10, 32\)"),
        ({"pool": False}, r"answers otherwise than what is built from its configuration .*pooled.*: make it alike"),
        ({"norm": Norm(eps=0.1)}, r"answers otherwise"),
        ({"kernel": ExponentialSmoothing(0.9)}, r"\(kernel Expo.*\) answers otherwise .* \(kernel OneStepDelay"),
    ],
)
def test_a_network_that_its_config_would_not_build_is_refused_with_both_sides(options, told):
    with pytest.raises(InputError, match=told):
        Pretrained.of(own(**options), tiny_config(), made().inputs)


def test_a_home_is_found_where_it_is_saved_and_where_it_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    made().save_pretrained("~/mine")
    assert (tmp_path / "home" / "mine" / "config.json").exists()
    assert not (tmp_path / "~").exists()
    assert Pretrained.from_pretrained("~/mine").config == cascaded.load("~/mine").config
    with pytest.raises(InputError, match="there is no folder ~nobody-here/x/y"):
        cascaded.load("~nobody-here/x/y")


def test_an_option_that_nobody_knows_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="save_pretrained has no nonsense"):
        made().save_pretrained(tmp_path / "mine", nonsense=5)
    assert not (tmp_path / "mine").exists()
    made().save_pretrained(tmp_path / "mine", private=True)


def test_the_card_of_a_folder_called_like_a_network_of_the_package_loads_the_folder(tmp_path):
    made().save_pretrained(tmp_path / "cifar10-td0")
    assert 'cascaded.load("./cifar10-td0")' in (tmp_path / "cifar10-td0" / "README.md").read_text()


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
        (
            lambda folder: (folder / "config.json").unlink(),
            r"contains neither a run nor a saved network, no config",
        ),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), r"it has no config and inputs"),
        (lambda folder: (folder / "config.json").write_text('{"hidden_size": 9}'), r"it has no config and inputs"),
        (changed(format=3), r"format is 3, this version of cascaded reads 2"),
        (changed(config=[]), r"config\.json of .*mine: it does not describe a network .*: save it again with save_pre"),
        (changed(config__method="cascaded-tdd"), r"Invalid enum value 'cascaded-tdd' - at `\$\.config\.method`"),
        (changed(config__width="4"), r"Expected `int`, got `str` - at `\$\.config\.width`"),
        (changed(config__width=True), r"Expected `int`, got `bool`"),
        (changed(config__data=None), r"Expected `str`, got `null`"),
        (changed(config__max_images=0), r"max_images is 0: give at least 1"),
        (changed(config__fold=[3, 2]), r"fold is \(3, 2\)"),
        (changed(config__lam=[]), r"lam is empty"),
        (changed(**{"config__\x1b[31mred": 1}), r"unknown key \ufffd\[31mred"),
        (changed(inputs__shape=[8, 8]), r"shape is \[8, 8\]: give channels, height and width"),
        (changed(inputs__shape=[1, True, 8]), r"Expected `int`, got `bool` - at `\$\.inputs\.shape\[1\]`"),
        (changed(inputs__mean=["a"]), r"Expected `float`, got `str`"),
        (changed(inputs__mean=[float("nan")]), r"mean \[nan\] and std .* are not of 1 channels"),
        (changed(inputs__std=[10**400]), r"does not describe a network"),
        (changed(inputs__std=[1e300]), r"std \[1e\+300\] are not of 1 channels"),
        (changed(inputs__std=[0.0]), r"mean \[0\.3\] and std \[0\.0\] are not of 1 channels"),
        (changed(inputs__mean=[0.1, 0.1]), r"are not of 1 channels"),
        (changed(inputs__classes=[]), r"its classes have no names"),
        (changed(accuracy="x"), r"Expected `array`, got `str`"),
        (changed(accuracy=[2]), r"accuracy is \[2\.0\]: give numbers from 0 to 1"),
        (changed(config__width=8), r"does not hold the weights that its config\.json asks for"),
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
        ("cifar100-tdo", "there is no network 'cifar100-tdo': say cifar100-td0?"),
        ("xyz", f"there is no network 'xyz': see {program()} models, or give a folder, or OWNER/NAME on the hub"),
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
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
