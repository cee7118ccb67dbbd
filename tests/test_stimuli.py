"""What people were shown, as recordings."""

import pytest

from cascaded.data.noise import make_noise
from cascaded.data.trials import count_answers, trials
from cascaded.traces.config import RecordingConfig
from cascaded.traces.stimuli import CONDITIONS, READINGS, human_recordings, noise_of
from tests.refused import refused


def test_the_conditions_are_those_of_the_answers_in_the_package():
    assert count_answers(trials()).conditions == CONDITIONS


@pytest.mark.parametrize(
    ("reading", "level", "noise"),
    [
        ("noise", 0.0, "gray"),
        ("noise", 0.16, "gray:sd=0.16"),
        ("blur", 0.0, "gray"),
        ("blur", 3.0, "gray:sigma=3"),
        ("blur-190", 3.0, "gray:sigma=3,side=190"),
        ("color", 0.0, "gray"),
        ("color", 1.0, None),
        ("color-swapped", 0.0, None),
        ("color-swapped", 1.0, "gray"),
    ],
)
def test_every_reading_of_a_manipulation_has_its_noise(reading, level, noise):
    assert noise_of(reading, level) == noise
    assert noise is None or make_noise(noise).of_pixels


def test_everything_is_recorded_once_and_as_the_network_is_run():
    config = RecordingConfig(kernel="ews:0.9", max_images=7)
    first, *others = human_recordings(config)
    assert first == config
    assert {each.protocol for each in others} == {"still"}
    assert len({each.name for each in (first, *others)}) == 8
    assert {each.kernel for each in others} == {"ews:0.9"}
    own = human_recordings(config, [("noise", 0.3)])
    assert [each.noise for each in own] == ["gray:sd=0.3"]
    assert {each for readings in READINGS.values() for each in readings} >= set(READINGS)


def test_other_levels_of_color_and_other_noises_are_refused():
    refused("color has level 2: give 0 and 1", noise_of, "color", 2.0)
    refused("--human has its own noises, and still is given", human_recordings, RecordingConfig(protocol="still"))
