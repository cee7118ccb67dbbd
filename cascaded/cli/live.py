"""`cascaded live`: a network at work, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.cli.serve import warn_if_open
from cascaded.errors import InputError, between
from cascaded.progress import print_line, wide_console
from cascaded.shell import help_default


def live(
    networks: Annotated[
        Positional[tuple[str, ...]], tyro.conf.arg(metavar="NETWORK..."), help_default("shipped ones")
    ] = (),
    *,
    host: str = "127.0.0.1",
    port: Annotated[int | None, DisallowNone, help_default("the first free one from 7860 on")] = None,
    max_megabytes: float = 10.0,
) -> None:
    """Show in the browser how a prediction changes: step by step, and under noise.

    The page has a picture or a camera, the probabilities after every step with the time that each step took, sliders
    for threshold and deadline, and the paper's noises, with the cascade beside one ordinary pass per frame. Nothing is
    loaded from other servers or sent to them. Needs the extra packages of: pip install 'cascaded[live]'

    Example: cascaded live

    Example: cascaded live runs/td0/0 exported cifar10-td0

    Args:
        networks: Networks to choose from: names from `cascaded models`, run folders, saved networks, OWNER/NAME on the
            Hugging Face hub, or folders that `cascaded export` wrote.
        host: Address to listen at; 0.0.0.0 lets other machines in.
        port: Port to listen at.
        max_megabytes: Size of a picture file; larger ones are refused.
    """
    if port is not None:
        between(1, 65535, **{"--port": port})
    between(0.001, 1000, **{"--max-megabytes": max_megabytes})
    try:
        from cascaded.runtime.live.page import launch, make_page
    except (ImportError, RuntimeError) as error:
        raise InputError(f"the page needs Gradio ({error}): pip install 'cascaded[live]'") from error
    import tempfile

    from cascaded.hub.locate import locate, shipped
    from cascaded.runtime.live.networks import Networks, is_exported

    for name in networks:
        if not is_exported(Path(name).expanduser()):
            locate(name)  # a wrong name is refused now, and not on the page
    with tempfile.TemporaryDirectory() as folder:
        first = "cifar10-td0"
        chosen = Networks(networks or [first, *(each for each in shipped() if each != first)], Path(folder))
        chosen.runner(chosen.names[0])
        page = make_page(chosen)
        address = launch(page, host, port, max_megabytes)
        warn_if_open(host)
        print_line(wide_console(), f"open {address} in a browser; Ctrl-C stops")
        _wait(page)


def _wait(page: Any) -> None:
    """Until a signal arrives."""
    import signal
    from contextlib import suppress
    from threading import Event

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        Event().wait()
    page.close(verbose=False)
    print_line(wide_console(), "stopped")
