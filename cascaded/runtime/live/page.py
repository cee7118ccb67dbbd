"""The page itself, with Gradio: a picture step by step, a picture under noise, and a camera."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from itertools import islice
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before it is imported
import gradio as gr  # pyright: ignore[reportMissingImports]
import torch
from gradio.themes import Default  # pyright: ignore[reportMissingImports]
from PIL import Image

from cascaded.data.embedded import sample
from cascaded.data.noise import NOISES
from cascaded.errors import InputError, first_line
from cascaded.runtime.live.charts import CSS, STRIP, steps_chart, stream_chart
from cascaded.runtime.live.networks import (
    NO_NOISE,
    FrameRow,
    Networks,
    find_stop,
    last_step,
    read_pixels,
    run_frame,
    run_steps,
)
from cascaded.runtime.runner import RunnerState

PAUSE = 0.3
"""Seconds between two steps on the page; the network is faster than anyone can look."""
FRAME = 0.08
"""Seconds between two frames of a picture under noise."""
FIRST = 224
"""Row of the embedded sample that the page starts with: an airplane, whose prediction changes twice."""
EMPTY = '<div class="cl"><p>Choose a picture.</p></div>'
FONTS = ("ui-sans-serif", "system-ui", "sans-serif")
CameraState = tuple[str, str, RunnerState | None, tuple[FrameRow, ...], int]


def make_page(networks: Networks) -> gr.Blocks:
    """The page; nothing is loaded from other servers."""
    with gr.Blocks(analytics_enabled=False, title="cascaded live", delete_cache=(600, 3600)) as page:
        gr.Markdown(
            "# cascaded live\nA prediction after every step, and better ones the longer the network runs. Steps are "
            "shown more slowly than they are computed; the times are those of the network."
        )
        with gr.Row():
            with gr.Column(scale=2, min_width=280):
                network = gr.Dropdown([*networks.names], value=networks.names[0], label="network", elem_id="network")
                picture = _picture(networks)
            with gr.Column(scale=5, min_width=320), gr.Tabs():
                with gr.Tab("Step by step", elem_id="steps-tab"):
                    _steps_tab(networks, network, picture, page)
                with gr.Tab("Under noise", elem_id="noise-tab"):
                    _noise_tab(networks, network, picture)
                with gr.Tab("Camera", elem_id="camera-tab"):
                    _camera_tab(networks, network)
    return page


def launch(page: gr.Blocks, host: str, port: int | None, max_megabytes: float) -> str:
    """Serve the page in a thread of its own, until `page.close()`; returns its address.

    Args:
        page: From `make_page`.
        host: Address to listen at.
        port: Port to listen at; None for the first free one from 7860 on.
        max_megabytes: Larger files are refused.
    """
    page.queue(max_size=32, default_concurrency_limit=4, api_open=False)
    try:
        _, address, _ = page.launch(**_options(host, port, max_megabytes))
    except OSError as error:
        raise InputError(
            f"the page cannot be served at {host}, port {port} ({first_line(error)}): give another --host or --port"
        ) from error
    return address


def _options(host: str, port: int | None, max_megabytes: float) -> dict[str, Any]:
    return dict(  # noqa: C408, as in the call
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        max_file_size=round(1e6 * max_megabytes),
        theme=_theme(),
        css=CSS,
        footer_links=[],
        ssr_mode=False,
        enable_monitoring=False,
        run_history=False,
        pwa=False,
        prevent_thread_lock=True,
    )


def _theme() -> gr.Theme:
    """Fonts of the system, and text that can be read."""
    theme = Default(primary_hue="blue", font=FONTS, font_mono=("ui-monospace", "monospace"))
    return theme.set(block_info_text_color="*neutral_600", body_text_color_subdued="*neutral_600")


def _picture(networks: Networks) -> gr.Image:
    """The picture, at first one of the embedded sample."""
    first = networks.folder / "first.png"
    _, encoded, _ = next(islice(sample("test"), FIRST, None))
    Image.open(io.BytesIO(bytes(encoded))).resize((256, 256), Image.Resampling.NEAREST).save(first)
    sources: list[Any] = ["upload", "webcam", "clipboard"]
    return gr.Image(str(first), sources=sources, type="filepath", label="picture", height=300, elem_id="picture")


def _steps_tab(networks: Networks, network: gr.Dropdown, picture: gr.Image, page: gr.Blocks) -> None:
    with gr.Row():
        threshold = gr.Slider(0, 1, 0.9, step=0.01, label="threshold", info="stop above this confidence; 1: never")
        deadline = gr.Slider(0, 20, 0, step=0.1, label="deadline in ms", info="stop in time; 0: no deadline")
    again = gr.Button("Run again", elem_id="run")
    chart = gr.HTML(EMPTY, elem_id="steps-chart")

    @sentences
    def run(name: str, file: str | None, threshold: float, deadline: float) -> Iterator[str]:
        if file is None:
            yield EMPTY
            return
        runner = networks.runner(name)
        pixels, last, limits = read_pixels(file, runner), last_step(runner), (threshold, deadline or None)
        rows = [*run_steps(runner, pixels)]  # all at once: the page does not slow the network down
        for shown in range(1, len(rows) + 1):
            stop = find_stop(rows[:shown], last, *limits)
            yield steps_chart(rows[:shown], last, runner.classes, pixels, stop, limits)
            time.sleep(PAUSE if last <= STRIP // 3 else PAUSE / 10)

    given = {"inputs": [network, picture, threshold, deadline], "outputs": chart, "show_progress": "hidden"}
    events = [picture.change, network.change, threshold.release, deadline.release, again.click, page.load]
    gr.on(events, run, **given, trigger_mode="always_last", api_visibility="private")


def _noise_tab(networks: Networks, network: gr.Dropdown, picture: gr.Image) -> None:
    with gr.Row():
        noise = gr.Dropdown([*NOISES], value="occlusion", label="noise", info="drawn anew for every frame")
        start = gr.Button("Start", variant="primary", elem_id="start", scale=0)
    chart = gr.HTML(EMPTY, elem_id="noise-chart")

    @sentences
    def run(name: str, file: str | None, noise: str) -> Iterator[str]:
        if file is None:
            yield EMPTY
            return
        runner, generator = networks.stream(name), torch.Generator().manual_seed(0)
        pixels = read_pixels(file, runner)
        reference = int(run_frame(runner, pixels, NO_NOISE, generator, None)[0].serial.argmax())
        frames: list[FrameRow] = []
        state = None
        for number in range(1, STRIP + 1):
            frame, state = run_frame(runner, pixels, noise, generator, state)
            frames.append(frame)
            yield stream_chart(frames, runner.classes, number, reference)
            time.sleep(FRAME)

    given = {"inputs": [network, picture, noise], "outputs": chart, "show_progress": "hidden"}
    gr.on([start.click, noise.change], run, **given, trigger_mode="always_last", api_visibility="private")


def _camera_tab(networks: Networks, network: gr.Dropdown) -> None:
    noise = gr.Dropdown([NO_NOISE, *NOISES], value=NO_NOISE, label="noise", elem_id="camera-noise")
    camera = gr.Image(sources=["webcam"], streaming=True, type="filepath", label="camera", elem_id="camera", height=240)
    chart, kept = gr.HTML("", elem_id="camera-chart"), gr.State(None)
    generator = torch.Generator().manual_seed(0)

    @sentences
    def run(name: str, file: str | None, noise: str, kept: CameraState | None) -> Any:
        if file is None:
            return gr.skip(), kept
        runner = networks.stream(name)
        if kept is None or kept[:2] != (name, noise):
            kept = (name, noise, None, (), 0)
        frame, state = run_frame(runner, read_pixels(file, runner), noise, generator, kept[2])
        frames, number = (*kept[3], frame)[-STRIP:], kept[4] + 1
        return stream_chart(frames, runner.classes, number), (name, noise, state, frames, number)

    given = {"inputs": [network, camera, noise, kept], "outputs": [chart, kept], "show_progress": "hidden"}
    camera.stream(run, **given, stream_every=0.2, time_limit=120, api_visibility="private")


def sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """Show an `InputError` as a message on the page; Gradio needs to see whether a function is a generator."""
    if not isgeneratorfunction(function):

        @wraps(function)
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except InputError as error:
                raise gr.Error(str(error), print_exception=False) from error

        return call

    @wraps(function)
    def generate(*args: Any) -> Iterator[Any]:
        try:
            yield from function(*args)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error

    return generate
