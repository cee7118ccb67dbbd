"""A server of an exported network in this process, and requests to it."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

TIMEOUT = 60
"""Seconds after which a test fails: it stops hangs."""


@dataclass
class Answer:
    """What a server answered."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Server-sent events: their names and their data."""
        parts = [part.split("\n") for part in self.body.decode().removesuffix("\n\n").split("\n\n")]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def send(address: str, path: str, body: Any = None, method: str = "", **headers: str) -> Answer:
    """One request; a POST if it has a body: bytes, or an iterator of parts, which is sent without its length."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT)
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), dict(response.getheaders()))
    finally:
        connection.close()


def form(image: bytes, name: str = "image", **fields: str) -> tuple[bytes, str]:
    """A multipart form and its content type."""
    start = b'--limit\r\nContent-Disposition: form-data; name="%s"'
    parts = [start % name.encode() + b'; filename="a.png"\r\n\r\n' + image + b"\r\n"]
    parts += [start % key.encode() + b"\r\n\r\n" + value.encode() + b"\r\n" for key, value in fields.items()]
    return b"".join(parts) + b"--limit--\r\n", "multipart/form-data; boundary=limit"


def png(pixels: np.ndarray) -> bytes:
    """An image file, (channels, height, width)."""
    file = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(file, "png")
    return file.getvalue()


@contextmanager
def running(service: Any) -> Iterator[str]:
    """The address of a server, which is stopped afterwards."""
    from cascaded.runtime.server import bind, make_server

    server, listening = make_server(service), bind("127.0.0.1", 0)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join(TIMEOUT)
        listening.close()
        assert not thread.is_alive()


class Gate:
    """Holds a runner before a step until the test opens it: what happens meanwhile does not depend on speed.

    Attributes:
        reached: Whether a step has begun.
    """

    def __init__(self, runner: Any, monkeypatch: Any):
        self.reached, self.opened, step = Event(), Event(), runner.step

        def held(*args: Any, **options: Any) -> Any:
            self.reached.set()
            assert self.opened.wait(TIMEOUT)
            return step(*args, **options)

        monkeypatch.setattr(runner, "step", held)
