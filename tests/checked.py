"""Check the shapes in annotations while the tests run.

`check_shapes` installs an import hook of jaxtyping: every function and dataclass of the modules in question is wrapped
by `checked`, and fails if an argument or a result has another type or shape than its annotation.
"""

from pathlib import Path

from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

PACKAGE = Path(__file__).parent.parent / "cascaded"

CHECKED_BY_HAND = {
    *("analysis.curves", "analysis.metacog", "analysis.prototypes", "analysis.ranks", "analysis.statistics"),
    *(
        "cascade.network",
        "cascade.readout",
        "hub.pretrained",
        "losses",
        "runtime.early_exit",
        "runtime.export",
        "runtime.runner",
    ),
    *("analysis.places", "data.augment", "data.frames", "data.human", "data.images", "data.noise", "data.sheet"),
    *("models.unet", "traces.trace", "training.load"),
}
"""Modules that check the input of users themselves, with a better sentence: tests give them wrong shapes."""

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # a whole number will do for a float


def check_shapes() -> None:
    """Check every module with shapes in its annotations. Call this before any of them is imported."""
    files = {".".join(file.relative_to(PACKAGE).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}
    assert set(files) >= CHECKED_BY_HAND, CHECKED_BY_HAND - set(files)
    annotated = {module for module, file in files.items() if "from jaxtyping import" in file.read_text()}
    install_import_hook([f"cascaded.{module}" for module in annotated - CHECKED_BY_HAND], f"{__name__}.checked")
