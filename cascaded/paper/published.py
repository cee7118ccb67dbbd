"""The claims of a reproduction as a CSV file, and the results that come with the repository."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cascaded.errors import InputError
from cascaded.figures.files import to_csv
from cascaded.files import write_whole
from cascaded.paper.claims import COLUMNS, NUMBERS, evaluate
from cascaded.paper.values import in_paper
from cascaded.results.compare import CONDITION, INTERVAL, SETTING
from cascaded.results.table import find_files, load
from cascaded.shell import program

CLAIMS_FILE = "claims.csv"
PUBLISHED = Path(__file__).parents[2] / "results"
"""Results in the repository, one folder per scale; an installed package does not have them."""


def find_published(scale: str) -> Path | None:
    """The folder with the repository's results at a scale, relative to here if it is below; None without a clone."""
    folder, here = PUBLISHED / scale, Path.cwd()
    if not (folder / CLAIMS_FILE).exists():
        return None
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def has_results(runs: Path) -> bool:
    """Whether any run in a folder was analyzed."""
    return runs.is_dir() and bool(find_files([runs]))


def claims_of(runs: Path, scale: str) -> pd.DataFrame:
    """The claims, evaluated on all runs of a reproduction.

    Args:
        runs: The folder of the runs.
        scale: For the commands that measure what was not measured.
    """
    if not has_results(runs):
        out = shlex.quote(runs.parent.as_posix())
        raise InputError(
            f"nothing is reproduced in {runs.parent}: {program()} reproduce table-lambda --scale {scale} --out {out} "
            "computes the first results"
        )
    claims = evaluate(load(runs))
    measured = claims["command"] == ""
    return claims.assign(command=claims["command"].where(measured, claims["command"] + f" --scale {scale}"))


def write_claims(claims: pd.DataFrame, file: Path) -> Path:
    """Store claims; runs are separated by spaces."""
    table = claims.assign(runs=claims["runs"].map(" ".join))
    write_whole(file, lambda part: table.to_csv(part, index=False, float_format="%.6g"))
    return file


def read_claims(file: Path) -> pd.DataFrame:
    """What `write_claims` wrote."""
    try:
        table = pd.read_csv(file, dtype="string")
        if list(table.columns) != COLUMNS:
            raise ValueError(f"its columns are {', '.join(map(str, table.columns))}")
        numbers = {name: pd.to_numeric(table[name]).astype("float64") for name in NUMBERS}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} is not a table of claims ({error}): {program()} reproduce claims writes it"
        ) from error
    text = {name: table[name].astype(object).fillna("") for name in COLUMNS if name not in NUMBERS}
    return table.assign(**numbers, **text)


def write_estimates(table: pd.DataFrame, file: Path) -> Path:
    """Store the table of an experiment; columns without values are left out, runs are separated by spaces."""
    content = to_csv(table.assign(runs=table["runs"].map(" ".join)))
    write_whole(file, lambda part: part.write_bytes(content))
    return file


def read_estimates(file: Path) -> pd.DataFrame:
    """What `write_estimates` wrote, with all columns."""
    return pd.read_csv(file).reindex(columns=[*SETTING, *CONDITION, "value", *INTERVAL, "paper"])


def claim_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of the claims as text: what was measured on which networks, effect, interval, the paper's effect."""
    digits = 2 if row["unit"] else 3

    def number(value: float) -> str:
        return f"{value:+.{digits}f}" if not 0 < abs(value) < 0.0005 else f"{value:+.0e}"

    claimed = f"claimed: {row['claimed']} {row['unit']}".strip() if row["claimed"] else ""
    where = [row["label"], claimed, row["noise"], f"{row['data']} {row['split']}".strip(), row["time"]]
    other = "" if row["paper_data"] == in_paper(row["data"]) else f" ({row['paper_data']})"
    readings = [number(row[name]) for name in ("paper", "paper_alternative") if pd.notna(row[name])]
    return {
        "claim": row["claim"],
        "measured": ", ".join(each for each in where if each),
        "networks": " - ".join(each for each in (row["a"], row["b"]) if each),
        "effect": f"{number(row['effect'])} {row['unit']}".strip() if pd.notna(row["effect"]) else "",
        "95 % interval": f"{number(row['low'])} to {number(row['high'])}" if pd.notna(row["low"]) else "",
        "over": row["interval_over"] if row["interval_over"] != "none" else "",
        "paper": " or ".join(readings) + other if readings else "",
        "verdict": row["verdict"],
    }
