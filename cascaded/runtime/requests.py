"""What a request to the server contains, and a status and a sentence for each that is refused. No torch."""

from __future__ import annotations

import asyncio
import io
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from starlette.datastructures import UploadFile  # pyright: ignore[reportMissingImports]
from starlette.exceptions import HTTPException  # pyright: ignore[reportMissingImports]
from starlette.requests import ClientDisconnect, Request  # pyright: ignore[reportMissingImports]

from cascaded.data.decode import UnreadableError
from cascaded.errors import InputError, unknown
from cascaded.runtime.images import decode_image
from cascaded.runtime.result import check_limits
from cascaded.training.inputs import Inputs

PARAMETERS = ("deadline_ms", "threshold")
DRAINED = 8
"""Of a body that is too large, this many times the limit is read and dropped: the client then reads why."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats that are read. Others of Pillow start programs (EPS) or contain larger images than they say (ICO)."""
SEND = "send one image as the body, or as the field `image` of a multipart form"


@dataclass(frozen=True)
class Limits:
    """What a server accepts.

    Attributes:
        requests: Requests in the server at once; more are refused with 429.
        bytes: Size of a body.
        pixels: Width times height of an image.
        seconds: Time in which a body must arrive.
    """

    requests: int = 128
    bytes: int = 10_000_000
    pixels: int = 25_000_000
    seconds: float = 30.0


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: HTTP status.
        message: What is wrong, and the fix.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class PredictRequest:
    """A request that was read.

    Attributes:
        encoded: The image file.
        threshold: Confidence above which its prediction is final.
        deadline_ms: Milliseconds within which its prediction is final.
    """

    encoded: bytes
    threshold: float | None
    deadline_ms: float | None


async def read_request(request: Request, limits: Limits) -> PredictRequest:
    """Read the image and the parameters of a request."""
    if "expect" in request.headers and int(request.headers.get("content-length", 0)) > limits.bytes:
        raise _too_large(limits.bytes)  # a client that waits for permission to send does not send it
    limited = Request(request.scope, _limited(request.receive, limits.bytes))
    try:
        encoded, fields = await asyncio.wait_for(_read(limited), limits.seconds)
    except asyncio.TimeoutError as error:
        raise RefusedError(408, f"the body did not arrive within {limits.seconds:g} s: send it again") from error
    except ClientDisconnect as error:
        raise RefusedError(400, "the connection was closed before the end of the body: send it again") from error
    except HTTPException as error:
        raise RefusedError(400, f"the multipart body cannot be read ({error.detail}): {SEND}") from error
    try:
        threshold, deadline_ms = _parameters([*request.query_params.multi_items(), *fields])
    except InputError as error:
        raise RefusedError(400, str(error)) from error
    if not encoded:
        raise RefusedError(400, f"the request has no image: {SEND}")
    return PredictRequest(encoded, threshold, deadline_ms)


def _limited(receive: Callable[[], Awaitable[Any]], most: int) -> Callable[[], Awaitable[Any]]:
    """The messages of a request, as long as its body is within the limit."""
    size = 0

    async def limited() -> Any:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size <= most:
            return message
        while message.get("more_body") and size <= DRAINED * most:
            message = await receive()
            size += len(message.get("body", b""))
        raise _too_large(most)

    return limited


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"the body has more than {most:,} bytes, the limit of this server: send a smaller image")


async def _read(request: Request) -> tuple[bytes, list[tuple[str, str]]]:
    """The image file, and the text fields of a form."""
    if not request.headers.get("content-type", "").startswith("multipart/"):
        return await request.body(), []
    async with request.form(max_files=1, max_fields=len(PARAMETERS)) as form:
        fields = form.multi_items()
        files = [(name, value) for name, value in fields if isinstance(value, UploadFile)]
        if [name for name, _ in files] != ["image"]:
            raise RefusedError(400, f"the form has no file in the field `image`: {SEND}")
        return await files[0][1].read(), [(name, value) for name, value in fields if isinstance(value, str)]


def _parameters(given: list[tuple[str, str]]) -> tuple[float | None, float | None]:
    """Threshold and deadline."""
    values: dict[str, float] = {}
    for name, text in given:
        if name not in PARAMETERS:
            raise unknown("parameter", name, PARAMETERS)
        if values:
            both = " and ".join(dict.fromkeys([*values, name]))
            raise InputError(f"the request has several values of {both}: give one threshold or one deadline_ms")
        try:
            values[name] = float(text)
        except ValueError as error:
            raise InputError(f"{name} is {text[:40]!r}: give a number") from error
        if not math.isfinite(values[name]):
            raise InputError(f"{name} is {text!r}: give a finite number")
    limits = values.get("threshold"), values.get("deadline_ms")
    check_limits(*limits)
    return limits


def decode_request(encoded: bytes, inputs: Inputs, limits: Limits) -> np.ndarray:
    """The image of a request, resized as by `cascaded predict`: bytes, (channels, height, width)."""
    try:
        width, height = _size(encoded)
        if width * height > limits.pixels:
            size = f"{width} x {height} pixels, this server takes at most {limits.pixels:,}"
            raise RefusedError(413, f"the image has {size}: send a smaller one")
        pixels = decode_image(encoded, Path("the image")).resize(inputs.shape)
    except UnreadableError as error:
        reason = str(error).rstrip(".")
        raise RefusedError(
            415, f"the body cannot be read as an image ({reason}): send a complete PNG, JPEG or WebP file"
        ) from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _size(encoded: bytes) -> tuple[int, int]:
    """Width and height, before anything is decoded."""
    try:
        with Image.open(io.BytesIO(encoded), formats=FORMATS) as opened:
            return opened.size
    except Exception as error:  # Pillow's readers fail in many ways on damaged bytes
        raise UnreadableError("not an image") from error
