"""The example scripts run and show what they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments):
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_online_learning_takes_the_same_gradient_in_flat_memory():
    rows = [line.split() for line in run("online_learning.py", "6", "24").splitlines()[1:]]
    assert [row[-2] for row in rows] == [row[-1] for row in rows]
    (short, long) = ([float(row[k]) for k in (1, 3)] for row in rows)
    assert long[0] > 2 * short[0]  # four times the steps
    assert long[1] < 2 * short[1]
