"""`cascaded record` as a newcomer types it, right and wrong."""

import shutil
import sys

import pytest

from cascaded.cascade.kernels import ExponentialSmoothing, OneStepDelay
from cascaded.cli import main as cli
from cascaded.cli.record import Showing, make_view
from cascaded.errors import InputError
from cascaded.shell import program
from cascaded.traces.protocols import Persistent, Still, Transient
from cascaded.traces.store import load_trace, read_header
from cascaded.training.load import load_run
from tests.tiny_runs import tiny_run  # noqa: F401


@pytest.fixture
def here(tiny_run, tmp_path, monkeypatch):  # noqa: F811
    """A folder with two runs, in which a newcomer stands."""
    for name, model in (("td", "cascaded-td"), ("ce", "serial-ce")):
        shutil.copytree(tiny_run(model), tmp_path / "runs" / name / "0")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cascaded(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cascaded", "record", *words])
    cli.main()


def test_all_runs_below_a_folder_are_recorded_each_by_its_own_schedule(here, monkeypatch, capsys):
    cascaded(monkeypatch, "runs", "--steps", "2", "--limit", "20", "--embeddings", "--half")
    td = here / "runs" / "td" / "0" / "traces" / "digits-test-osd-2-20images.safetensors"
    ce = here / "runs" / "ce" / "0" / "traces" / "digits-test-serial-2-20images.safetensors"
    told = capsys.readouterr().out
    assert f"wrote {td.relative_to(here)}" in told
    assert f"next: {program()} analyse runs" in told
    assert (read_header(td).origin.kernel, read_header(ce).origin.schedule) == ("osd", "serial")
    assert all((load_trace(file).items, load_trace(file).embeddings.dtype) == (20, "float16") for file in (td, ce))
    assert read_header(td).origin.run == "runs/td/0"


def test_networks_that_run_serially_are_passed_over_where_a_kernel_is_named(here, monkeypatch, capsys):
    cascaded(monkeypatch, "runs", "--steps", "2", "--limit", "5", "--kernel", "ews:0.9")
    told = capsys.readouterr().out
    assert "passed over: --kernel is ews:0.9, runs/ce/0 is run serially, where nothing is delayed: leave it out" in told
    assert [file.name for file in here.glob("runs/*/0/traces/*.safetensors")] == [
        "digits-test-ews0.9-2-5images.safetensors"
    ]


def test_what_was_damaged_is_recorded_again(here, monkeypatch, capsys):
    words = ["runs/td/0", "--steps", "2", "--limit", "5"]
    cascaded(monkeypatch, *words)
    (file,) = here.glob("runs/td/0/traces/*.safetensors")
    content = file.read_bytes()
    for damaged in (content[:-9], bytes([*content[:-1], content[-1] ^ 1]), b""):
        file.write_bytes(damaged)
        cascaded(monkeypatch, *words)
        assert file.read_bytes() == content
    assert "there already" not in capsys.readouterr().out
    cascaded(monkeypatch, *words)
    assert "there already" in capsys.readouterr().out


@pytest.mark.parametrize("limit", ["358", "359", "9999"])
def test_a_limit_that_leaves_nothing_out_is_none(here, monkeypatch, limit):
    cascaded(monkeypatch, "runs/td/0", "--steps", "2", "--limit", limit)
    part = "-358images" if limit == "358" else ""
    assert [file.stem for file in here.glob("runs/td/0/traces/*.safetensors")] == [f"digits-test-osd-2{part}"]


def test_transient_noise_makes_a_trace_for_every_number_of_noisy_frames(here, monkeypatch):
    words = ["--noise", "focus", "--protocol", "transient", "--noisy", "1", "3", "--trials", "2", "--seed", "4"]
    cascaded(monkeypatch, "runs/td/0", *words, "--limit", "10", "--steps", "2")
    for frames in (1, 3):
        file = here / "runs/td/0/traces" / f"digits-test-osd-focus-transient-{frames}-10images.safetensors"
        told = read_header(file)
        assert (told.steps, told.items) == (4 + frames, 20)
        noise = told.origin.noise
        assert (noise.onset, noise.frames, noise.trials, noise.seed) == (3, frames, 2, 4)


def test_a_second_time_nothing_is_written_and_again_replaces(here, monkeypatch, capsys):
    words = ["runs/ce/0", "--limit", "10", "--steps", "2"]
    cascaded(monkeypatch, *words)
    (file,) = (here / "runs/ce/0/traces").glob("*.safetensors")
    before = file.stat()
    cascaded(monkeypatch, *words)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    cascaded(monkeypatch, *words, "--again")
    assert file.stat().st_mtime_ns > before.st_mtime_ns


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no run is given: say which, as in "),
        (["nowhere"], "there is no folder nowhere: give the folder of a run, such as runs/td0/0"),
        (["empty"], "empty holds no run, no spec.json is in or below it: train one with cascaded train"),
        (["runs", "--kernel", "ewz:0.9"], "there is no kernel 'ewz:0.9': say osd (one-step delay), none, ews:0.9"),
        (["runs", "--kernel", "ews:much"], "kernel is 'ews:much', 'much' is not a number: say osd"),
        (["runs", "--noise", "oclusion"], "noise is 'oclusion', known are focus, perlin, occlusion, resolution, "),
        (["runs", "--split", "tset"], "digits has no split 'tset', there are train, test: use one of them"),
        (["runs", "--data", "digist"], "there is no data set 'digist': say digits?"),
        (["runs", "--steps", "0"], "--steps is 0: give at least 1"),
        (["runs", "--steps", "-3"], "--steps is -3: give at least 1"),
        (["runs", "--limit", "0"], "--limit is 0: give at least 1"),
        (["runs", "--protocol", "transient"], "--protocol is transient and there is no --noise: say which"),
        (["runs", "--noise", "focus", "--noisy", "2"], "--noisy is [2], frames of transient noise: say --protocol"),
        (["runs", "--noise", "focus", "--trials", "0"], "--trials is 0: give at least 1"),
        (["runs", "--noise", "focus", "--protocol", "transient", "--noisy", "0"], "--noisy is [0]: give different"),
        (["runs", "--noise", "focus", "--embeddings"], "embeddings are kept of still images, focus-persistent was"),
        (["runs", "--device", "toaster"], "--device is toaster: say auto, cpu, cuda, cuda:1 or mps"),
    ],
)
def test_wrong_commands_end_in_a_sentence_and_exit_code_two(here, monkeypatch, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        cascaded(monkeypatch, *words)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"cascaded: {message}")
    assert told.count("\n") == 1
    assert not list(here.glob("runs/*/0/traces/*"))


def test_the_nearest_noise_is_suggested(here, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        cascaded(monkeypatch, "runs", "--noise", "rotate")
    assert capsys.readouterr().err.endswith("did you mean 'rotation'?\n")


def test_words_become_views(tiny_run):  # noqa: F811
    run, serial = load_run(tiny_run()), load_run(tiny_run("serial-ce"))
    osd, ews = OneStepDelay(), ExponentialSmoothing(0.9)
    assert make_view(run, Showing()) == Still(osd, "cascaded", 9)
    assert make_view(run, Showing(kernel="ews:0.9")) == Still(ews, "cascaded", 70)  # it never settles
    assert make_view(run, Showing(kernel="none")).steps == 9  # as many as there are blocks and a stem
    assert make_view(run, Showing(kernel="taps:0,0.5,0.5")).steps == 1 + 8 * 2 + 1
    with pytest.raises(InputError, match="is run serially, where nothing is delayed: leave it out, or say --schedule"):
        make_view(serial, Showing(kernel="ews:0.9"))
    with pytest.raises(InputError, match=r"--steps is 70, .* is done after 9 cycles: ask for no more"):
        make_view(serial, Showing(steps=70))
    assert make_view(serial, Showing(schedule="cascaded")) == Still(osd, "cascaded", 9)
    assert make_view(run, Showing(noise="focus", trials=3, seed=2)) == Persistent(osd, "cascaded", "focus", 3, 2, 9)
    transient = Showing(noise="focus", protocol="transient")
    assert make_view(run, transient) == Transient(osd, "cascaded", "focus", 5, 0, (1, 2, 3, 4, 5, 6), 10, 10)


def test_a_shallow_deep_network_is_not_cascaded(tiny_run):  # noqa: F811
    run = load_run(tiny_run("shallow-deep"))
    assert make_view(run, Showing()).schedule == "serial"
    with pytest.raises(InputError, match="shallow-deep heads read blocks that have settled"):
        make_view(run, Showing(schedule="cascaded"))
