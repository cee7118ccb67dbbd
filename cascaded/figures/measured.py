"""One figure per metric of the results table, as lines over steps or cost, or as dots with intervals."""

from __future__ import annotations

import pandas as pd

from cascaded.errors import InputError
from cascaded.figures.base import Figure, select, styled
from cascaded.figures.dots import dots
from cascaded.figures.lines import lines
from cascaded.figures.style import GRID
from cascaded.results.compare import bands, estimates

UNITS = {"steps": "mean cost (steps)", "operations": "mean cost (floating-point operations)"}


@styled()
def accuracy_per_step(df: pd.DataFrame) -> Figure:
    """Test accuracy at every step, a line per method; a dotted line is chance.

    Args:
        df: From `cascaded.results.load`.
    """
    curves = bands(select(df, "speed_accuracy", "accuracy_per_step"))
    return lines(curves, "step", chance=df[df["metric"] == "accuracy_chance"])


@styled()
def speed_accuracy(df: pd.DataFrame, unit: str = "steps") -> Figure:
    """Accuracy against mean cost where every image stops at a confidence threshold, a line per method.

    Args:
        df: From `cascaded.results.load`.
        unit: `steps`, as on hardware that updates all blocks at once, or `operations`.
    """
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}: give one of {', '.join(UNITS)}")
    chosen = select(df, "speed_accuracy", "accuracy_at_cost", rule="threshold", unit=unit)
    return lines(bands(chosen), UNITS[unit])


@styled()
def stopping_rules(df: pd.DataFrame) -> Figure:
    """Accuracy against mean cost for each stopping rule, a panel per method: threshold, deadline, learned stopper.

    Args:
        df: From `cascaded.results.load`.
    """
    rows = df[(df["metric"] == "accuracy_at_cost") & (df["unit"] == "steps")]
    learned = rows["analysis"] == "learned_stopper"  # has all three rules, on the same images
    rows = rows[learned | ~learned.groupby([rows["run"], rows["time"]]).transform("any")]
    chosen = select(rows.assign(analysis="speed_accuracy"), "speed_accuracy", "accuracy_at_cost")
    return lines(bands(chosen), UNITS["steps"], ("name",))


@styled()
def settled(df: pd.DataFrame) -> Figure:
    """Fraction of images whose prediction has settled, at every step.

    Args:
        df: From `cascaded.results.load`.
    """
    return lines(bands(select(df, "selection_latency", "settled")), "step")


@styled()
def latency_by_decile(df: pd.DataFrame) -> Figure:
    """Mean selection latency by how typical images are, a panel per measure of typicality.

    Args:
        df: From `cascaded.results.load`.
    """
    chosen = bands(finest(select(df, "prototypicality", "latency_by_decile")))
    return lines(chosen, "decile, least typical images first", ("measure",))


@styled()
def prototypicality(df: pd.DataFrame) -> Figure:
    """Spearman's rho of typicality with negative latency: above 0, typical images settle sooner.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(estimates(finest(select(df, "prototypicality", "rho"))), "measure", zero=True)


@styled()
def taxonomy(df: pd.DataFrame) -> Figure:
    """Fraction of errors that stay within the coarse class, at every step; a dotted line is chance.

    Args:
        df: From `cascaded.results.load`.
    """
    curves = bands(select(df, "taxonomic_compliance", "compliance"))
    return lines(curves, "step", chance=df[df["metric"] == "compliance_chance"])


def finest(df: pd.DataFrame) -> pd.DataFrame:
    """The rows in fine time where a method has some: with few steps many images share a latency."""
    fine = df.groupby(["data", "method", "lam"], dropna=False)["time"].transform(lambda own: (own == "fine").any())
    return df[(df["time"] == "fine") | ~fine.astype(bool)]


@styled()
def persistent_noise(df: pd.DataFrame) -> Figure:
    """Accuracy at the last step while every frame is noisy, a row per noise.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(_by_training(estimates(select(df, "persistent_noise", "accuracy"))), "noise")


@styled()
def dip(df: pd.DataFrame) -> Figure:
    """Drop in integrated performance through transient noise, a row per noise; lower is better.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(_by_training(estimates(select(df, "transient_noise", "dip"))), "noise", zero=True)


def _by_training(df: pd.DataFrame) -> pd.DataFrame:
    """Networks that were trained with the noise they are tested with, whichever it is, are of one kind."""
    return df.assign(train_noise=df["train_noise"].mask(df["train_noise"] == df["noise"], "the same noise"))


@styled()
def target_confidence(df: pd.DataFrame) -> Figure:
    """Confidence in the true class under the longest noise, a panel per noise; noisy steps are shaded.

    Args:
        df: From `cascaded.results.load`.
    """
    chosen = select(df, "transient_noise", "target_confidence")
    longest = chosen["noise_frames"].max()
    fig = lines(bands(chosen[chosen["noise_frames"] == longest]), "step", ("noise",))
    onset = df.loc[(df["analysis"] == "transient_noise") & (df["metric"] == "onset"), "value"]
    for ax in fig.axes if len(onset) else []:
        ax.axvspan(onset.iloc[0] - 0.5, onset.iloc[0] + longest - 0.5, color=GRID, alpha=0.6, lw=0, zorder=0)
    return fig


@styled()
def ood(df: pd.DataFrame, metric: str = "auroc") -> Figure:
    """How well out-of-distribution images are detected, a row per detector, from all steps or from the last one.

    Args:
        df: From `cascaded.results.load`.
        metric: `auroc` or `fpr95`, as a mean over the OOD data sets.
    """
    found = estimates(select(df, "out_of_distribution", metric, ood_data="mean"))
    found["reads"] = found["reads"].map({"all": "all steps", "last": "the last step"})
    return dots(found, "detector", ("reads", "the last step"))
