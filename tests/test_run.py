"""Analyses of runs: from traces on disk to rows with keys, finished work is kept; and `cascaded analyze`."""

import hashlib
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

import cascaded
from cascaded.analysis.curves import speed_accuracy
from cascaded.cli import main as cli
from cascaded.errors import InputError
from cascaded.files import write_tensors
from cascaded.results import analyzed, tasks
from cascaded.results.analyzed import find_analyzed
from cascaded.results.compare import differences, estimates
from cascaded.results.galleries import read_galleries
from cascaded.results.registry import ANALYSES, missing_recordings
from cascaded.results.run import run_analyses
from cascaded.results.table import load, read_provenance, results_file
from cascaded.results.tasks import Settings
from cascaded.traces.config import RecordingConfig
from cascaded.training.runs import weights_digest
from tests.hand_made import curve_of, value_of
from tests.made_traces import made_run, made_trace, noisy_trace
from tests.tiny_runs import tiny_run  # noqa: F401

FEW = Settings(epochs=1, draws=5)


def computed(monkeypatch):
    """How often each analysis is computed from now on."""
    calls = []

    def count(name, original):
        monkeypatch.setattr(tasks, name, lambda *args, **options: calls.append(name) or original(*args, **options))

    for name in ("speed_accuracy", "persistent_noise"):
        count(name, getattr(tasks, name))
    return calls


def test_rows_have_the_keys_of_run_and_recording(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = made_trace(embeddings=True)
    folder = made_run(tmp_path / "td" / "3", {"t": trace}, method="cascaded-td", lam=0.5, seed=3, width=8)
    assert run_analyses([tmp_path], settings=FEW) == []
    df = load(folder)
    assert set(df.analysis) == {"speed_accuracy", "selection_latency", "prototypicality"}
    row = df.iloc[0]
    assert (row.run, row["data"], row.split, row.method, row.lam) == ("td/3", "digits", "test", "cascaded-td", 0.5)
    assert (row.seed, row.width, row.time, row.kernel, row.steps, row.n_items) == (3, 8, "fine", "ews:0.9", 6, 40)
    assert math.isnan(row.fold)
    assert row.weights == trace.provenance.weights[:16]
    assert df.rounded_from.isna().all()
    assert row.analysis_version == ANALYSES[row.analysis].version
    expected = speed_accuracy(trace, draws=5)
    assert value_of(df[df.analysis == "speed_accuracy"], "accuracy") == value_of(expected, "accuracy")
    assert len(row.draws) == 5


@pytest.mark.parametrize(
    ("trained", "recorded", "here", "expected"), [(2, 2, 2, 2), (1, 3, 3, 1), (3, 2, 3, 2), (3, 3, 2, 2)]
)
def test_a_row_has_the_oldest_protocol_of_training_recording_and_analysis(
    tmp_path, monkeypatch, trained, recorded, here, expected
):
    monkeypatch.setattr(analyzed, "PROTOCOL_VERSION", here)
    trace = made_trace(made_with={"protocol": str(recorded)})
    folder = made_run(tmp_path / "0", {"t": trace}, made_with={"protocol": str(trained)})
    run_analyses([folder], ["speed_accuracy"], FEW)
    assert set(load(folder).protocol_version) == {expected}
    assert set(load(folder).version) == {cascaded.__version__}


def test_what_does_not_name_its_protocol_was_made_with_the_first(tmp_path):
    for number in (1, 2):  # one fold names it, the other does not
        made_with = {"protocol": "2"} if number == 1 else {}
        trace = made_trace(number, 4, indices=np.arange(2 - number, 8, 2), split="validation", made_with=made_with)
        made_run(tmp_path / f"fold{number}of2" / "0", {"t": trace}, fold=(number, 2), made_with={"protocol": "2"})
    run_analyses([tmp_path], ["speed_accuracy"], FEW)
    assert set(load(tmp_path).protocol_version) == {1}


def test_a_lambda_schedule_has_its_last_value_and_another_config(tmp_path):
    for k, lam in enumerate((0.0, (1.0, 0.0))):
        made_run(tmp_path / str(k) / "0", {"t": made_trace()}, method="cascaded-td", lam=lam)
    run_analyses([tmp_path], ["speed_accuracy"], FEW)
    df = load(tmp_path)
    assert set(df.lam) == {0.0}
    assert df.config.nunique() == 2


def test_finished_work_is_kept_and_new_traces_are_added(tmp_path, monkeypatch):
    folder = made_run(tmp_path / "0", {"a": made_trace(), "n": noisy_trace()})
    calls = computed(monkeypatch)
    run_analyses([folder], settings=FEW)
    assert sorted(calls) == ["persistent_noise", "speed_accuracy"]
    before = load(folder)
    run_analyses([folder], settings=FEW)
    assert len(calls) == 2
    made_run(folder, {"b": made_trace(1, steps=4)})
    run_analyses([folder], settings=FEW)
    assert calls[2:] == ["speed_accuracy"]
    after = load(folder, "speed_accuracy")
    assert len(after) > len(before[before.analysis == "speed_accuracy"])
    assert set(after.steps) == {4, 6}
    assert set(read_provenance(results_file(folder, "speed_accuracy"))["computed_from"]) == {"a", "b"}


@pytest.mark.parametrize("change", ["draws", "trace", "overwrite", "damage", "seed", "of others"])
def test_what_has_changed_is_computed_again(tmp_path, monkeypatch, change):
    folder = made_run(tmp_path / "0", {"a": made_trace()})
    run_analyses([folder], ["speed_accuracy"], FEW)
    calls, settings = computed(monkeypatch), FEW
    if change in ("draws", "seed"):
        settings = replace(FEW, **{change: 7})
    elif change == "trace":
        made_run(folder, {"a": made_trace(1)})
    elif change == "damage":
        results_file(folder, "speed_accuracy").write_bytes(b"PAR1")
    elif change == "of others":  # settings of other analyses
        settings = replace(FEW, epochs=9, unsettled_fraction=0.5)
    run_analyses([folder], ["speed_accuracy"], settings, overwrite=change == "overwrite")
    assert calls == ([] if change == "of others" else ["speed_accuracy"])


@pytest.mark.parametrize("change", ["nothing", "settings", "overwrite", "new trace", "other weights", "no weights"])
def test_results_of_deleted_traces_stay_until_the_weights_change(tmp_path, change):
    folder = made_run(tmp_path / "0")
    weights = folder / "model.safetensors"
    weights.write_bytes(b"one")
    made_run(folder, {"a": made_trace(weights=weights_digest(folder))})
    run_analyses([folder], ["speed_accuracy"], FEW)
    before = load(folder)
    shutil.rmtree(folder / "traces")
    settings = replace(FEW, draws=7) if change == "settings" else FEW
    if change == "other weights":
        weights.write_bytes(b"two")
    elif change == "no weights":
        weights.unlink()
    elif change == "new trace":
        made_run(folder, {"b": made_trace(1, steps=4, weights=weights_digest(folder))})
    run_analyses([folder], ["speed_accuracy"], settings, overwrite=change == "overwrite")
    if change == "other weights":
        assert not results_file(folder, "speed_accuracy").exists()
        return
    after = load(folder)
    assert_frame_equal(after[after.steps == 6], before)
    assert set(after.steps) == ({4, 6} if change == "new trace" else {6})


@pytest.mark.parametrize("change", ["overwrite", "weights are back"])
def test_of_rounded_weights_rows_of_trained_ones_stay_and_all_else_is_computed_again(tmp_path, monkeypatch, change):
    folder, trained, calls = made_run(tmp_path / "0"), hashlib.sha256(b"one").hexdigest(), computed(monkeypatch)
    file = folder / "model.safetensors"
    before = made_trace(weights=trained)
    file.write_bytes(b"one")
    run_analyses([made_run(folder, {"a": before})], ["speed_accuracy"], FEW)
    write_tensors(file, {"weight": np.ones(1)}, {"rounded_from": trained})
    for seed in (1, 2):  # of "b" there are rows of rounded weights alone
        named = {name: made_trace(seed, weights=weights_digest(folder)) for name in ("a", "b")}
        run_analyses([made_run(folder, named)], ["speed_accuracy"], FEW)
    assert len(calls) == 1 + 1 + 1
    rounded = {trained[:16]: weights_digest(folder)[:16]}
    rows = load(folder)
    assert dict(zip(rows.rounded_from.dropna(), rows.weights[rows.rounded_from.notna()], strict=True)) == rounded
    assert set(rows.weights[rows.rounded_from.isna()]) == {trained[:16]}
    if change == "weights are back":
        file.write_bytes(b"one")
        run_analyses([made_run(folder, {"a": before, "b": made_trace(1, weights=trained)})], ["speed_accuracy"], FEW)
        assert load(folder).rounded_from.isna().all()
    elif change == "overwrite":
        run_analyses([folder], ["speed_accuracy"], FEW, overwrite=True)
        assert load(folder).rounded_from.notna().all()


def claimed_run(folder):
    """A run whose traces give rows of every analysis with claims but taxonomic compliance."""
    other = {f"other-{k}": v for k, v in splits(data="svhn", in_distribution=False, items=12).items()}
    own = splits(embeddings=True, items=12)
    return made_run(folder, {**own, **other, "n": noisy_trace(), "t": noisy_trace("transient", frames=2)})


def test_numbers_that_claims_are_about_have_more_draws_and_the_first_of_them_are_those_of_all(tmp_path):
    few, many = claimed_run(tmp_path / "few"), claimed_run(tmp_path / "many")
    run_analyses([few], settings=FEW)
    run_analyses([many], settings=replace(FEW, claim_draws=9))
    one, other = load(few).drop(columns="run"), load(many).drop(columns="run")
    lengths = other.draws.map(len, na_action="ignore")
    more = other[lengths == 9].groupby("analysis").metric.agg(set).to_dict()
    assert more == {
        "speed_accuracy": {"accuracy", "area", "area_above_deadline", "cost_to_accuracy_50"},
        "prototypicality": {"rho", "rho_p"},
        "persistent_noise": {"accuracy"},
        "transient_noise": {"dip"},
        "learned_stopper": {"area_above_deadline"},
        "out_of_distribution": {"auroc", "fpr95", "auroc_gain"},
    }
    assert set(lengths.dropna()) == {5, 9}
    assert set(lengths[other.x.notna()].dropna()) == {5}
    assert_frame_equal(one, other.assign(draws=other.draws.map(lambda each: each[:5], na_action="ignore")))


def test_more_draws_for_claims_are_computed_from_the_same_traces_and_other_analyses_stay(tmp_path, monkeypatch):
    folder = made_run(tmp_path / "0", {"a": made_trace()})
    run_analyses([folder], ["speed_accuracy", "selection_latency"], FEW)
    before = read_provenance(results_file(folder, "selection_latency"))
    calls = computed(monkeypatch)
    run_analyses([folder], ["speed_accuracy", "selection_latency"], replace(FEW, claim_draws=9))
    assert calls == ["speed_accuracy"]
    assert load(folder, "speed_accuracy").draws.map(len, na_action="ignore").max() == 9
    assert read_provenance(results_file(folder, "selection_latency")) == before
    run_analyses([folder], ["speed_accuracy"], replace(FEW, claim_draws=5))  # as many as others: no other setting
    assert read_provenance(results_file(folder, "speed_accuracy"))["settings"] == {"draws": 5, "seed": 0}


def test_numbers_with_more_and_fewer_draws_are_compared_on_those_that_both_have(tmp_path):
    settings = {"cascaded-ce": FEW, "cascaded-td": replace(FEW, claim_draws=50)}
    for method, each in settings.items():
        trace = made_trace(seed=1, good=3 if method == "cascaded-td" else 2)
        lam = 0.0 if method == "cascaded-td" else None
        folder = made_run(tmp_path / method, {"a": trace}, method=method, lam=lam)
        run_analyses([folder], ["speed_accuracy"], each)
    df = load(tmp_path)
    (row,) = differences(df[df.metric == "accuracy"]).to_dict("records")
    a, b = (df[(df.metric == "accuracy") & (df.method == row[f"method_{side}"])].iloc[0] for side in "ab")
    n = min(len(a.draws), len(b.draws))
    assert n == 5
    assert_allclose((row["low"], row["high"]), np.quantile(a.draws[:n] - b.draws[:n], [0.025, 0.975]))
    (one,) = estimates(df[(df.metric == "accuracy") & (df.method == "cascaded-td")]).to_dict("records")
    (td,) = df[(df.metric == "accuracy") & (df.method == "cascaded-td")].draws
    assert len(td) == 50
    assert_allclose((one["low"], one["high"]), np.quantile(td, [0.025, 0.975]))


def test_transient_noise_of_all_lengths_is_one_analysis(tmp_path):
    traces = {f"t{n}": noisy_trace("transient", frames=n) for n in (1, 3)}
    folder = made_run(tmp_path / "0", traces)
    run_analyses([folder], ["transient_noise"], FEW)
    df = load(folder)
    assert sorted(df[df.metric == "dip_by_frames"].x) == [1, 3]
    assert (df.metric == "dip").sum() == 1
    assert (set(df.steps), set(df.noise), set(df.n_items)) == ({3}, {"focus"}, {8})


def splits(**options):
    return {split: made_trace(k, split=split, **options) for k, split in enumerate(("validation", "test"))}


def test_stopper_and_detectors_are_trained_on_validation_and_tested_on_test_images(tmp_path):
    other = {f"other-{k}": v for k, v in splits(data="svhn", in_distribution=False).items()}
    folder = made_run(tmp_path / "0", {**splits(), **other})
    assert run_analyses([folder], ["learned_stopper", "out_of_distribution"], FEW) == []
    df = load(folder)
    assert set(df.split) == {"test"}
    stopper = df[df.analysis == "learned_stopper"]
    assert set(stopper.rule) == {"threshold", "deadline", "stopper"}
    assert "accuracy" not in set(stopper.metric)
    assert set(df[df.analysis == "out_of_distribution"].ood_data) == {"svhn", "mean"}
    assert (folder / "stoppers" / "test.safetensors").exists()


def test_folds_are_joined(tmp_path):
    for number in (1, 2):
        trace = made_trace(number, 4, indices=np.arange(2 - number, 8, 2), split="validation")
        made_run(tmp_path / "m" / f"fold{number}of2" / "0", {"t": trace}, fold=(number, 2))
    (found,) = find_analyzed([tmp_path])
    assert found.folder == tmp_path / "m" / "folds-0"
    run_analyses([tmp_path], ["speed_accuracy", "learned_stopper"], FEW)
    df = load(tmp_path)
    assert set(df.n_items) == {8}
    assert df.fold.isna().all()
    assert missing_recordings(found.runs[0], "learned_stopper") == (
        "it needs a test split, and folds are tested on their validation splits"
    )


def test_training_time_is_read_from_the_metrics(tmp_path):
    folder = made_run(tmp_path / "0", batch_size=10)
    (folder / "metrics.jsonl").write_text('{"epoch": 4, "step": 100, "seconds": 50.0, "accuracy": [0.5]}\n')
    run_analyses([folder], ["run_time"], FEW)
    df = load(folder)
    values = dict(zip(df.metric, df.value, strict=True))
    assert values == pytest.approx({"seconds_per_epoch": 12.5, "images_per_second": 20, "training_hours": 50 / 3600})
    assert df["items"].isna().all()
    line = '{"epoch": 8, "step": 200, "seconds": 80.0, "processor_seconds": 36.0, "accuracy": [0.5]}\n'
    (folder / "metrics.jsonl").write_text(line)
    run_analyses([folder], ["run_time"], FEW)
    assert value_of(load(folder), "seconds_per_epoch") == 10
    assert value_of(load(folder), "training_hours") == pytest.approx(0.01)


def test_what_is_missing_is_what_this_run_needs(tmp_path):
    folder = made_run(tmp_path / "0", {"t": made_trace()})
    fine = RecordingConfig(kernel="ews:0.9", steps=70)
    assert missing_recordings(folder, "speed_accuracy") == (RecordingConfig(),)
    assert missing_recordings(folder, "selection_latency") == ()
    assert missing_recordings(folder, "prototypicality") == (replace(fine, embeddings=True),)
    assert missing_recordings(folder, "learned_stopper") == (replace(fine, split="validation"),)
    assert missing_recordings(folder, "persistent_noise") == (RecordingConfig(noise="occlusion"),)
    assert [need.data for need in missing_recordings(folder, "out_of_distribution")] == [None, *["photographs"] * 2]
    assert "cifar100" in missing_recordings(folder, "taxonomic_compliance")
    serial = made_run(tmp_path / "serial" / "0", method="serial-ce", noise="focus")
    assert missing_recordings(serial, "selection_latency") == (RecordingConfig(),)
    assert missing_recordings(serial, "transient_noise") == (RecordingConfig(noise="focus", protocol="transient"),)
    saved = made_run(tmp_path / "saved" / "0", {"t": made_trace(data="digits")}, data="cifar10")
    assert missing_recordings(saved, "persistent_noise") == (RecordingConfig(data="digits", noise="occlusion"),)


def test_from_trained_networks_to_results(tiny_run, tmp_path, capsys):  # noqa: F811
    for method in ("cascaded-td", "cascaded-ce"):
        shutil.copytree(tiny_run(method), tmp_path / method / "0")
    td = tmp_path / "cascaded-td"
    cli.run(["record", str(tmp_path), "--threads", "1", "--embeddings"])
    cli.run(["record", str(td), "--threads", "1", "--split", "validation"])
    cli.run(["record", str(td), "--noise", "occlusion", "--trials", "2", "--max-images", "40"])
    capsys.readouterr()
    cli.run(["analyze", str(tmp_path), "--epochs", "1", "--draws", "20", "--csv", str(tmp_path / "all.csv")])
    printed = capsys.readouterr().out
    metrics = (td / "0" / "metrics.jsonl").read_text().splitlines()
    df = load(td)
    speed = df[(df.analysis == "speed_accuracy") & (df.split == "test")]
    accuracy = json.loads(metrics[-1])["test"]
    assert list(curve_of(speed, "accuracy_per_step").values()) == pytest.approx(accuracy)
    assert set(df.analysis) == {
        "speed_accuracy",
        "selection_latency",
        "prototypicality",
        "persistent_noise",
        "learned_stopper",
        "run_time",
    }
    assert f"{100 * accuracy[-1]:.1f} %" in printed
    assert "CascadedTD(0)" in printed
    assert "paired differences" in printed
    assert len(read_galleries(td / "0")) == 2
    assert len(pd.read_csv(tmp_path / "all.csv")) == len(load(tmp_path))


def test_one_analysis_alone(tmp_path, capsys):
    made_run(tmp_path / "0", {"t": made_trace()})
    cli.run(["analyze", str(tmp_path / "0"), "--only", "selection-latency", "--no-galleries"])
    assert set(load(tmp_path).analysis) == {"selection_latency"}
    assert not (tmp_path / "0" / "results" / "galleries").exists()
    assert "transient_noise" not in capsys.readouterr().out


def test_a_gallery_without_its_data_is_no_reason_to_stop(tmp_path, capsys):
    place = str(tmp_path / "nowhere")
    made_run(tmp_path / "0", {"t": made_trace(data=place)}, data=place)
    cli.run(["analyze", str(tmp_path / "0"), "--only", "selection_latency"])
    assert "no gallery of" in capsys.readouterr().out
    assert len(load(tmp_path))


def test_odd_names_are_printed_as_they_are(tmp_path, capsys):
    made_run(tmp_path / "my [red]run [" / "x]" / "0", {"t [bold]x": made_trace()})
    made_run(tmp_path / "my [red]run [" / "y]" / "0", {"t [bold]x": made_trace(1)}, lam=1.0)
    cli.run(["analyze", str(tmp_path), "--only", "speed_accuracy"])
    assert f"wrote {tmp_path / 'my [red]run [' / 'x]' / '0' / 'results'}" in capsys.readouterr().out


def test_runs_that_share_a_name_have_columns_of_their_own(tmp_path, capsys):
    for width in (8, 16):
        made_run(tmp_path / str(width) / "0", {"t": made_trace(width)}, width=width)
    cli.run(["analyze", str(tmp_path), "--only", "speed_accuracy"])
    printed = capsys.readouterr().out
    assert all(f"config {config}" in printed for config in set(load(tmp_path).config))


def test_a_damaged_trace_is_an_error_after_the_others_were_analyzed_and_printed(tmp_path, capsys):
    folder = made_run(tmp_path / "0", {"a": made_trace(), "b": made_trace(1, steps=4)})
    file = folder / "traces" / "b.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"1234")
    with pytest.raises(InputError, match=r"speed_accuracy of b failed, .*b.safetensors is not what was recorded"):
        cli.run(["analyze", str(folder), "--only", "speed_accuracy"])
    assert "accuracy" in capsys.readouterr().out
    assert set(load(folder).steps) == {6}
