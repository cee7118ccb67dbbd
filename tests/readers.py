"""Every reader of files, with a valid file that it reads: what the fuzz test damages."""

from __future__ import annotations

import gzip
import io
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import cascaded
from cascaded import RunConfig
from cascaded.analysis.stopper import Form as StopperForm
from cascaded.analysis.stopper import Stopper, load_stopper
from cascaded.cli.main import run
from cascaded.cli.queue import show_status
from cascaded.cli.reproduce import print_claims
from cascaded.data import human as judgements
from cascaded.data import load as load_images
from cascaded.data.cache import fetch, latest
from cascaded.data.trials import OWN
from cascaded.files import read_json, sha256, write_json
from cascaded.paper.claims import evaluate
from cascaded.paper.published import read_claims, write_claims
from cascaded.paper.status import QUEUE, Entry, QueueFile
from cascaded.paper.work import DONE, WORK, Done, Measurement, Work
from cascaded.report.write import remove_others
from cascaded.results.compare import estimates
from cascaded.results.galleries import Gallery, gallery_file, read_galleries, write_gallery
from cascaded.results.table import load as load_results
from cascaded.results.table import write
from cascaded.runtime import Runner
from cascaded.runtime.images import read_image
from cascaded.traces.activations import load_activations
from cascaded.traces.config import RecordingConfig
from cascaded.traces.store import load_trace, read_header
from cascaded.traces.writer import Recording, make_form, note_of
from cascaded.training.checkpoint import load_checkpoint
from cascaded.training.config import ExecutionConfig
from cascaded.training.inputs import Inputs
from cascaded.training.loop import train
from cascaded.training.runs import MANIFEST, PARTS, checkpoint_places, is_done, manifest_of, read_config
from tests.exports import inputs_of, tiny_net
from tests.made_table import made_table
from tests.made_traces import made_trace
from tests.samples import READERS, Sample, reader
from tests.tiny_data import tiny_data


@pytest.fixture(scope="module")
def sample(tmp_path_factory, tiny_run) -> Callable[[str], Sample]:
    """`sample("trace")`: a sample by the name of its reader, each in a folder of its own, made once."""
    made: dict[str, Sample] = {}

    def find(name: str) -> Sample:
        if name not in made:
            made[name] = READERS[name](tmp_path_factory.mktemp("sample"), tiny_run)
        return made[name]

    return find


# --- runs


def copied(place: Path, tiny: Callable[..., Path]) -> Path:
    """A finished run that may be damaged."""
    return Path(shutil.copytree(tiny(), place / "0"))


def checkpoint(place: Path, tiny: Callable[..., Path], part: str) -> Sample:
    folder = checkpoint_places(copied(place, tiny))[-1]
    whole = load_checkpoint(folder)

    def read() -> None:
        found = load_checkpoint(folder)
        assert found.position == whole.position
        for before, now in ((whole.model, found.model), (whole.optimizer, found.optimizer)):
            assert before.keys() == now.keys()
            assert all(torch.equal(before[name], now[name]) for name in before)

    return Sample(folder / part, part.rpartition(".")[2], read)


for part in (*PARTS, MANIFEST):
    reader(checkpoint, f"checkpoint {part}", part=part)


def forged_checkpoint(place: Path, tiny: Callable[..., Path], part: str) -> Sample:
    """The manifest fits what was changed: a stranger can write one."""
    folder = copied(place, tiny)
    newest = checkpoint_places(folder)[-1]

    def seal() -> None:
        (newest / MANIFEST).write_bytes(manifest_of({name: sha256(newest / name) for name in PARTS}))

    def read() -> None:
        cascaded.load_run(folder)
        train(read_config(folder), folder, ExecutionConfig("cpu"), resume=True)

    return Sample(newest / part, part.rpartition(".")[2], read, seal)


for part in PARTS:
    reader(forged_checkpoint, f"forged checkpoint {part}", part=part)


@reader
def config(place: Path, tiny: Callable[..., Path]) -> Sample:
    folder = copied(place, tiny)

    def read() -> None:
        cascaded.load_run(folder)
        is_done(folder)
        read_config(folder).differences(read_config(folder))

    return Sample(folder / "config.json", "json", read)


@reader
def metrics(place: Path, tiny: Callable[..., Path]) -> Sample:
    folder = copied(place, tiny)

    def read() -> None:
        is_done(folder)
        cascaded.load(folder)

    return Sample(folder / "metrics.jsonl", "json", read)


# --- traces


@reader
def trace(place: Path, tiny: Callable[..., Path]) -> Sample:
    whole, file = made_trace(embeddings=True), place / "trace.safetensors"
    cascaded.save_trace(whole, file)

    def read() -> None:
        found = load_trace(file)
        assert read_header(file).steps == found.steps
        for name in ("logits", "labels", "indices"):
            assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()

    return Sample(file, "safetensors", read)


@reader
def interrupted_trace(place: Path, tiny: Callable[..., Path]) -> Sample:
    whole, file = made_trace(), place / "trace.safetensors"
    form = make_form(whole.config, whole.items, whole.classes)

    def begin() -> Recording:
        return Recording(file, form, whole.config, whole.provenance)

    begin().keep(8)
    return Sample(note_of(file), "json", lambda: assert_within(begin().done, whole.items))


def assert_within(done: int, items: int) -> None:
    assert 0 <= done <= items


@reader
def activations(place: Path, tiny: Callable[..., Path]) -> Sample:
    folder = copied(place, tiny)
    run(["record", str(folder), "--activations", "2", "--max-images", "8", "--threads", "1"])
    (file,) = (folder / "activations").glob("*.safetensors")
    return Sample(file, "safetensors", lambda: load_activations(file))


# --- networks to share


def network(place: Path, tiny: Callable[..., Path], part: str) -> Sample:
    cascaded.load(tiny()).save_pretrained(place)
    return Sample(place / part, part.rpartition(".")[2], lambda: cascaded.load(place))


for part in ("config.json", "model.safetensors"):
    reader(network, f"network {part}", part=part)


def exported(place: Path, tiny: Callable[..., Path], part: str, forged: bool = False) -> Sample:
    """An exported network; if it is forged, the digests fit what was changed."""
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="exporting needs the extra `export`")
    net, folder = tiny_net("resnet"), place / "exported"
    cascaded.export(net, folder, inputs=inputs_of(net))

    def seal() -> None:
        content = read_json(folder / "config.json")
        write_json(
            folder / "config.json", content | {"files": {name: sha256(folder / name) for name in content["files"]}}
        )

    def read() -> None:
        runner = Runner(folder)
        runner.predict(np.zeros((2, *runner.config.inputs.shape), np.uint8), threshold=0.5, steps=3)

    return Sample(folder / part, part.rpartition(".")[2], read, seal if forged else None)


for part in ("config.json", "step-1.onnx", "weights.bin"):
    reader(exported, f"exported {part}", part=part)
for part in ("step-1.onnx", "weights.bin"):
    reader(exported, f"forged exported {part}", part=part, forged=True)


# --- images and data


def image(place: Path, tiny: Callable[..., Path], form: str, mode: str) -> Sample:
    pixels = np.arange(12 * 10 * 4).astype(np.uint8).reshape(12, 10, 4)
    file = place / "a" / f"image.{form.lower()}"
    file.parent.mkdir()
    Image.fromarray(pixels, "RGBA").convert(mode).save(file, form)

    def read() -> None:
        read_image(file).resize((3, 8, 8))

    return Sample(file, form, read)


for form, mode in (("PNG", "RGBA"), ("JPEG", "RGB"), ("WEBP", "RGB"), ("GIF", "P"), ("TIFF", "RGB"), ("BMP", "RGB")):
    reader(image, f"image {form}", form=form, mode=mode)


@reader
def image_folder(place: Path, tiny: Callable[..., Path]) -> Sample:
    sample = image(place, tiny, "PNG", "RGB")
    return Sample(sample.file, "PNG", lambda: load_images(place, image_size=8, cache=place / ".cache"))


@reader
def parquet(place: Path, tiny: Callable[..., Path]) -> Sample:
    file = tiny_data(place / "data") / "svhn" / "test-00000-of-00001.parquet"
    (file.parent / "validation-00000-of-00001.parquet").unlink()
    return Sample(file, "parquet", lambda: load_images(file.parent, "test", cache=place / "cache"))


@reader
def cache(place: Path, tiny: Callable[..., Path]) -> Sample:
    (place / "data" / "a").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(place / "data" / "a" / "one.png")
    load_images(place / "data", cache=place)
    (file,) = place.glob("*.safetensors")

    def read() -> None:
        latest(place, {"name": str(place / "data"), "split": "train"})
        fetch(file)

    return Sample(file, "safetensors", read)


def published(place: Path, tiny: Callable[..., Path], name: str) -> Sample:
    numbers = np.random.default_rng(0)
    np.save(place / judgements.COUNTS, numbers.integers(1, 9, (10_000, 10)).astype(np.int8))
    zipped = {"labels": numbers.integers(0, 9, 50_000, np.uint8), "scores": numbers.random(50_000, np.float32)}
    np.savez_compressed(place / judgements.CSCORES, **zipped)
    ask = judgements.cscores if name == judgements.CSCORES else judgements.human_counts

    def read() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("CASCADED_DATA", str(place))
            ask(np.arange(4))

    return Sample(place / name, "numpy", read)


for name in (judgements.COUNTS, judgements.CSCORES):
    reader(published, name, name=name)


@reader
def trials(place: Path, tiny: Callable[..., Path]) -> Sample:
    file = place / "trials.csv"
    file.write_text("".join(gzip.decompress(OWN.read_bytes()).decode().splitlines(keepends=True)[:60]))
    return Sample(file, "text", lambda: judgements.curves(judgements.trials(file), draws=2))


@reader
def compressed_trials(place: Path, tiny: Callable[..., Path]) -> Sample:
    file = Path(shutil.copy(OWN, place))
    return Sample(file, "bytes", lambda: judgements.curves(judgements.trials(file), draws=2))


# --- results


@reader
def stopper(place: Path, tiny: Callable[..., Path]) -> Sample:
    file = place / "stopper.safetensors"
    Stopper(StopperForm(4, 6, "osd", 8), torch.Generator().manual_seed(0)).save(file)
    return Sample(file, "safetensors", lambda: load_stopper(file))


@reader
def results(place: Path, tiny: Callable[..., Path]) -> Sample:
    file = write(place, "run_time", made_table("run_time", seeds=(0,)), {"version": 1})
    return Sample(file, "bytes", lambda: estimates(load_results(place)))


@reader
def galleries(place: Path, tiny: Callable[..., Path]) -> Sample:
    images, row, file = np.zeros((2, 3, 8, 8), np.uint8), np.arange(2), gallery_file(place, "t")
    write_gallery(file, Gallery({}, "", ("ant",), images, row, np.ones(2, np.float32), np.zeros(2, np.int64)))
    return Sample(file, "safetensors", lambda: read_galleries(place))


# --- reproductions and reports


@reader
def queue(place: Path, tiny: Callable[..., Path]) -> Sample:
    entry = Entry(1, "digits/0", str(place), "kind", epochs=2, steps=20, estimate=3.0)
    done = replace(entry, name="digits/1", state="done")
    QueueFile("cascaded reproduce all", 2, (entry, done)).write(place)
    return Sample(place / QUEUE, "json", lambda: show_status(place, "", Console(file=io.StringIO())))


@reader
def work(place: Path, tiny: Callable[..., Path]) -> Sample:
    measured = Measurement((RecordingConfig(noise="occlusion"),), {"speed_accuracy": {"version": 1}})
    Work(str(place), RunConfig(), measurements={"precise": measured}).write()
    return Sample(place / WORK, "json", lambda: Work.read(place).missing())


@reader
def done(place: Path, tiny: Callable[..., Path]) -> Sample:
    Done().also("precise", Measurement((RecordingConfig(),)), ["traces/one"], ["a note"], 3.0).write(place)
    return Sample(place / DONE, "json", lambda: Work(str(place), measurements={"precise": Measurement()}).missing())


@reader
def claims(place: Path, tiny: Callable[..., Path]) -> Sample:
    table = made_table("speed_accuracy", "run_time")
    file = write_claims(evaluate(table), place / "claims.csv")
    return Sample(file, "text", lambda: print_claims(read_claims(file), "", Console(file=io.StringIO())))


@reader
def drawn(place: Path, tiny: Callable[..., Path]) -> Sample:
    remove_others(place, ["one.svg", "two.svg"])
    return Sample(place / ".drawn.json", "json", lambda: remove_others(place, ["one.svg"]))


@reader
def request(place: Path, tiny: Callable[..., Path]) -> Sample:
    pytest.importorskip("fastapi", reason="the server needs the extra `serve`")
    from cascaded.runtime.requests import Limits, RefusedError, decode_request

    sample, inputs = image(place, tiny, "PNG", "RGB"), Inputs((3, 8, 8), (0.5,) * 3, (0.5,) * 3, ("a", "b"))

    def read() -> None:
        with suppress(RefusedError):
            decode_request(sample.file.read_bytes(), inputs, Limits())

    return Sample(sample.file, "PNG", read)
