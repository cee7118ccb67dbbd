"""`cascaded serve`: predictions of an exported network over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import DisallowNone, Positional

from cascaded.errors import CascadedWarning, InputError, at_least, between
from cascaded.progress import counted, print_line, wide_console
from cascaded.shell import help_default

SWITCH = 0.0005
"""Seconds after which Python's threads take turns: the one that computes must not wait long for those that read."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    folder: Annotated[Positional[Path], tyro.conf.arg(metavar="FOLDER")],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    schedule: Annotated[Literal["cascaded", "serial"] | None, DisallowNone, help_default("the network's own")] = None,
    steps: Annotated[int | None, DisallowNone, help_default("until the output is final")] = None,
    threads: int = 1,
    max_batch: int = 32,
    max_requests: int = 128,
    max_megabytes: float = 10.0,
    max_megapixels: float = 25.0,
) -> None:
    """Answer requests for predictions over HTTP with an exported network, without torch.

    POST an image to /predict with a threshold or a deadline_ms; /stream sends one event per step. GET /metrics is in
    Prometheus format, GET /health describes the network. Requests of all clients are computed in batches, and a request
    that cannot meet its deadline gets the best prediction so far. Ctrl-C answers what was accepted, then stops. Needs
    the extra packages of: pip install 'cascaded[serve]'

    Example: cascaded serve exported

    Example: cascaded serve exported --port 9000 --threads 2 --max-requests 512

    Args:
        folder: A folder that `cascaded export` wrote.
        host: Address to listen at; 0.0.0.0 lets other machines in.
        port: Port to listen at; 0 for any free one.
        schedule: Update all blocks at every step (cascaded), or one block per step (serial).
        steps: Last step, at which every prediction is final.
        threads: Threads per operation.
        max_batch: Images that are computed at the same time; others wait.
        max_requests: Requests that are answered at the same time; more are refused with status 429.
        max_megabytes: Size of a request; larger ones are refused with status 413.
        max_megapixels: Pixels of an image, in millions; larger ones are refused with status 413.
    """
    at_least(1, **{"--threads": threads, "--max-batch": max_batch, "--max-requests": max_requests, "--steps": steps})
    between(0, 65535, **{"--port": port})
    between(0.001, 1000, **{"--max-megabytes": max_megabytes})
    between(0.001, 89, **{"--max-megapixels": max_megapixels})
    from cascaded.runtime.runner import Runner

    try:
        from cascaded.runtime.requests import Limits
        from cascaded.runtime.server import Service, bind, make_server
    except (ImportError, RuntimeError) as error:
        raise InputError(f"serving needs FastAPI and uvicorn ({error}): pip install 'cascaded[serve]'") from error

    runner = Runner(folder, schedule=schedule, threads=threads)
    limits = Limits(max_requests, round(1e6 * max_megabytes), round(1e6 * max_megapixels))
    service = Service(runner, limits, steps=steps, max_batch=max_batch)
    listening = bind(host, port)
    _announce(folder, service.batcher.last, host, listening.getsockname()[1])
    _run(make_server(service), listening)


def _announce(folder: Path, steps: int, host: str, port: int) -> None:
    """Print where the server is, and a request that works as it is pasted."""
    import shlex

    from cascaded import figures

    warn_if_open(host)
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    example = shlex.quote(f"@{Path(str(figures.__file__)).with_name('noises.png')}")
    console = wide_console()
    print_line(console, f"serving {folder} ({counted(steps, 'step')}) at {address}; Ctrl-C stops")
    print_line(console, f"try: curl --data-binary {example} '{address}/predict?threshold=0.9'")
    console.file.flush()


def warn_if_open(host: str) -> None:
    """Warn that others can use a server."""
    import warnings

    if host not in LOOPBACK:
        text = f"every machine that reaches {host} can use this server, which asks for no password"
        warnings.warn(text, CascadedWarning, stacklevel=2)


def _run(server: Any, listening: Any) -> None:
    """Serve until a signal arrives; what was accepted is answered first."""
    import signal
    import sys
    from contextlib import suppress

    sys.setswitchinterval(SWITCH)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both signals end in the same way
    with suppress(KeyboardInterrupt):  # which uvicorn raises after it has stopped
        server.run(sockets=[listening])
    print_line(wide_console(), "stopped")
