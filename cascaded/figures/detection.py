"""Detection of out-of-distribution images."""

from __future__ import annotations

import pandas as pd

from cascaded.figures.base import Figure, select, styled
from cascaded.figures.dots import dots
from cascaded.results.compare import estimates


@styled
def ood(df: pd.DataFrame, metric: str = "auroc", ood_data: str = "mean") -> Figure:
    """How well out-of-distribution images are detected, a row per detector, from all steps or from the last one.

    Args:
        df: From `cascaded.results.load`.
        metric: `auroc` or `fpr95`.
        ood_data: Which OOD data set; `mean` for the mean over all of them.
    """
    found = estimates(select(df, "out_of_distribution", metric, ood_data=ood_data))
    found["reads"] = found["reads"].map({"all": "all steps", "last": "the last step"})
    return dots(found, "detector", ("reads", "the last step"))
