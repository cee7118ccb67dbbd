"""Figures: a function each, from the results table (`cascaded.results.load`) to a matplotlib figure."""

from typing import TYPE_CHECKING

from cascaded.lazy import lazy

if TYPE_CHECKING:
    from cascaded.figures.accuracy import lambda_effect as lambda_effect
    from cascaded.figures.accuracy import learning_curve as learning_curve
    from cascaded.figures.activations import schedules as schedules
    from cascaded.figures.compared import claims as claims
    from cascaded.figures.compared import estimates_beside_paper as estimates_beside_paper
    from cascaded.figures.files import save as save
    from cascaded.figures.human import human_categories as human_categories
    from cascaded.figures.human import human_confusions as human_confusions
    from cascaded.figures.human import human_curves as human_curves
    from cascaded.figures.human import human_fit as human_fit
    from cascaded.figures.images import gallery as gallery
    from cascaded.figures.images import noises as noises
    from cascaded.figures.measured import accuracy_per_step as accuracy_per_step
    from cascaded.figures.measured import dip as dip
    from cascaded.figures.measured import latency_by_decile as latency_by_decile
    from cascaded.figures.measured import ood as ood
    from cascaded.figures.measured import persistent_noise as persistent_noise
    from cascaded.figures.measured import prototypicality as prototypicality
    from cascaded.figures.measured import settled as settled
    from cascaded.figures.measured import speed_accuracy as speed_accuracy
    from cascaded.figures.measured import stopping_rules as stopping_rules
    from cascaded.figures.measured import target_confidence as target_confidence
    from cascaded.figures.measured import taxonomy as taxonomy
    from cascaded.figures.svg import inline as inline

__getattr__, __dir__ = lazy(__name__)
