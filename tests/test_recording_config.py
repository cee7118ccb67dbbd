"""The configuration of a recording: its name, its temporal resolution, and its way through JSON and command lines."""

import hashlib

import msgspec
import pytest
import tyro

from cascaded.traces.config import Provenance, RecordingConfig

STILL = RecordingConfig(data="cifar10", split="test", kernel="ews:0.9", steps=70, schedule="cascaded")
NOISY = RecordingConfig(
    data="cifar10",
    split="test",
    steps=10,
    schedule="cascaded",
    noise="occlusion",
    protocol="transient",
    trials=5,
    noise_frames=(3,),
)


@pytest.mark.parametrize("config", [RecordingConfig(), STILL, NOISY])
def test_a_config_comes_back_from_json(config):
    assert msgspec.json.decode(msgspec.json.encode(config), type=RecordingConfig) == config


def test_provenance_comes_back_from_json_and_unknown_fields_are_ignored():
    source = Provenance("runs/td0/0", "cascaded-td", (1.0, 0.0), 3, (2, 10), "ab", made_with={"torch": "2"})
    fields = {**msgspec.to_builtins(source), "added_later": 1}
    assert msgspec.json.decode(msgspec.json.encode(fields), type=Provenance) == source


@pytest.mark.parametrize(
    ("words", "config"),
    [
        ("", RecordingConfig()),
        ("--data cifar10 --split test --kernel ews:0.9 --steps 70 --schedule cascaded", STILL),
        ("--noise focus --protocol transient --noise-frames 1 3 --max-images 20 --embeddings --dtype float16", None),
    ],
)
def test_a_config_is_parsed_from_a_command_line(words, config):
    if config is None:
        config = RecordingConfig(
            noise="focus", protocol="transient", noise_frames=(1, 3), max_images=20, embeddings=True, dtype="float16"
        )
    assert tyro.cli(RecordingConfig, args=words.split()) == config


def test_time_is_fine_where_the_response_of_a_block_is_spread_over_steps():
    kernels = {"osd": "coarse", "none": "coarse", "ews:0.9": "fine", "taps:0,0.5,0.5": "fine"}
    assert {kernel: RecordingConfig(kernel=kernel).time for kernel in kernels} == kernels
    assert RecordingConfig(kernel="none", schedule="serial").time == "coarse"


def test_the_onset_of_noise_is_the_first_noisy_step():
    assert (STILL.onset, STILL.total_steps) == (None, 70)
    assert (NOISY.onset, NOISY.total_steps) == (11, 23)
    assert RecordingConfig(noise="focus", protocol="persistent", steps=9).onset == 1


def test_names_are_those_of_files():
    assert STILL.name == "cifar10-test-ews0.9-70"
    assert NOISY.name == "cifar10-test-osd-occlusion-transient-3"
    serial = RecordingConfig("svhn", "test", "none", 9, "serial", max_images=20)
    assert serial.name == "svhn-test-serial-9-20images"
    place = "my photos/a+b"
    digest = hashlib.sha256(place.encode()).hexdigest()[:6]
    assert RecordingConfig(place, "validation", "taps:0,0.5", 4).name == f"a_b-{digest}-validation-taps0_0.5-4"
    assert len({RecordingConfig(f"{place}/x").name for place in ("a", "b")}) == 2
