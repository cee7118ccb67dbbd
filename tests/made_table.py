"""A results table without a network: plausible curves for every analysis, drawn from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from cascaded.results.table import to_table

METHODS = (("cascaded-td", 0.0), ("cascaded-td", 0.5), ("cascaded-td", 1.0), ("cascaded-ce", None))
METHODS += (("serial-td-multihead", 1.0),)
SEEDS = (0, 1, 2)
NOISES = ("focus", "occlusion", "perlin", "resolution")
OOD = ("svhn", "cifar100")
COARSE, FINE = 9, 70
FRAMES = (1, 4, 9)
DRAWS, ITEMS = 40, 1000
MEASURES = ("centrality", "human agreement")
WHEN = ("early", "late")
DETECTORS = ("msp", "entropy", "softmax", "logits")


@dataclass(frozen=True)
class Made:
    """One network: how soon and how far its accuracy rises."""

    method: str
    lam: float | None
    seed: int
    data: str
    final: float
    halfway: float

    @property
    def schedule(self) -> str:
        return "serial" if self.method.startswith("serial") else "cascaded"

    def keys(self, **changes: Any) -> dict[str, Any]:
        name = self.method if self.lam is None else f"{self.method}-lam{self.lam:g}"
        about = {"run": f"{self.data}/{name}/{self.seed}", "config": "0123456789ab", "data": self.data, "split": "test"}
        net = {"method": self.method, "lam": self.lam, "arch": "resnet18", "width": 16, "seed": self.seed}
        how = {"schedule": self.schedule, "kernel": "osd", "time": "coarse", "steps": COARSE}
        return {**about, "items": "feedbeef", "n_items": ITEMS, **net, **how, **changes}

    def curve(self, steps: int, last: float | None = None) -> np.ndarray:
        """Accuracy per step: from chance to the final one."""
        t = np.arange(1, steps + 1) * COARSE / steps
        rise = 1 / (1 + np.exp(-(t - self.halfway))) / (1 / (1 + np.exp(-(COARSE - self.halfway))))
        return 0.1 + ((last or self.final) - 0.1) * rise


def made_network(method: str, lam: float | None, seed: int, data: str) -> Made:
    random = np.random.default_rng([seed, len(method), int(10 * (lam or 0))])
    late = {"cascaded-td": 2.0 + 2 * (lam or 0), "cascaded-ce": 7.0}.get(method, 4.5)
    final = {"cascaded-td": 0.78 - 0.03 * (lam or 0), "cascaded-ce": 0.8}.get(method, 0.72)
    return Made(method, lam, seed, data, final + 0.01 * (seed % 3 - 1) + 0.003 * random.normal(), late)


def made_table(
    *analyses: str,
    methods: tuple[tuple[str, float | None], ...] = METHODS,
    seeds: tuple[int, ...] = SEEDS,
    data: str = "cifar10",
) -> pd.DataFrame:
    """The table that `cascaded.results.load` would give for several networks.

    Args:
        analyses: Some of them by name; all by default.
        methods: Names and lambdas.
        seeds: Each with the same methods.
        data: Name of the data.
    """
    rows = [
        {**row, "analysis": name}
        for method, lam in methods
        for seed in seeds
        for name, make in MAKERS.items()
        if not analyses or name in analyses
        for row in make(made_network(method, lam, seed, data))
    ]
    return to_table(pd.DataFrame(rows))


def number(metric: str, value: float, spread: float = 0.01, **variant: Any) -> dict[str, Any]:
    """A number with draws. What is drawn is the same for every network, as the same images are."""
    shared = np.random.default_rng(len(metric)).normal(size=DRAWS)
    own = np.random.default_rng(int(1e6 * abs(value)) % 2**31).normal(size=DRAWS)
    draws = value + spread * (0.8 * shared + 0.6 * own)
    return {"metric": metric, "value": value, "draws": draws.astype(np.float32), **variant}


def points(metric: str, x: np.ndarray, y: np.ndarray, **variant: Any) -> list[dict[str, Any]]:
    return [{"metric": metric, "x": a, "value": b, **variant} for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def with_keys(keys: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return ({**keys, **row} for row in rows)


def finest(net: Made) -> tuple[dict[str, Any], int]:
    """The keys and steps of the recording with the most steps: serial networks have no finer time."""
    if net.schedule == "serial":
        return net.keys(), COARSE
    return net.keys(kernel="ews:0.9", time="fine", steps=FINE), FINE


def costs(net: Made, steps: int, rules: tuple[str, ...]) -> list[dict[str, Any]]:
    y, rows = net.curve(steps), []
    base = float(y.mean())
    for rule, gain in zip(("deadline", "threshold", "stopper"), (0.0, 0.03, 0.035), strict=True):
        if rule not in rules:
            continue
        rows += [number("area", base + gain, rule=rule), number("cost_to_95", steps * (0.5 - gain), 0.1, rule=rule)]
        rows.append(number("cost_to_accuracy_50", steps * (0.3 - gain), 0.1, rule=rule))
        rows += [number("area_above_deadline", gain, 0.003, rule=rule)] if rule != "deadline" else []
        for unit, per_step in (("steps", 1.0), ("operations", 5e6)):
            x = np.linspace(1, steps, 101)
            accuracy = np.interp(x, np.arange(1, steps + 1), y) + gain * np.sin(np.linspace(0, np.pi, 101))
            rows += points("accuracy_at_cost", x * per_step, accuracy, rule=rule, unit=unit)
    return rows


def speed_accuracy(net: Made) -> Iterator[dict[str, Any]]:
    for keys, steps in ((net.keys(), COARSE), finest(net))[: 1 if net.schedule == "serial" else 2]:
        per_step = points("accuracy_per_step", np.arange(1.0, steps + 1), net.curve(steps))
        chance = {"metric": "accuracy_chance", "value": 0.1}
        yield from with_keys(keys, [number("accuracy", net.final), chance, *per_step])
        yield from with_keys(keys, costs(net, steps, ("threshold", "deadline")))


def selection_latency(net: Made) -> Iterator[dict[str, Any]]:
    keys, steps = finest(net)
    mean = steps * net.halfway / COARSE
    numbers = [number("latency", mean, 0.3), number("latency_median", mean - 1, 0.3)]
    numbers += [number("unsettled_fraction", 0.1), {"metric": "theta", "value": 0.8}]
    yield from with_keys(keys, numbers + points("settled", np.arange(1.0, steps + 1), 0.9 * net.curve(steps, 1.0)))


def prototypicality(net: Made) -> Iterator[dict[str, Any]]:
    keys, steps = finest(net)
    for k, measure in enumerate(MEASURES):
        deciles = steps * net.halfway / COARSE * np.linspace(1.3, 0.7, 10)
        rows = points("latency_by_decile", np.arange(1.0, 11), deciles, measure=measure)
        rows.append(number("rho_p", 1e-9, 1e-10, measure=measure))
        rows += points("rho_by_theta", np.array([0.7, 0.83]), np.array([0.4, 0.5]), measure=measure)
        rows += points("rho_by_unsettled", np.array([0.1, 0.2]), np.array([0.4, 0.5]), measure=measure)
        yield from with_keys(keys, [number("rho", 0.5 - 0.04 * net.halfway - 0.1 * k, 0.02, measure=measure), *rows])


def taxonomic_compliance(net: Made) -> Iterator[dict[str, Any]]:
    compliance = 0.1 + 0.3 * net.curve(COARSE) / net.final
    rows = [number("compliance_mean", float(compliance.mean())), {"metric": "compliance_chance", "value": 0.05}]
    rows.append(number("compliance_above_chance", float(compliance.mean()) - 0.05))
    first = float(np.argmax(compliance >= 0.35)) + 1
    rows.append({"metric": "first_step_at_0.35", "value": first})
    yield from with_keys(net.keys(), rows + points("compliance", np.arange(1.0, COARSE + 1), compliance))


def persistent_noise(net: Made) -> Iterator[dict[str, Any]]:
    for k, noise in enumerate(NOISES):
        for schedule in {net.schedule: 1, "serial": 1} if net.method == "cascaded-ce" else [net.schedule]:
            accuracy = net.final - 0.1 * k - (0.05 if schedule == "serial" else 0)
            rows = points("accuracy_per_step", np.arange(1.0, COARSE + 1), net.curve(COARSE, accuracy))
            keys = net.keys(noise=noise, protocol="persistent", schedule=schedule)
            yield from with_keys(keys, [number("accuracy", accuracy), *rows])


def transient_noise(net: Made) -> Iterator[dict[str, Any]]:
    for k, noise in enumerate(NOISES):
        keys = net.keys(noise=noise, protocol="transient", steps=None)
        dips = 0.02 * net.halfway * np.array(FRAMES) / 9 + 0.01 * k
        rows = [number("dip", float(dips.mean())), number("final_confidence", net.final - 0.02)]
        rows.append({"metric": "onset", "value": COARSE + 1.0})
        yield from with_keys(keys, rows + points("dip_by_frames", np.array(FRAMES, dtype=float), dips))
        for frames in FRAMES:
            y = net.curve(2 * COARSE + frames)
            y[COARSE : COARSE + frames] -= 0.1
            curve = points("target_confidence", np.arange(1.0, len(y) + 1), y, noise_frames=frames)
            yield from with_keys({**keys, "steps": len(y)}, curve)


def learned_stopper(net: Made) -> Iterator[dict[str, Any]]:
    keys, steps = finest(net)
    yield from with_keys(keys, costs(net, steps, ("threshold", "deadline", "stopper")))


def out_of_distribution(net: Made) -> Iterator[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for k, ood in enumerate((*OOD, "mean")):
        base = 0.8 - 0.03 * k
        rows += [number("auroc", base, detector="baseline", reads="last", ood_data=ood)]
        rows += [number("fpr95", 1 - base, detector="baseline", reads="last", ood_data=ood)]
        for j, detector in enumerate(DETECTORS):
            both = {"detector": detector, "ood_data": ood}
            for reads, gain in (("all", 0.03 + 0.01 * j), ("last", 0.01)):
                rows.append(number("auroc", base + gain, reads=reads, **both))
                rows.append(number("fpr95", 1 - base - gain, reads=reads, **both))
            rows += [{"metric": f"{metric}_sem", "value": 0.005, **both} for metric in ("auroc", "fpr95")]
            rows.append(number("auroc_gain", 0.02 + 0.01 * j, 0.004, **both))
    yield from with_keys(finest(net)[0], rows)


CONDITIONS = (("noise", 0.0, 0.6), ("noise", 0.16, 0.2), ("blur", 0.0, 0.7), ("blur", 3.0, 0.25), ("color", 0.0, 0.7))
CONDITIONS += (("color", 1.0, 0.75),)
DEADLINES = np.array([200.0, 400.0, 600.0, 800.0, 1000.0])
CATEGORIES = ("cat", "dog")


def human(net: Made) -> Iterator[dict[str, Any]]:
    every, ms = "noise+blur+color", np.arange(0.0, 1101, 25)
    rows: list[dict[str, Any]] = []
    for name, level, last in CONDITIONS:
        of = {"manipulation": name, "level": level}
        people = 0.1 + (last - 0.1) / (1 + np.exp(-(DEADLINES - 600) / 60))
        rows += [number("human_accuracy", y, 0.02, x=x, **of) for x, y in zip(DEADLINES, people, strict=True)]
        for reading in {"blur": ("blur", "blur-190"), "color": ("color", "color-swapped")}.get(name, (name,)):
            y = net.curve(COARSE, last + 0.05)
            rows += points("network_accuracy", np.arange(1.0, COARSE + 1), y, manipulation=reading, level=level)
            over = np.interp((ms - 400) / 60, np.arange(COARSE + 1), np.append(0.1, y))
            rows += points("network_accuracy_at_ms", ms, over, manipulation=reading, level=level)
    for manipulation in (every, "noise+blur-190+color", "noise+blur+color-swapped"):
        for rule, unit in (("deadline", "steps"), ("deadline", "operations"), ("threshold", "steps")):
            of = {"manipulation": manipulation, "rule": rule, "unit": unit}
            rows += [number("mapping_offset", 400.0, 20, **of), number("mapping_scale", 60.0, 5, **of)]
            rows += [number("fit_error", 0.06 + 0.005 * net.halfway, **of), number("curve_correlation", 0.9, **of)]
            rows.append(number("free_fit_error", 0.05, **of))
    for which in (every, "noise", "blur", "color"):
        ceilings = {"ceiling_error": 0.048, "ceiling_correlation": 0.97}
        rows += [{"metric": metric, "value": value, "manipulation": which} for metric, value in ceilings.items()]
    names = ("steepness", "human_steepness", "accuracy_range", "human_accuracy_range", "category_correlation")
    names += tuple(f"{each}_{when}" for each in ("category_correlation", "confusion_similarity") for when in WHEN)
    rows += [number(name, 0.3, manipulation=every) for name in names]
    names = ("accuracy_range_steps", "category_ceiling", "confusion_ceiling_early", "confusion_ceiling_late")
    rows += [{"metric": name, "value": 0.5, "manipulation": every} for name in names]
    for metric, category in product(("category_accuracy", "human_category_accuracy"), CATEGORIES):
        early = 0.2 + 0.1 * len(metric) / 20
        rows += [number(metric, early + 0.001 * x, x=x, category=category, manipulation=every) for x in (600.0, 1000.0)]
    for metric, category, answer in product(("confusion", "human_confusion"), CATEGORIES, CATEGORIES):
        cell = {"metric": metric, "category": category, "answer": answer, "manipulation": every}
        often = 0.3 + 0.3 * (category == answer) + 0.05 * (answer == "cat") + 0.05 * net.halfway / COARSE
        rows += [{**cell, "x": x, "value": often + x / 10_000} for x in (600.0, 1000.0)]
    yield from with_keys(net.keys(), [{**row, "human": "human_sat"} for row in rows])


def run_time(net: Made) -> Iterator[dict[str, Any]]:
    seconds = 10.0 if net.method == "cascaded-ce" else 35.0
    values = {"seconds_per_epoch": seconds, "images_per_second": 4e4 / seconds, "training_hours": seconds / 30}
    nothing = dict.fromkeys(("split", "items", "n_items", "kernel", "time", "steps"))
    rows = [{"metric": metric, "value": value} for metric, value in values.items()]
    yield from with_keys(net.keys(**nothing), rows)


ALL = (speed_accuracy, selection_latency, prototypicality, taxonomic_compliance, persistent_noise, transient_noise)
ALL += (learned_stopper, out_of_distribution, human, run_time)
MAKERS = {make.__name__: make for make in ALL}
