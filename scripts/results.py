"""Write docs/results.md from results/laptop, and put the figures that it shows beside it.

python scripts/results.py
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cascaded.paper.outcome import FIGURES
from cascaded.paper.page import results_page

ROOT = Path(__file__).parent.parent
KEPT, PAGE, SHOWN = ROOT / "results" / "laptop", ROOT / "docs" / "results.md", "results"


def main() -> None:
    """Write the page, and copy what it shows."""
    page = results_page(KEPT, SHOWN)
    PAGE.write_text(page)
    folder = PAGE.parent / SHOWN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in re.findall(rf"\]\({SHOWN}/([^)]+)\)", page):
        shutil.copy(KEPT / FIGURES / name, folder / name)
    print(f"wrote {PAGE} and {len(list(folder.iterdir()))} figures in {folder}")


if __name__ == "__main__":
    main()
