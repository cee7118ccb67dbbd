"""Record what a trained network says at every step, then ask the recording, not the network.

A run is trained, its trace is recorded and read back. From the trace alone come accuracy against mean steps, and how
long each image took. The same on the command line: `cascaded train`, `cascaded record`, `cascaded analyse`.

    python examples/read_a_trace.py [EPOCHS]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import cascaded
from cascaded import analysis
from cascaded.traces.record import record
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train


def recorded(folder: Path, epochs: int) -> Path:
    """Train a run on digits, and record it on the test images until it has settled."""
    config = cascaded.RunConfig(lam=0.0, width=8, epochs=epochs, batch_size=64, lr_schedule="one-cycle")
    train(config, folder, ExecutionConfig(device="cpu"))
    run = cascaded.load_run(folder)
    (file,) = record(run, cascaded.RecordingConfig(split="test"))
    return file


def read(file: Path) -> None:
    """Everything below is NumPy: no network, no images."""
    trace = cascaded.load_trace(file)
    print(f"{trace.config.data} {trace.config.split}: {trace.steps} steps, {trace.items} images")

    found = analysis.speed_accuracy(trace)
    print("\nstop when surer than   mean steps   right")
    curve = found.curves["threshold"].thinned(8)
    for threshold, cost, accuracy in zip(curve.threshold, curve.cost, curve.accuracy, strict=True):
        print(f"{threshold:20.2f}   {cost:10.2f}  {accuracy:6.1%}")

    latency = analysis.selection_latency(trace, theta=0.5)
    print("\none class stays above a half from step ... on   images")
    for step in range(1, trace.steps + 1):
        print(f"{step:44}   {np.count_nonzero(latency.steps == step):6}")
    print(f"{'never':>44}   {np.isinf(latency.steps).sum():6}")

    ends = analysis.gallery(trace, latency, each=5, per_class=False).overall
    print(f"\nfastest: test images {trace.indices[ends.fastest].tolist()}")
    print(f"slowest: test images {trace.indices[ends.slowest].tolist()}")


def main(epochs: int = 5) -> None:
    """Train, record, read."""
    with tempfile.TemporaryDirectory() as folder:
        read(recorded(Path(folder) / "td0" / "0", epochs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
