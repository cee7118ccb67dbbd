"""Make a run one of the networks that come with the package, and list them all in docs/pretrained.md.

Run: .venv/bin/python scripts/ship.py runs/td0/0 cifar10-td0 (the test images of its data have to be at hand; without
arguments only the page is written)
"""

from __future__ import annotations

import sys
from pathlib import Path

from cascaded.files import write_whole
from cascaded.hub.shipped import HEADINGS, listed, ship

PAGE = Path(__file__).parent.parent / "docs" / "pretrained.md"
BEGIN, END = "<!-- networks -->\n\n", "\n<!-- end of networks -->"


def page() -> str:
    """docs/pretrained.md with a table of what is shipped now."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    marks = ["---" if place < 3 else "---:" for place in range(len(HEADINGS))]
    rows = [HEADINGS, tuple(marks), *((f"`{name}`", *others) for name, *others in listed())]
    return before + BEGIN + "".join(f"| {' | '.join(row)} |\n" for row in rows) + END + after


def main() -> None:
    """Ship a run, and bring the page up to date."""
    if len(sys.argv) > 1:
        run, name = sys.argv[1:]
        net = ship(Path(run), name)
        print(f"shipped {run} as {name}, right on {net.accuracy[-1]:.2%} of the test images")
    write_whole(PAGE, lambda part: part.write_text(page()))
    print(f"wrote {PAGE.relative_to(PAGE.parent.parent)}")


if __name__ == "__main__":
    main()
