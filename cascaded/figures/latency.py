"""When predictions settle, and for which images: selection latency, prototypicality, taxonomy."""

from __future__ import annotations

import pandas as pd

from cascaded.figures.base import Figure, select, styled
from cascaded.figures.dots import dots
from cascaded.figures.lines import lines
from cascaded.results.compare import bands, estimates


@styled
def settled(df: pd.DataFrame) -> Figure:
    """Fraction of images whose prediction has settled, at every step.

    Args:
        df: From `cascaded.results.load`.
    """
    return lines(bands(select(df, "selection_latency", "settled")), "step")


@styled
def latency_by_decile(df: pd.DataFrame) -> Figure:
    """Mean selection latency by how typical images are, a panel per measure of typicality.

    Args:
        df: From `cascaded.results.load`.
    """
    chosen = bands(finest(select(df, "prototypicality", "latency_by_decile")))
    return lines(chosen, "decile, least typical images first", ("measure",))


@styled
def prototypicality(df: pd.DataFrame) -> Figure:
    """Spearman's rho of typicality with negative latency: above 0, typical images settle sooner.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(estimates(finest(select(df, "prototypicality", "rho"))), "measure", zero=True)


@styled
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
