"""Presentation protocols: their logits are those of the network on the whole frame sequence."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cascaded.cascade.named import make_kernel
from cascaded.data.noise import NOISES, make_noise
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.traces.config import RecordingConfig
from cascaded.traces.protocols import check_config, make_protocol
from cascaded.training.load import load_run
from tests.refused import refused
from tests.tiny_runs import tiny_run  # noqa: F401

KERNELS = pytest.mark.parametrize("kernel", ["osd", "ews:0.7", "taps:0,0.5,0.5"])


@pytest.fixture
def run(tiny_run):  # noqa: F811
    return load_run(tiny_run())


@pytest.fixture
def serial_run(tiny_run):  # noqa: F811
    return load_run(tiny_run("serial-ce"))


@pytest.fixture
def pixels():
    return load("digits", "test").images[:5]


def draws(items):
    return [torch.Generator().manual_seed(3000 + item) for item in range(items)]


def persistent(noise="occlusion", **options):
    return RecordingConfig(noise=noise, **options)


def transient(noise="occlusion", frames=(1, 2), steps=10, **options):
    return RecordingConfig(noise=noise, protocol="transient", noise_frames=tuple(frames), steps=steps, **options)


@torch.no_grad()
def presented(config, run, pixels):
    """The logits of every variant, with the noise of `draws`."""
    return list(make_protocol(run, config).present(pixels, draws(len(pixels))))


def noisy(run, name, pixels, frames):
    """The noisy frames of `draws`, image by image."""
    pairs = zip(run.normalized(pixels).split(1), draws(len(pixels)), strict=True)
    return torch.cat([make_noise(name).film(each, frames, drawn) for each, drawn in pairs], dim=1)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    return True


@pytest.mark.parametrize(("kernel", "schedule"), [("osd", "cascaded"), ("ews:0.7", "cascaded"), ("osd", "serial")])
@torch.no_grad()
def test_still_noise_is_one_noisy_image_at_every_step(run, pixels, kernel, schedule):
    config = RecordingConfig(noise="gray:sd=0.1", protocol="still", kernel=kernel, schedule=schedule)
    (logits,) = presented(config, run, pixels)
    pairs = zip((pixels.float() / 255).split(1), draws(len(pixels)), strict=True)
    frame = torch.cat([make_noise("gray:sd=0.1")(each, drawn) for each, drawn in pairs])
    steps = logits.shape[0]
    expected = run.net(run.normalized(frame), kernel=make_kernel(kernel), steps=steps, schedule=schedule)
    assert torch.equal(logits, expected)
    still, clean = make_protocol(run, config), make_protocol(run, RecordingConfig(kernel=kernel, schedule=schedule))
    assert (still.config.trials, still.steps, still.frames_in_memory) == (1, clean.steps, 1)
    assert still.cost(still.steps) == clean.cost(clean.steps)


@torch.no_grad()
def test_a_still_occlusion_is_that_of_the_first_frame(run, pixels):
    (logits,) = presented(RecordingConfig(noise="occlusion", protocol="still", steps=9), run, pixels)
    assert close(logits, run.net(noisy(run, "occlusion", pixels, 1)[0], steps=9))


@KERNELS
@pytest.mark.parametrize("noise", ["occlusion", "translation"])
@torch.no_grad()
def test_persistent_noise_is_a_sequence_of_noisy_frames(run, pixels, kernel, noise):
    (logits,) = presented(persistent(noise, kernel=kernel, steps=11), run, pixels)
    assert close(logits, run.net(noisy(run, noise, pixels, 11), kernel=make_kernel(kernel)))


@torch.no_grad()
@pytest.mark.parametrize("method", ["serial-ce", "cascaded-ce"])  # SerialCEx9 has the weights of CascadedCE
def test_the_serial_schedule_processes_every_frame_in_full(tiny_run, pixels, method):  # noqa: F811
    run = load_run(tiny_run(method))
    plain = run.net.serial().eval()
    (logits,) = presented(persistent("perlin", steps=4, schedule="serial"), run, pixels)
    assert close(logits, torch.stack([plain(frame) for frame in noisy(run, "perlin", pixels, 4)]))
    clean, frames = run.normalized(pixels), noisy(run, "perlin", pixels, 3)
    config = transient("perlin", (1, 3), 2, schedule="serial")
    for count, logits in zip((1, 3), presented(config, run, pixels), strict=True):
        sequence = [clean, clean, *frames[:count], clean, clean]
        assert close(logits, torch.stack([plain(frame) for frame in sequence]))


@given(
    st.sampled_from(sorted(NOISES)),
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.sampled_from(["osd", "ews:0.7", "taps:0,0.5,0.5"]),
)
@settings(max_examples=8)
@torch.no_grad()
def test_transient_noise_is_as_if_the_whole_sequence_were_run_in_one_go(tiny_run, noise, counts, steps, kernel):  # noqa: F811
    run, pixels = load_run(tiny_run()), load("digits", "test").images[:3]
    config = transient(noise, counts, steps, kernel=kernel)
    variants = make_protocol(run, config).variants
    clean, frames = run.normalized(pixels), noisy(run, noise, pixels, 6)
    for count, variant, logits in zip(counts, variants, presented(config, run, pixels), strict=True):
        assert (variant.onset, variant.noise_frames) == (steps + 1, (count,))
        sequence = torch.stack([*[clean] * steps, *frames[:count], *[clean] * steps])
        assert variant.total_steps == len(sequence)
        assert close(logits, run.net(sequence, kernel=make_kernel(config.kernel)))


@KERNELS
def test_updates_and_operations_are_those_of_the_network(run, serial_run, kernel):
    net, delay = run.net, make_kernel(kernel)
    updates, operations = make_protocol(run, RecordingConfig(kernel=kernel, steps=4)).cost(4)
    assert updates == net.cycles("cascaded", kernel=delay, steps=4)
    assert operations == net.operations(8, 8, "cascaded", kernel=delay, steps=4)
    updates, _ = make_protocol(run, RecordingConfig(schedule="serial")).cost(9)
    assert updates == net.cycles("serial", steps=9) == [0] + [1] * 8
    moving = net.cycles("cascaded", kernel=delay, steps=4, moving=True)
    assert make_protocol(run, persistent("focus", kernel=kernel, steps=4)).cost(4) == (moving, [])
    assert make_protocol(serial_run, persistent("focus", steps=4)).cost(4) == ([8] * 4, [])


def test_defaults_are_filled_in(run, serial_run):
    def resolved(config, network=run):
        return make_protocol(network, config).config

    assert resolved(RecordingConfig()) == RecordingConfig(steps=9, schedule="cascaded")
    # the output is never final; as many time constants as in the paper
    fine = {f"ews:{alpha}": resolved(RecordingConfig(kernel=f"ews:{alpha}")).steps for alpha in (0.9, 0.8, 0.95, 0.1)}
    assert fine == {"ews:0.9": 70, "ews:0.8": 33, "ews:0.95": 144, "ews:0.1": 9}
    assert resolved(RecordingConfig(kernel="ews:0")).steps == 9
    assert resolved(RecordingConfig(kernel="none")).steps == 9  # as many as there are blocks and a stem
    assert resolved(RecordingConfig(kernel="taps:0,0.5,0.5")).steps == 1 + 8 * 2 + 1
    assert resolved(RecordingConfig(), serial_run) == RecordingConfig(kernel="none", steps=9, schedule="serial")
    assert resolved(RecordingConfig(schedule="cascaded"), serial_run).kernel == "osd"
    noise = resolved(persistent("focus"))
    assert (noise.protocol, noise.trials, noise.steps, noise.noise_frames) == ("persistent", 5, 9, ())
    noise = resolved(RecordingConfig(noise="focus", protocol="transient"))
    assert (noise.trials, noise.steps, noise.noise_frames) == (5, 10, (1, 2, 3, 4, 5, 6))
    for config in (RecordingConfig(), RecordingConfig(kernel="ews:0.9"), persistent(), transient()):
        assert resolved(resolved(config)) == resolved(config)
        check_config(resolved(config))


def test_what_a_network_cannot_do_is_refused(serial_run, tiny_run):  # noqa: F811
    with pytest.raises(InputError, match="is run serially, without delays: leave it out, or add --schedule cascaded"):
        make_protocol(serial_run, RecordingConfig(kernel="ews:0.9"))
    with pytest.raises(InputError, match=r"--steps is 70, .* has 9 serial steps: give at most 9"):
        make_protocol(serial_run, RecordingConfig(steps=70))
    shallow = load_run(tiny_run("shallow-deep"))
    assert make_protocol(shallow, RecordingConfig()).config.schedule == "serial"
    with pytest.raises(InputError, match="shallow-deep heads read blocks that have settled"):
        make_protocol(shallow, RecordingConfig(schedule="cascaded"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (persistent("oclusion"), "did you mean 'occlusion'"),
        (persistent(trials=0), "--trials is 0: give at least 1"),
        (transient(frames=(0, 1)), r"--noise-frames is \[0, 1\]: give different numbers of at least 1"),
        (transient(frames=(2, 2)), r"--noise-frames is \[2, 2\]"),
        (persistent(noise_frames=(2,)), r"--noise-frames is \[2\], which is for transient noise: add --protocol"),
        (RecordingConfig(protocol="transient"), "--protocol is transient without --noise: add one, such as occlusion"),
        (RecordingConfig(max_images=0), "--max-images is 0: give at least 1"),
        (RecordingConfig(activations=0), "--activations is 0: give at least 1"),
        (persistent(embeddings=True), "--embeddings needs images without noise, --noise is occlusion: leave one out"),
        (persistent(activations=3), "--activations needs images without noise"),
    ],
)
def test_impossible_configs_are_refused(config, message):
    refused(message, check_config, config)
