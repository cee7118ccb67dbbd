"""An exported network over HTTP: predictions, one event per step, metrics. No torch."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn  # pyright: ignore[reportMissingImports]
from fastapi import FastAPI, Request  # pyright: ignore[reportMissingImports]
from fastapi.responses import (  # pyright: ignore[reportMissingImports]
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.exceptions import HTTPException  # pyright: ignore[reportMissingImports]

from cascaded.errors import InputError
from cascaded.runtime.batcher import Batcher, Item, StepOutput
from cascaded.runtime.metrics import Metrics
from cascaded.runtime.requests import Limits, RefusedError, decode_request, read_request
from cascaded.runtime.runner import Runner

ENDPOINTS = {"/predict": "POST", "/stream": "POST", "/metrics": "GET", "/health": "GET"}
BACKLOG = 1024
"""Connections that wait to be accepted."""
GRACE = 30
"""Seconds in which requests are answered after the server was stopped."""


class Service:
    """The endpoints of one network.

    Args:
        runner: The exported network.
        limits: What is accepted.
        steps: Last step, as in `Runner.predict`.
        max_batch: Items that are computed at the same time.
    """

    def __init__(self, runner: Runner, limits: Limits | None = None, *, steps: int | None = None, max_batch: int = 32):
        channels = runner.config.inputs.shape[0]
        if channels not in (1, 3):
            raise InputError(f"the network takes images of {channels} channels, a server reads 1 (gray) or 3 (RGB)")
        runner.check_classifies()
        self.runner, self.limits, self.counts = runner, limits or Limits(), Metrics()
        self.batcher = Batcher(runner, steps=steps, max_batch=max_batch, on_run=self._ran)

    def app(self) -> FastAPI:
        """The application; it starts and stops the thread that computes."""

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            self.batcher.start()
            yield
            await asyncio.to_thread(self.batcher.close)

        # no page of documentation: it would load scripts from other servers
        app = FastAPI(title="cascaded serve", lifespan=lifespan, docs_url=None, redoc_url=None)
        for path, method in ENDPOINTS.items():
            app.add_api_route(path, getattr(self, path[1:]), methods=[method], response_model=None)
        app.add_exception_handler(RefusedError, _on_refused)
        app.add_exception_handler(HTTPException, _on_http)
        app.add_exception_handler(InputError, _on_failure)
        app.add_middleware(Admission, service=self)
        return app

    # --- endpoints

    async def predict(self, request: Request) -> Response:
        """The prediction for an image, at the first step above `threshold` or within `deadline_ms`."""
        item, deadline_ms = await self._item(request)
        return JSONResponse(self.described(await asyncio.wrap_future(self._submit(item)), deadline_ms))

    async def stream(self, request: Request) -> Response:
        """The prediction after every step, as server-sent events; the last one is that of `/predict`."""
        item, deadline_ms = await self._item(request)
        loop, outputs = asyncio.get_running_loop(), asyncio.Queue[StepOutput | BaseException]()

        def put(output: StepOutput | BaseException) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(outputs.put_nowait, output)

        item.on_step = put
        self._submit(item).add_done_callback(lambda future: put(error) if (error := future.exception()) else None)

        async def events() -> AsyncIterator[str]:
            try:
                output = None
                while output is None or (isinstance(output, StepOutput) and output.reason is None):
                    output = await outputs.get()
                    yield self._event(output, deadline_ms)
            finally:
                item.abandoned = True  # also if the client has left

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def metrics(self) -> Response:
        """Counters in the text format of Prometheus."""
        return PlainTextResponse(self.counts.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self) -> dict[str, Any]:
        """That the server answers, and what it runs."""
        inputs, runner = self.runner.config.inputs, self.runner
        about = {"schedule": runner.schedule, "kernel": runner.config.kernel, "steps": self.batcher.last}
        return {"status": "ok", **about, "input": list(inputs.shape), "classes": list(inputs.classes)}

    # --- items

    async def _item(self, request: Request) -> tuple[Item, float | None]:
        """The image of a request, decoded, and its deadline in milliseconds."""
        read = await read_request(request, self.limits)
        start = self.batcher.clock()
        deadline = math.inf if read.deadline_ms is None else start + read.deadline_ms / 1000
        image = await asyncio.to_thread(decode_request, read.encoded, self.runner.config.inputs, self.limits)
        return Item(image, start, read.threshold, deadline), read.deadline_ms

    def _submit(self, item: Item) -> Any:
        try:
            return self.batcher.submit(item)
        except InputError as error:
            raise RefusedError(503, str(error)) from error

    def described(self, output: StepOutput, deadline_ms: float | None) -> dict[str, Any]:
        """An output as JSON; a final one is counted."""
        milliseconds = 1000 * output.seconds
        in_time = None if deadline_ms is None else milliseconds <= deadline_ms
        if output.reason is not None:
            self.counts.add("cascaded_predictions_total", step=output.step)
            self.counts.add("cascaded_deadline_misses_total", by=int(in_time is False))
            self.counts.observe("cascaded_prediction_seconds", output.seconds)
        return {
            "prediction": self.runner.classes[output.prediction],
            "confidence": round(output.confidence, 6) if math.isfinite(output.confidence) else None,
            "step": output.step,
            "steps": self.batcher.last,
            "milliseconds": round(milliseconds, 3),
            "stopped_by": output.reason,
            "deadline_met": in_time,
        }

    def _event(self, output: StepOutput | BaseException, deadline_ms: float | None) -> str:
        if isinstance(output, BaseException):
            return f"event: error\ndata: {json.dumps({'error': str(output)})}\n\n"
        return f"event: step\ndata: {json.dumps(self.described(output, deadline_ms))}\n\n"

    def _ran(self, items: int, seconds: float) -> None:
        self.counts.observe("cascaded_batch_size", items)
        self.counts.observe("cascaded_run_seconds", seconds)


class Admission:
    """Counts requests, and refuses those above the limit with 429 before anything is decoded."""

    def __init__(self, app: Any, service: Service):
        self.app, self.service, self.inside = app, service, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, self._counted(scope, send))
            return
        limit, counts = self.service.limits.requests, self.service.counts
        if self.inside >= limit:
            sentence = f"{limit} requests are being answered, the limit of this server: try again later"
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(_drain(receive, self.service.limits.bytes), self.service.limits.seconds)
            await _error(429, sentence, {"Retry-After": "1"})(scope, receive, self._counted(scope, send))
            return
        self.inside += 1
        counts.add("cascaded_requests_in_flight")
        try:
            await self.app(scope, receive, self._counted(scope, send))
        finally:
            self.inside -= 1
            counts.add("cascaded_requests_in_flight", by=-1)

    def _counted(self, scope: Any, send: Any) -> Any:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                endpoint = scope["path"] if scope["path"] in ENDPOINTS else "other"
                self.service.counts.add("cascaded_requests_total", endpoint=endpoint, status=message["status"])
            await send(message)

        return counted


async def _drain(receive: Any, most: int) -> None:
    """Read and drop a body up to a size: a client that is still sending would not read the answer."""
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


async def _on_refused(_: Request, error: Any) -> Response:
    return _error(error.status, str(error))


async def _on_failure(_: Request, error: Any) -> Response:
    """A file of the network that cannot be computed."""
    return _error(500, str(error))


async def _on_http(request: Request, error: Any) -> Response:
    """An endpoint or a method that does not exist."""
    known = ", ".join(f"{method} {path}" for path, method in ENDPOINTS.items())
    return _error(error.status_code, f"there is no {request.method} {request.url.path}: use {known}", error.headers)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one."""
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # with the protocol, unlike socket.create_server: asyncio turns Nagle's algorithm off only if it is TCP, and an
        # answer in two parts would wait 40 ms for the client otherwise
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(os.name == "posix"))
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        raise InputError(
            f"the server cannot listen at {host}, port {port} ({error}): give another --host or --port"
        ) from error
    return listening


def make_server(service: Service) -> uvicorn.Server:
    """A server that answers the requests it has accepted before it stops."""
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # a damaged request is not a problem of the server
    config = uvicorn.Config(
        service.app(),
        http="h11",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)
