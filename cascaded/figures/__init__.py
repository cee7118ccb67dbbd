"""Figures: a function each, from the results table (`cascaded.results.load`) to a matplotlib figure."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.figures.accuracy import accuracy_per_step, lambda_effect, learning_curve
    from cascaded.figures.activations import schedules
    from cascaded.figures.compared import claims, estimates_beside_paper
    from cascaded.figures.detection import ood
    from cascaded.figures.files import save
    from cascaded.figures.images import gallery, noises
    from cascaded.figures.latency import latency_by_decile, prototypicality, settled, taxonomy
    from cascaded.figures.noise import dip, persistent_noise, target_confidence
    from cascaded.figures.stopping import speed_accuracy, stopping_rules
    from cascaded.figures.svg import inline

__all__ = [
    "accuracy_per_step",
    "claims",
    "dip",
    "estimates_beside_paper",
    "gallery",
    "inline",
    "lambda_effect",
    "latency_by_decile",
    "learning_curve",
    "noises",
    "ood",
    "persistent_noise",
    "prototypicality",
    "save",
    "schedules",
    "settled",
    "speed_accuracy",
    "stopping_rules",
    "target_confidence",
    "taxonomy",
]

_HOMES = {
    "cascaded.figures.accuracy": ("accuracy_per_step", "lambda_effect", "learning_curve"),
    "cascaded.figures.compared": ("claims", "estimates_beside_paper"),
    "cascaded.figures.images": ("gallery", "noises"),
    "cascaded.figures.svg": ("inline",),
    "cascaded.figures.latency": ("latency_by_decile", "prototypicality", "settled", "taxonomy"),
    "cascaded.figures.noise": ("dip", "persistent_noise", "target_confidence"),
    "cascaded.figures.detection": ("ood",),
    "cascaded.figures.files": ("save",),
    "cascaded.figures.activations": ("schedules",),
    "cascaded.figures.stopping": ("speed_accuracy", "stopping_rules"),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
