"""Models by the names the paper gives them."""

from __future__ import annotations

import re

PAPER = {  # in the order in which they are shown
    "cascaded-td": "CascadedTD({lam})",
    "cascaded-td-multihead": "CascadedTD({lam})-MultiHead",
    "cascaded-ce": "CascadedCE",
    "serial-td-multihead": "Shallow-Deep",
    "serial-td": "SerialTD({lam})",
    "serial-ce": "SerialCE",
    "shallow-deep": "Shallow-Deep, own features",
}
SHALLOW = ("serial-td-multihead", "shallow-deep")
"""Both are taught the true label at every step: their lambda is told where it is another than 1."""
LABEL = re.compile(r"(?P<model>[a-z-]+)(?:\((?P<lam>[^)]*)\))?(?P<rest>.*)", flags=re.DOTALL)


def spoken(label: str) -> str:
    """A condition's label as the paper would say it: `cascaded-td(0)` is CascadedTD(0), the rest stays as it is."""
    found = LABEL.fullmatch(label)
    if found is None or found["model"] not in PAPER:
        return label
    name = PAPER[found["model"]].format(lam=found["lam"])
    if found["model"] in SHALLOW and found["lam"] not in (None, "1"):
        name += f" ({found['lam']})"
    return name + found["rest"]
