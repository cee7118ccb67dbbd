"""The networks that are shipped with the package."""

from __future__ import annotations

from pathlib import Path

from cascaded.hub.card import model_name
from cascaded.training.run_file import CONFIG, WEIGHTS
from cascaded.training.runs import read_run_file

NETWORKS = Path(__file__).parent / "networks"
"""One saved network per folder."""

COLUMNS = ("name", "model", "data", "file", "step 1", "step 3", "last step")


def names() -> list[str]:
    """Names of the shipped networks."""
    return sorted(config.parent.name for config in NETWORKS.glob(f"*/{CONFIG}"))


def path_of(folder: Path) -> str:
    """A folder as `cascaded.load` finds it, also if it has the name of a shipped network."""
    return f"./{folder}" if str(folder) in names() else str(folder)


def listed() -> list[tuple[str, ...]]:
    """One row per network, with the columns `COLUMNS`; the last three are test accuracies."""
    rows = []
    for name in names():
        file = read_run_file(NETWORKS / name)
        size = f"{(NETWORKS / name / WEIGHTS).stat().st_size / 1e6:.1f} MB"
        accuracy = (f"{file.accuracy[step]:.1%}" for step in (0, 2, -1))
        rows.append((name, model_name(file.config), file.config.data, size, *accuracy))
    return rows
