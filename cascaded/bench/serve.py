"""A load test of `cascaded serve` over loopback: the server in a process of its own, clients in threads of this one."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from cascaded.bench.compare import describe_machine
from cascaded.bench.runtime import RuntimeSetting, export_random
from cascaded.errors import InputError

CLIENTS = (1, 8, 64)
LIMITS = ("threshold=1", "deadline_ms=20")
"""Requests that compute all steps, and requests with a deadline."""
BATCHES = (32, 1)
"""The server's default, and without batches."""
WARM_UP = 8
"""Requests that do not count."""
SECONDS = 30.0
"""A setting that takes longer gets fewer requests."""
TIMEOUT = 30.0
"""Seconds after which a request is lost."""
IMAGES = 16


class Reply(NamedTuple):
    """The answer to a request; a lost one has status 0."""

    status: int
    milliseconds: float
    step: int = 0
    late: bool = False


@dataclass(frozen=True)
class LoadSetting:
    """A server and its clients; each sends its next request when it has the answer to the last one.

    Attributes:
        clients: Number of clients.
        limit: Parameter of every request.
        max_batch: As for `cascaded serve`.
        width: Channels of the network's first stage.
        threads: As for `cascaded serve`.
    """

    clients: int
    limit: str
    max_batch: int
    width: int
    threads: int = 1


@dataclass(frozen=True)
class LoadResult:
    """What happened to the requests of a setting.

    Attributes:
        setting: The server and its clients.
        sent: Number of requests; each was answered, refused with 429, or lost.
        answered: Requests with a prediction.
        refused: Requests with status 429.
        lost: Requests with another status or without an answer.
        throughput: Predictions per second.
        p50: Median milliseconds from a request to its prediction, measured by the client.
        p99: Their 99th percentile.
        late: Fraction of the predictions that were made after their deadline.
        step: Mean step of the predictions.
        cpu: Milliseconds of processor time of the server per prediction, on which other load has little effect.
    """

    setting: LoadSetting
    sent: int
    answered: int
    refused: int
    lost: int
    throughput: float
    p50: float
    p99: float
    late: float
    step: float
    cpu: float


def measure_load(
    width: int, arch: str, image_size: int, threads: int, requests: int, on_progress: Callable[[str], None]
) -> list[LoadResult]:
    """Send requests to a server of a network with random weights, in every setting."""
    files, results = [_image(number, image_size) for number in range(IMAGES)], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "net"
        export_random(RuntimeSetting(width, 1, threads, arch, image_size), "shared", folder)
        for max_batch in BATCHES:
            with serving(folder, "--max-batch", str(max_batch), "--threads", str(threads)) as address:
                for limit in LIMITS:
                    send_all(address, limit, files, 1, WARM_UP)
                    for clients in CLIENTS:
                        setting = LoadSetting(clients, limit, max_batch, width, threads)
                        start, cpu = time.perf_counter(), cpu_seconds(address)
                        replies = send_all(address, limit, files, clients, requests)
                        seconds = time.perf_counter() - start
                        results.append(summarize(setting, replies, seconds, cpu_seconds(address) - cpu))
                        on_progress(f"{clients} clients {limit} batches of {max_batch}")
    return results


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    words = [sys.executable, "-m", "cascaded", "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, error = cast("IO[str]", process.stdout), cast("IO[str]", process.stderr)
        try:
            line = out.readline()
            if "http://" not in line:
                reason = error.read().strip().removeprefix("cascaded: ")
                raise InputError(reason or "the server did not start")
            yield line[line.index("http://") :].split(";")[0]
        finally:
            process.terminate()


def send_all(address: str, limit: str, files: Sequence[bytes], clients: int, requests: int) -> list[Reply]:
    """Send a number of requests; every client keeps its connection."""
    numbers, end = count(), time.perf_counter() + SECONDS  # count() can be shared by threads

    def client(_: int) -> list[Reply]:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT)
        replies = []
        while (number := next(numbers)) < requests and time.perf_counter() < end:
            replies.append(send(connection, f"/predict?{limit}", files[number % len(files)]))
        connection.close()
        return replies

    with ThreadPoolExecutor(clients) as pool:
        return [reply for replies in pool.map(client, range(clients)) for reply in replies]


def send(connection: http.client.HTTPConnection, path: str, file: bytes) -> Reply:
    """Send one request and wait for its answer."""
    start = time.perf_counter()
    try:
        connection.request("POST", path, file)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        connection.close()  # the next request opens a new one
        return Reply(0, 1000 * (time.perf_counter() - start))
    milliseconds = 1000 * (time.perf_counter() - start)
    if response.status != 200:
        return Reply(response.status, milliseconds)
    answer = json.loads(body)
    return Reply(200, milliseconds, answer["step"], answer["deadline_met"] is False)


def cpu_seconds(address: str) -> float:
    """The server's processor time, from its metrics."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("process_cpu_seconds_total ")))


def summarize(setting: LoadSetting, replies: Sequence[Reply], seconds: float, cpu: float) -> LoadResult:
    """Counts, throughput and percentiles of the requests of a setting."""
    answered = [reply for reply in replies if reply.status == 200]
    refused = sum(reply.status == 429 for reply in replies)
    times = [reply.milliseconds for reply in answered] or [float("nan")]
    p50, p99 = np.percentile(times, [50, 99])
    late, step = (
        float(np.mean([value(reply) for reply in answered] or [0])) for value in (lambda r: r.late, lambda r: r.step)
    )
    counts = (len(replies), len(answered), refused, len(replies) - len(answered) - refused)
    per_second, each = len(answered) / seconds, 1000 * cpu / max(1, len(answered))
    return LoadResult(setting, *counts, per_second, float(p50), float(p99), late, step, each)


def load_summary(results: Sequence[LoadResult]) -> dict[str, Any]:
    """All measurements and the machine, as JSON."""
    return {**describe_machine(), "serve": [asdict(each) for each in results]}


def _image(seed: int, size: int) -> bytes:
    """A PNG file of random colors."""
    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()
