"""Networks under the names that the paper gives them."""

from __future__ import annotations

import math

NAMES = {  # in the order in which figures and tables have them
    "cascaded-td": "CascadedTD({lam:g})",
    "cascaded-td-multihead": "CascadedTD({lam:g})-MultiHead",
    "cascaded-ce": "CascadedCE",
    "serial-td-multihead": "Shallow-Deep",
    "serial-td": "SerialTD({lam:g})",
    "serial-ce": "SerialCE",
    "shallow-deep": "Shallow-Deep, own features",
}
EXITS = ("serial-td-multihead", "shallow-deep")
"""Early-exit networks: lambda is 1, the true label at every exit, and is named only where it is another one."""


def display_name(method: str, lam: float | None, schedule: str | None = None, noise: str | None = None) -> str:
    """A network by the name that the paper gives it.

    Args:
        method: Such as `cascaded-td`.
        lam: Its lambda; None or nan where its loss has none.
        schedule: How it was run; None for the schedule of its method.
        noise: The noise on the frames, if there was any: a serial network then processes every frame in full, which
            the paper calls SerialCE x 9.
    """
    frames = "x9" if noise and isinstance(noise, str) else ""
    other = schedule is not None and isinstance(schedule, str) and not method.startswith((schedule, "shallow"))
    if other and schedule == "serial" and method == "cascaded-ce":
        return f"SerialCE{frames}"
    known = NAMES.get(method, method)
    if lam is None or math.isnan(lam):
        name = known.replace("({lam:g})", "")
    else:
        name = known.format(lam=lam) + (f" ({lam:g})" if method in EXITS and lam != 1 else "")
    if other:
        return f"{name}, {schedule}"
    return name + (frames if method == "serial-ce" else "")
