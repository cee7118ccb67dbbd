"""`cascaded export` on the command line."""

import sys

import numpy as np
import pytest

from cascaded.cli import main as cli
from cascaded.runtime import Runner
from tests.made_networks import made, pixels

pytest.importorskip("onnx", reason="exporting needs the extra `export`")
pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", *map(str, words)])
    cli.main()


@pytest.mark.parametrize("method", ["cascaded-td", "shallow-deep"])
def test_a_saved_network_is_exported_and_runs(method, tmp_path, monkeypatch, capsys):
    net = made(method, accuracy=[0.1] * 9)
    net.save_pretrained(tmp_path / "saved")
    cascaded(monkeypatch, "export", tmp_path / "saved", "-o", tmp_path / "out")
    out = capsys.readouterr().out
    assert f"wrote {tmp_path / 'out'}: " in out
    assert ("the cascaded schedule" in out) == (method == "cascaded-td")
    runner = Runner(tmp_path / "out")
    logits = runner.full_pass(pixels().numpy())
    np.testing.assert_allclose(logits, net(pixels())[-1].detach(), atol=1e-5)
    assert runner.config.schedules[runner.schedule].accuracy == (0.1,) * 9


def test_another_kernel_can_be_exported(tmp_path, monkeypatch, capsys):
    made("cascaded-td", accuracy=[0.1] * 9).save_pretrained(tmp_path / "saved")
    cascaded(monkeypatch, "export", tmp_path / "saved", "--out", tmp_path / "out", "--kernel", "ews:0.9")
    runner = Runner(tmp_path / "out")
    assert runner.config.kernel == "ExponentialSmoothing(alpha=0.9)"
    assert runner.config.schedules["cascaded"].accuracy == ()  # it was measured with the network's own kernel


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cifar10-td0"], "--out"),
        (["cifar10-td9", "-o", "out"], "there is no network 'cifar10-td9': did you mean"),
        (["cifar10-td0", "-o", "taken"], "taken exists: give a new folder to export to"),
        (["cifar10-td0", "-o", "out", "--kernel", "fast"], "there is no kernel 'fast'"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_exit_code_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    with pytest.raises(SystemExit) as ended:
        cascaded(monkeypatch, "export", *words)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_the_packages_of_the_extra_it_ends_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SystemExit) as ended:
        cascaded(monkeypatch, "export", "cifar10-td0", "-o", tmp_path / "out")
    assert ended.value.code == 2
    assert "pip install 'cascaded[export]'" in capsys.readouterr().err


def test_a_network_is_exported_in_8_bits_calibrated_on_images_of_its_data(tmp_path, monkeypatch, capsys):
    net = made("shallow-deep", accuracy=[0.1] * 9)
    net.save_pretrained(tmp_path / "saved")
    cascaded(monkeypatch, "export", tmp_path / "saved", "-o", tmp_path / "out", "--int8")
    assert "files for the serial schedule" in capsys.readouterr().out
    runner = Runner(tmp_path / "out")
    assert (runner.config.precision, runner.config.schedules["serial"].accuracy) == ("int8", ())
    difference = runner.full_pass(pixels().numpy()) - net(pixels())[-1].detach().numpy()
    assert 0 < np.abs(difference).max() < 0.2


def test_a_data_set_without_a_use_is_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        cascaded(monkeypatch, "export", "cifar10-td0", "-o", tmp_path / "out", "--data", "cifar10-sample")
    assert "is the data set that --int8 or --exits auto looks at" in capsys.readouterr().err
