"""Write docs/results.md from results/laptop: the claims and the figures; the tables as CSV beside it.

python scripts/results.py
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from cascaded import figures
from cascaded.errors import InputError
from cascaded.paper.experiments import EXPERIMENTS
from cascaded.paper.published import CLAIMS_FILE, claim_cells, read_claims, read_estimates
from cascaded.paper.scales import SCALES
from cascaded.paper.statements import STATEMENTS
from cascaded.results.table import load

ROOT = Path(__file__).parent.parent
SCALE = "laptop"
SOURCE, PAGE, FILES = ROOT / "results" / SCALE, ROOT / "docs" / "results.md", "results"
COLUMNS = ("measured", "networks", "effect", "95 % interval", "paper", "verdict")


def main() -> None:
    """Write the page, its figures and its tables."""
    folder = PAGE.parent / FILES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in SOURCE.glob("*.csv"):
        shutil.copy(file, folder)
    PAGE.write_text(results_page(read_claims(SOURCE / CLAIMS_FILE), draw_figures(folder)))
    print(f"wrote {PAGE} and {len(list(folder.iterdir()))} files in {folder}")


def draw_figures(folder: Path) -> dict[str, str]:
    """Draw what the published results allow; returns captions by file name."""
    df, captions, drawn = load(SOURCE), {}, set()
    for experiment in EXPERIMENTS.values():
        table = SOURCE / f"{experiment.name}.csv"
        drawings = [(draw, df) for draw in experiment.figures if draw not in drawn]  # of all networks at once
        if experiment.beside_paper and table.exists():
            drawings = [(figures.estimates_beside_paper, read_estimates(table))]
        for draw, rows in drawings:
            drawn.add(draw)
            if fig := _drawn(draw, rows):
                name = f"{experiment.name}.svg"
                figures.save(fig, folder / experiment.name, kinds=("svg",))
                captions.setdefault(name, f"{experiment.title}.")
    return captions


def _drawn(draw, rows: pd.DataFrame):
    """A figure, or None where the results do not have what it shows."""
    try:
        return draw(rows)
    except InputError:
        return None


def results_page(claims: pd.DataFrame, captions: Mapping[str, str]) -> str:
    """The page, in Markdown."""
    notes = SOURCE / "notes.md"
    parts = [
        "# Results",
        f"*Written by `scripts/results.py` from `results/{SCALE}`.* `cascaded reproduce all --scale {SCALE}` computes "
        f"these results ({SCALES[SCALE].about}); `cascaded reproduce claims` prints the claims.",
        *([notes.read_text().strip()] if notes.exists() else []),
        "## Claims",
        "A positive effect agrees with the paper. Supported: the 95 % interval lies above 0; contradicted: below 0; "
        "inconclusive: it contains 0; not measured: there is no effect or no interval. Where another range is claimed, "
        "such as -1 to +1 points for no difference, supported means that the whole interval lies in that range. "
        f"All columns: [{CLAIMS_FILE}]({FILES}/{CLAIMS_FILE}).",
    ]
    for claim, group in groupby(claims.to_dict("records"), key=lambda row: row["claim"]):
        rows = [
            {**claim_cells(row), **({"measured": f"`{row['command']}`"} if row["command"] else {})} for row in group
        ]
        parts += [f"**{claim}. {STATEMENTS[claim]}**", markdown([[row[name] for name in COLUMNS] for row in rows])]
    parts.append("## Figures")
    for name, caption in captions.items():
        table = f"{Path(name).stem}.csv"
        parts.append(f"![{caption}]({FILES}/{name})\n\n{caption} [Table]({FILES}/{table})")
    return "\n\n".join(parts) + "\n"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return "\n".join("|" + "|".join(cell.replace("|", "\\|") for cell in line) + "|" for line in lines)


if __name__ == "__main__":
    main()
