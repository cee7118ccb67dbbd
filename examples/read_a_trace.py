"""Record the logits of a trained network at every step, then analyze the recording without the network.

A network is trained, and its logits at every step are saved (the trace) and read back. Accuracy against mean steps, and
the latency of each image, are computed from the trace alone. On the command line: `cascaded train`, `cascaded record`,
`cascaded analyze`.

    python examples/read_a_trace.py [EPOCHS]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import cascaded
from cascaded import analysis
from cascaded.analysis.outputs import confidence
from cascaded.traces.record import record
from cascaded.training.config import ExecutionConfig
from cascaded.training.loop import train


def recorded(folder: Path, epochs: int) -> Path:
    """Train a network on digits and record its logits on the test images."""
    config = cascaded.RunConfig(lam=0.0, width=8, epochs=epochs, batch_size=64, lr_schedule="one-cycle")
    train(config, folder, ExecutionConfig(device="cpu"))
    run = cascaded.load_run(folder)
    (file,) = record(run, cascaded.RecordingConfig(split="test"))
    return file


def read(file: Path) -> None:
    """Everything below is NumPy: no network, no images."""
    trace = cascaded.load_trace(file)
    print(f"{trace.config.data} {trace.config.split}: {trace.steps} steps, {trace.items} images")

    correct = trace.logits.argmax(axis=-1) == trace.labels
    curve = analysis.threshold_curve(confidence(trace), correct, trace.cost("steps"))
    print("\nconfidence threshold   mean steps   accuracy")
    for point in np.linspace(0, len(curve.cost) - 1, 8).astype(int):
        print(f"{curve.threshold[point]:20.2f}   {curve.cost[point]:10.2f}  {curve.accuracy[point]:9.1%}")

    latency = analysis.selection_latency(trace, theta=0.5)
    print("\none class stays above a half from step ... on   images")
    for step in range(1, trace.steps + 1):
        print(f"{step:44}   {np.count_nonzero(latency.steps == step):6}")
    print(f"{'never':>44}   {np.isinf(latency.steps).sum():6}")

    order = analysis.by_latency(trace, latency)
    print(f"\nfastest: test images {trace.indices[order[:5]].tolist()}")
    print(f"slowest: test images {trace.indices[order[::-1][:5]].tolist()}")


def main(epochs: int = 5) -> None:
    """Train, record, read."""
    with tempfile.TemporaryDirectory() as folder:
        read(recorded(Path(folder) / "td0" / "0", epochs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
