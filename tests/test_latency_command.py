"""`cascaded latency` on the command line."""

import json
import shutil
import sys
from dataclasses import replace

import pytest
import torch

from cascaded.cli import main as cli
from cascaded.errors import InputError
from cascaded.hub.locate import locate
from cascaded.models.vit import ViT
from cascaded.runtime.exits import best_exits
from cascaded.runtime.latency import CHOSEN, FULL, Timing, record_latency
from cascaded.runtime.recommend import recommend
from cascaded.traces.select import limit_images, select_images
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", "latency", *map(str, words)])
    cli.main()


@pytest.mark.parametrize(("method", "rules"), [("cascaded-td", 2), ("shallow-deep", 1)])
def test_timings_are_printed_and_written_and_shallow_deep_runs_serially(
    tiny_run,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
    method,
    rules,
):
    folder = shutil.copytree(tiny_run(method), tmp_path / "0")
    cascaded(
        monkeypatch,
        folder,
        "--thresholds",
        0.3,
        "--batch-sizes",
        8,
        "--max-images",
        20,
        "--device",
        "cpu",
        "--no-exported",
    )
    out = capsys.readouterr().out
    assert f"wrote {folder / 'latency.json'}" in out
    assert "latency of predictions" in out
    written = json.loads((folder / "latency.json").read_text())
    assert (written["weights"], written["items"], written["threads"]) == (load_run(folder).weights, 20, 1)
    assert [each["rule"] for each in written["timings"]] == [FULL, "serial", "cascaded"][: 1 + rules]


def test_a_maximum_above_the_number_of_images_takes_all(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    folder = shutil.copytree(tiny_run("shallow-deep"), tmp_path / "0")
    cascaded(
        monkeypatch,
        folder,
        "--thresholds",
        0.0,
        "--batch-sizes",
        400,
        "--max-images",
        1000,
        "--device",
        "cpu",
        "--no-exported",
    )
    assert json.loads((folder / "latency.json").read_text())["items"] == 359


def timing(runtime, rule, threshold, accuracy, milliseconds, batch_size=1, network=""):
    seconds = milliseconds / 1000
    times = dict.fromkeys(("p50", "p95", "p99", "mean", "typical", "total"), seconds)
    about = (runtime, rule, threshold, network, batch_size, accuracy, 9.0)
    return Timing(*about, **times, time_of_full=1.0, stopped=(1.0,))


def test_the_recommendation_follows_from_the_numbers():
    full = [timing("torch", FULL, None, 0.82, 2.0), timing("onnx", FULL, None, 0.82, 0.5)]
    poor, slow = timing("onnx", "cascaded", 0.5, 0.75, 0.1), timing("onnx", "cascaded", 0.9, 0.815, 1.0)
    fast = timing("onnx", "serial", 0.8, 0.811, 0.4)
    assert recommend([*full, poor]) == [
        "Batch size 1: use the exported full pass (0.50 ms, accuracy 82.0%): no early exit is within 1 point of its "
        "accuracy."
    ]
    assert recommend([*full, poor, slow]) == [
        "Batch size 1: use the exported full pass (0.50 ms, accuracy 82.0%): the fastest early exit within 1 point of "
        "its accuracy, exported cascaded early exit at threshold 0.9, takes 2.00 times as long."
    ]
    assert recommend([*full, poor, slow, fast]) == [
        "Batch size 1: use the exported serial early exit at threshold 0.8 (0.40 ms, accuracy 81.1%): it takes 0.80 of "
        "the time of the exported full pass (0.50 ms, accuracy 82.0%)."
    ]
    assert len(recommend([*full, timing("torch", FULL, None, 0.82, 2.0, batch_size=16)])) == 2


def test_a_baseline_is_compared_with_what_the_network_reaches_in_the_same_time():
    full, early = timing("onnx", FULL, None, 0.82, 0.5), timing("onnx", "serial", 0.5, 0.70, 0.2)

    def sentence(accuracy, milliseconds):
        baseline = timing("onnx", FULL, None, accuracy, milliseconds, network="narrow")
        slower = timing("torch", FULL, None, accuracy, 9.0, network="narrow")
        first, second = recommend([full, early, slower, baseline])
        assert first.startswith("Batch size 1: use the exported full pass (0.50 ms")
        return second.removeprefix("Batch size 1: ")

    rival = "the exported serial early exit at threshold 0.5 (0.20 ms, accuracy 70.0%)."
    narrow = "the exported full pass of narrow (0.30 ms, accuracy {}%)"
    best = "the best of this network in that time"
    assert sentence(0.75, 0.3) == f"{narrow.format(75.0)} is more accurate than {best}, {rival}"
    assert sentence(0.705, 0.3) == f"{narrow.format(70.5)} is within 1 point of {best}, {rival}"
    assert sentence(0.60, 0.3) == f"{narrow.format(60.0)} is less accurate than {best}, {rival}"
    assert "is faster than every rule of this network, and less" in sentence(0.75, 0.1)
    assert sentence(0.815, 0.3) == f"better, use {narrow.format(81.5)}: it takes 0.60 of the time of the " + (
        "exported full pass."
    )


def test_full_passes_of_baselines_are_timed_on_the_same_images(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    pytest.importorskip("onnx", reason="exporting needs the extra `export`")
    pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
    folder, other = shutil.copytree(tiny_run(), tmp_path / "0"), str(tiny_run("shallow-deep"))
    options = ("--thresholds", 0.3, "--batch-sizes", 8, "--max-images", 20, "--device", "cpu")
    cascaded(monkeypatch, folder, *options, "--baselines", other)
    assert f"full pass of {other} (" in " ".join(capsys.readouterr().out.split("\n"))
    written = json.loads((folder / "latency.json").read_text())
    found = [each for each in written["timings"] if each["network"]]
    assert found[0]["accuracy"] == found[1]["accuracy"]
    assert [(each["runtime"], each["rule"], each["network"]) for each in found] == [
        ("torch", FULL, other),
        ("onnx", FULL, other),
    ]
    run = load_run(folder)
    with pytest.raises(InputError, match=r"cifar takes 3 channels of 32 x 32, .* 1 channel of 8 x 8: a baseline must"):
        record_latency(run, (0.3,), (8,), 20, baselines={"cifar": load_run(locate("cifar10-td0"))})


def test_a_baseline_of_other_classes_is_refused(tiny_run, tmp_path):  # noqa: F811
    run = load_run(tiny_run())
    other = replace(run, inputs=replace(run.inputs, classes=("a", "b", "c", "d")))
    with pytest.raises(
        InputError, match=r"letters predicts 4 classes \(a, b, c, ...\), .* 10 classes \(0, 1, 2, ...\)"
    ):
        record_latency(run, (0.3,), (8,), 20, baselines={"letters": other})


@pytest.mark.parametrize("method", ["cascaded-td", "shallow-deep"])
def test_the_exported_network_is_timed_beside_torch(tiny_run, tmp_path, monkeypatch, capsys, method):  # noqa: F811
    pytest.importorskip("onnx", reason="exporting needs the extra `export`")
    pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
    folder = shutil.copytree(tiny_run(method), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.3, "--batch-sizes", 4, "--max-images", 20, "--device", "cpu")
    out = capsys.readouterr().out
    assert "Batch size 4: use the " in out
    written = json.loads((folder / "latency.json").read_text())
    by_runtime = {}
    for each in written["timings"]:
        if each["rule"] == CHOSEN:  # whether there are exits that pay off depends on the machine
            continue
        by_runtime.setdefault(each["runtime"], []).append(each)
        assert sum(each["stopped"]) == pytest.approx(1)
        assert 0 < each["p50"] <= each["p95"] <= each["p99"]
    same = ("rule", "threshold", "accuracy", "steps", "stopped")
    assert [[each[key] for key in same] for each in by_runtime["onnx"]] == [
        [each[key] for key in same] for each in by_runtime["torch"]
    ]
    assert "<svg" in (folder / "latency.svg").read_text()
    assert (folder / "latency-processors.svg").exists() == bool(written["processors"]) == (method == "cascaded-td")


def test_exits_that_pay_off_are_timed_as_well(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    pytest.importorskip("onnx", reason="exporting needs the extra `export`")
    pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
    folder = shutil.copytree(tiny_run("shallow-deep"), tmp_path / "0")
    monkeypatch.setattr("cascaded.runtime.exits.measure_steps", lambda runner, image: [1.0] * 9 + [0.5])
    monkeypatch.setattr(
        "cascaded.runtime.exits.best_exits",
        lambda logits, labels, seconds: best_exits(logits, labels, seconds, within=1.0),
    )
    cascaded(monkeypatch, folder, "--thresholds", 0.3, "--batch-sizes", 4, "--max-images", 20, "--device", "cpu")
    assert f"{CHOSEN}: exits after step 1 at threshold 0: " in capsys.readouterr().out
    timings = json.loads((folder / "latency.json").read_text())["timings"]
    found = {each["threshold"]: each for each in timings if each["rule"] == CHOSEN}
    assert set(found) == {0.0, 0.3}
    assert found[0.0]["stopped"] == [1.0]  # at the first step, and so is its accuracy
    run = load_run(folder)
    images, items = select_images(run)
    items = limit_images(images, items, 20)
    with torch.no_grad():
        first = run.net(run.normalized(images.images[items]), schedule="serial")[0].argmax(dim=-1)
    assert found[0.0]["accuracy"] == pytest.approx(float((first == images.labels[items]).float().mean()))
    assert f"exported, {CHOSEN} early exit" in (folder / "latency.svg").read_text()


def shallow_vit(num_classes, image_size, in_channels, width):
    """An architecture of one's own that is converted: two layers are enough."""
    return ViT(num_classes, image_size, patch=4, depth=2, width=width, heads=2, in_channels=in_channels)


def test_a_transformer_is_timed_with_its_blocks_apart_and_in_one_call(tiny_run, tmp_path, monkeypatch, capsys):  # noqa: F811
    pytest.importorskip("onnx", reason="exporting needs the extra `export`")
    pytest.importorskip("onnxruntime", reason="running exported networks needs the extra `export`")
    folder = shutil.copytree(tiny_run(arch=f"{__name__}:shallow_vit", max_images=64), tmp_path / "0")
    cascaded(monkeypatch, folder, "--thresholds", 0.2, "--batch-sizes", 4, "--max-images", 10, "--device", "cpu")
    timings = json.loads((folder / "latency.json").read_text())["timings"]
    rules = [FULL, "serial", "cascaded", "cascaded, batched blocks"]
    assert [(each["runtime"], each["rule"]) for each in timings] == [
        *(("torch", rule) for rule in rules),
        *(("onnx", rule) for rule in rules),
    ]
    early = [each for each in timings if each["rule"].startswith("cascaded")]
    assert len({(each["accuracy"], tuple(each["stopped"])) for each in early}) == 1
    assert "batched blocks" in (folder / "latency.svg").read_text()


def test_without_the_packages_of_the_extra_torch_alone_is_timed_and_the_output_says_so(
    tiny_run,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
):
    folder = shutil.copytree(tiny_run(), tmp_path / "0")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    cascaded(monkeypatch, folder, "--thresholds", 0.3, "--batch-sizes", 8, "--max-images", 10, "--device", "cpu")
    assert "the exported network is not timed, a package is not installed" in capsys.readouterr().out
    written = json.loads((folder / "latency.json").read_text())
    assert {each["runtime"] for each in written["timings"]} == {"torch"}
