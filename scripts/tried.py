"""Keep what a trial gave beside the results of a scale, for docs/results.md; then run scripts/results.py.

python scripts/tried.py runs/longer/0 out/reproduce-laptop/runs/cifar10/cascaded-td-lam0/0 --said "twenty more epochs" \
    --command "cascaded train ..." --figures accuracy "threshold above deadline"
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cascaded.paper.tried import Trial, changes, keep_trial

KEPT = Path(__file__).parent.parent / "results" / "laptop"


def main() -> None:
    """Read both runs, and keep what is different."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("run", type=Path, help="the folder of the run that was tried")
    asked.add_argument("against", type=Path, help="the run of the scale that it is held against")
    asked.add_argument("--said", required=True, help="what is different, in a few words")
    asked.add_argument("--command", required=True, help="what trained it")
    asked.add_argument("--figures", nargs="*", default=(), help="which figures; all by default")
    told = asked.parse_args()
    found = changes(told.run, told.against, told.figures)
    run, against = ("/".join(each.resolve().parts[-3:]) for each in (told.run, told.against))
    keep_trial(KEPT, Trial(told.said, told.command, run, against, found))
    print(f"kept {len(found)} figures of {told.run} in {KEPT}")


if __name__ == "__main__":
    main()
