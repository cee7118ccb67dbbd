"""Run folders without networks: a configuration and results, for everything that only reads them."""

from pathlib import Path

import pandas as pd

from cascaded.files import write_json
from cascaded.results.table import write
from cascaded.training.config import RunConfig
from cascaded.training.runs import Inputs, RunFile

CLASSES = tuple("0123456789")


def made_run(folder: Path, **config) -> Path:
    """A run that has not been recorded: a folder with `config.json`."""
    inputs = Inputs((1, 8, 8), (0.5,), (0.25,), CLASSES)
    content = RunFile(RunConfig(**{"width": 8, "epochs": 2, **config}), inputs, made_with={"torch": "2.9.0"})
    folder.mkdir(parents=True)
    write_json(folder / "config.json", content.to_json())
    return folder


def made_runs(folder: Path, table: pd.DataFrame) -> Path:
    """A run for every run of a results table, with its results."""
    for name, rows in table.groupby("run"):
        first = rows.iloc[0]
        lam = None if pd.isna(first["lam"]) else float(first["lam"])
        run = made_run(folder / str(name), data=first["data"], method=first["method"], lam=lam, seed=int(first["seed"]))
        for analysis, own in rows.groupby("analysis"):
            write(run, str(analysis), own, {})
    return folder
