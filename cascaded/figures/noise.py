"""Networks under noise that changes at every step, persistent or transient."""

from __future__ import annotations

import pandas as pd

from cascaded.figures.base import Figure, select, styled
from cascaded.figures.dots import dots
from cascaded.figures.lines import lines
from cascaded.figures.style import GRID
from cascaded.results.compare import bands, estimates


@styled
def persistent_noise(df: pd.DataFrame) -> Figure:
    """Accuracy at the last step while every frame is noisy, a row per noise.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(_by_training(estimates(select(df, "persistent_noise", "accuracy"))), "noise")


@styled
def dip(df: pd.DataFrame) -> Figure:
    """Drop in integrated performance through transient noise, a row per noise; lower is better.

    Args:
        df: From `cascaded.results.load`.
    """
    return dots(_by_training(estimates(select(df, "transient_noise", "dip"))), "noise", zero=True)


def _by_training(df: pd.DataFrame) -> pd.DataFrame:
    """Networks that were trained with the noise they are tested with, whichever it is, are of one kind."""
    return df.assign(train_noise=df["train_noise"].mask(df["train_noise"] == df["noise"], "the same noise"))


@styled
def target_confidence(df: pd.DataFrame, noise_frames: float | None = None) -> Figure:
    """Confidence in the true class over a sequence whose middle is noisy, a panel per noise; noisy steps are shaded.

    Args:
        df: From `cascaded.results.load`.
        noise_frames: How many frames are noisy; None for the longest that was recorded.
    """
    chosen = select(df, "transient_noise", "target_confidence")
    longest = chosen["noise_frames"].max() if noise_frames is None else noise_frames
    chosen = select(chosen, "transient_noise", "target_confidence", noise_frames=longest)
    fig = lines(bands(chosen), "step", ("noise",))
    onset = df.loc[(df["analysis"] == "transient_noise") & (df["metric"] == "onset"), "value"]
    for ax in fig.axes if len(onset) else []:
        ax.axvspan(onset.iloc[0] - 0.5, onset.iloc[0] + longest - 0.5, color=GRID, alpha=0.6, lw=0, zorder=0)
    return fig
