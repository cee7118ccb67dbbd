"""`cascaded record` on the command line."""

import shutil

import pytest

from cascaded.cli import main as cli
from cascaded.shell import to_args
from cascaded.traces.config import RecordingConfig
from cascaded.traces.store import find_traces, load_trace, read_header
from tests.refused import refused
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def here(tiny_run, tmp_path, monkeypatch):  # noqa: F811
    """The current folder, with two runs below it."""
    for name, method in (("td", "cascaded-td"), ("ce", "serial-ce")):
        shutil.copytree(tiny_run(method), tmp_path / "runs" / name / "0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(*words):
    cli.run(["record", *words])


def test_all_runs_below_a_folder_are_recorded_each_by_its_own_schedule(here, capsys):
    record("runs", "--steps", "2", "--max-images", "20", "--embeddings", "--dtype", "float16")
    td = here / "runs/td/0/traces/digits-test-osd-2-20images.safetensors"
    ce = here / "runs/ce/0/traces/digits-test-serial-2-20images.safetensors"
    assert f"wrote {td.relative_to(here)}" in capsys.readouterr().out
    assert (read_header(td).config.kernel, read_header(ce).config.schedule) == ("osd", "serial")
    assert all((load_trace(file).items, load_trace(file).embeddings.dtype) == (20, "float16") for file in (td, ce))
    assert read_header(td).provenance.run == "runs/td/0"


def test_serial_networks_are_skipped_if_a_kernel_is_given(here, capsys):
    record("runs", "--steps", "2", "--max-images", "5", "--kernel", "ews:0.9")
    printed = capsys.readouterr().out
    assert "skipped: --kernel is ews:0.9, runs/ce/0 is run serially, without delays: leave it out" in printed
    (file,) = here.glob("runs/*/0/traces/*.safetensors")
    assert file.name == "digits-test-ews0.9-2-5images.safetensors"


def test_a_damaged_trace_is_recorded_again_and_another_only_with_overwrite(here, capsys):
    words = ["runs/td/0", "--steps", "2", "--max-images", "5"]
    record(*words)
    (file,) = here.glob("runs/td/0/traces/*.safetensors")
    content = file.read_bytes()
    for damaged in (content[:-9], bytes([*content[:-1], content[-1] ^ 1]), b""):
        file.write_bytes(damaged)
        record(*words)
        assert file.read_bytes() == content
    assert "exists already" not in capsys.readouterr().out
    before = file.stat()
    record(*words)
    assert "exists already" in capsys.readouterr().out
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    record(*words, "--overwrite")
    assert file.stat().st_mtime_ns > before.st_mtime_ns


@pytest.mark.parametrize("count", ["358", "359", "9999"])
def test_a_maximum_that_leaves_no_image_out_is_not_part_of_the_name(here, count):
    record("runs/td/0", "--steps", "2", "--max-images", count)
    part = "-358images" if count == "358" else ""
    assert [file.stem for file in here.glob("runs/td/0/traces/*.safetensors")] == [f"digits-test-osd-2{part}"]


def test_a_stored_config_is_a_command_line_that_records_the_same(here, capsys):
    noise = "--noise focus --protocol transient --noise-frames 2 --trials 2 --seed 4 --steps 2"
    half = "--kernel ews:0.9 --steps 4 --embeddings --dtype float16 --split validation"
    for words in (half, noise, "--schedule serial"):
        record("runs/td/0", *words.split(), "--max-images", "10")
    capsys.readouterr()
    for trace in find_traces(here / "runs" / "td" / "0"):
        record("runs/td/0", *to_args(trace.config, RecordingConfig()))
        assert f"exists already: runs/td/0/traces/{trace.name}.safetensors" in capsys.readouterr().out


def test_everything_that_people_were_shown_is_recorded_with_one_option(here, capsys):
    record("runs", "--human", "--max-images", "20")
    expected = ["gray", "gray_sd_0.04", "gray_sd_0.16", "gray_sigma_1", "gray_sigma_1_side_190", "gray_sigma_3"]
    expected += ["gray_sigma_3_side_190"]
    for name, kernel, steps in (("td", "osd", 9), ("ce", "serial", 9)):
        names = {file.stem for file in (here / "runs" / name / "0" / "traces").glob("*.safetensors")}
        still = {f"digits-test-{kernel}-{each}-still-20images" for each in expected}
        assert names == still | {f"digits-test-{kernel}-{steps}-20images"}
    trace = load_trace(here / "runs/td/0/traces/digits-test-osd-gray_sd_0.04-still-20images.safetensors")
    assert (trace.steps, trace.items, trace.trials) == (9, 20, 1)
    assert len(trace.provenance.operations) == 9
    capsys.readouterr()
    record("runs/td", "--human", "--max-images", "20")
    assert capsys.readouterr().out.count("exists already") == 8
    refused("--human has its own noises, and focus is given: leave out", record, "runs", "--human", "--noise", "focus")
