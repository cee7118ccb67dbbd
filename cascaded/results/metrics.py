"""The metrics: what each is called, its unit and which direction is better. The only place for labels and units."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A column of numbers with a name.

    Attributes:
        name: As the results table has it.
        label: As figures and tables have it.
        unit: Of the number times `scale`; empty where it has none.
        scale: What the number is multiplied with before it is written down.
        higher_is_better: None where neither direction is.
    """

    name: str
    label: str
    unit: str = ""
    scale: float = 1
    higher_is_better: bool | None = None

    def format(self, value: float, signed: bool = False) -> str:
        """A value with its unit, such as `71.3 %`; a dash where there is none."""
        if not math.isfinite(value):
            return "-"
        scaled = value * self.scale
        sign = "+" if signed else ""
        digits = 1 if self.unit in ("%", "points") or abs(scaled) >= 10 else 3 if not self.unit else 2
        return f"{scaled:{sign}.{digits}f} {self.unit}".strip()

    def format_difference(self, value: float) -> str:
        """A difference of two values with its sign; of percentages it is in points."""
        unit = "points" if self.unit == "%" else self.unit
        return Metric(self.name, self.label, unit, self.scale).format(value, signed=True)


def _percent(name: str, label: str, higher_is_better: bool | None = True) -> Metric:
    return Metric(name, label, "%", 100, higher_is_better)


_ALL = (
    _percent("accuracy", "accuracy"),
    _percent("accuracy_chance", "accuracy by chance", higher_is_better=None),
    _percent("accuracy_per_step", "accuracy"),
    _percent("accuracy_at_cost", "accuracy"),
    *(_percent(f"accuracy_at_{n}", f"accuracy at {n} % of the full network's operations") for n in (25, 50, 75, 100)),
    _percent("area", "mean accuracy over costs"),
    Metric("area_above_deadline", "mean accuracy above the deadline rule", "points", 100, True),
    Metric("cost_to_95", "cost of 95 % of the final accuracy", "steps", higher_is_better=False),
    Metric("cost_to_accuracy_50", "cost of an accuracy of 50 %", "steps", higher_is_better=False),
    Metric("latency", "mean selection latency", "steps", higher_is_better=False),
    Metric("latency_median", "median selection latency", "steps", higher_is_better=False),
    Metric("theta", "confidence threshold of selection latency"),
    _percent("unsettled_fraction", "images that never settle", higher_is_better=False),
    _percent("settled", "images settled"),
    Metric("rho", "Spearman's rho with negative latency", higher_is_better=True),
    Metric("rho_p", "p value of Spearman's rho", higher_is_better=False),
    Metric("rho_by_theta", "Spearman's rho with negative latency", higher_is_better=True),
    Metric("rho_by_unsettled", "Spearman's rho with negative latency", higher_is_better=True),
    Metric("latency_by_decile", "mean selection latency", "steps", higher_is_better=False),
    _percent("compliance", "taxonomic compliance"),
    _percent("compliance_mean", "taxonomic compliance, mean over steps"),
    Metric("compliance_above_chance", "taxonomic compliance above chance", "points", 100, True),
    _percent("compliance_chance", "taxonomic compliance by chance", higher_is_better=None),
    Metric("first_step_at_0.35", "first step with a compliance of 35 %", "steps", higher_is_better=False),
    Metric("onset", "first noisy step"),
    _percent("dip", "drop in integrated performance", higher_is_better=False),
    _percent("dip_by_frames", "drop in integrated performance", higher_is_better=False),
    _percent("target_confidence", "confidence in the true class"),
    _percent("final_confidence", "confidence in the true class at the last step"),
    Metric("auroc", "AUROC", higher_is_better=True),
    _percent("fpr95", "false-positive rate at 95 % true-positive rate", higher_is_better=False),
    Metric("auroc_sem", "standard error of the AUROC over trainings"),
    Metric("fpr95_sem", "standard error of the false-positive rate over trainings", "points", 100),
    Metric("auroc_gain", "AUROC of all steps minus that of the last step", higher_is_better=True),
    _percent("human_accuracy", "accuracy of people", higher_is_better=None),
    _percent("network_accuracy", "accuracy"),
    _percent("network_accuracy_at_ms", "accuracy"),
    Metric("mapping_offset", "time before the first step", "ms"),
    Metric("mapping_scale", "time per step, or per million operations", "ms"),
    Metric("fit_error", "difference from people", "points", 100, False),
    Metric("free_fit_error", "difference from people, each deadline mapped on its own", "points", 100, False),
    Metric("curve_correlation", "correlation with people over deadlines", higher_is_better=True),
    Metric("ceiling_error", "difference of a perfect model from people", "points", 100),
    Metric("ceiling_correlation", "reliability of people over deadlines"),
    Metric("steepness", "steepest rise of accuracy", "points per 100 ms", 100),
    Metric("human_steepness", "steepest rise of the accuracy of people", "points per 100 ms", 100),
    Metric("accuracy_range", "range of accuracy over deadlines", "points", 100),
    Metric("human_accuracy_range", "range of the accuracy of people over deadlines", "points", 100),
    Metric("accuracy_range_steps", "range of accuracy over steps", "points", 100),
    Metric("category_correlation", "correlation with people over categories", higher_is_better=True),
    Metric("category_correlation_early", "correlation with people over categories, early", higher_is_better=True),
    Metric("category_correlation_late", "correlation with people over categories, late", higher_is_better=True),
    Metric("category_ceiling", "reliability of people over categories"),
    Metric("confusion_similarity_early", "correlation of errors with those of people, early", higher_is_better=True),
    Metric("confusion_similarity_late", "correlation of errors with those of people, late", higher_is_better=True),
    Metric("confusion_ceiling_early", "reliability of the errors of people, early"),
    Metric("confusion_ceiling_late", "reliability of the errors of people, late"),
    _percent("category_accuracy", "accuracy per category"),
    _percent("human_category_accuracy", "accuracy of people per category", higher_is_better=None),
    _percent("confusion", "predictions per category", higher_is_better=None),
    _percent("human_confusion", "answers of people per category", higher_is_better=None),
    Metric("seconds_per_epoch", "training time per epoch", "s", higher_is_better=False),
    Metric("images_per_second", "training speed", "images/s", higher_is_better=True),
    Metric("training_hours", "training time", "h", higher_is_better=False),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
