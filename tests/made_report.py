"""A report made by hand, with everything that a page can show, and names that no page should trust."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from cascaded.figures.style import color
from cascaded.report.explorer import Explorer
from cascaded.report.page import Missing, PageFigure, Report, Section, effect
from cascaded.traces.activations import Activations
from cascaded.traces.config import Provenance, RecordingConfig

ODD = ("<script>alert(1)</script>", "\"quoted\" & 'more' </script><img src=x onerror=alert(2)>", "long-" * 40)
PLAIN = ("CascadedTD(0)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep")
NETWORKS = (*PLAIN, *ODD)
HUES = ("#0072b2", "#d55e00", "#009e73", "#b8578f", "#8a6d00", "#4f7f94", "#b2483c")
METHODS: dict[str, dict[str, Any]] = {
    "CascadedTD(0)": {"method": "cascaded-td", "lam": 0.0},
    "CascadedTD(1)": {"method": "cascaded-td", "lam": 1.0},
    "CascadedCE": {"method": "cascaded-ce"},
    "Shallow-Deep": {"method": "shallow-deep"},
}
COLORS: dict[str, str] = dict(zip(NETWORKS, HUES, strict=True))
COLORS |= {name: color(each["method"], each.get("lam")) for name, each in METHODS.items()}
CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", ODD[0], ODD[2])


def made_report(explorers: bool = True) -> Report:
    """Everything at once; without explorers, what would have to be recorded for one."""
    findings = (
        "After 3 of 9 steps the network trained with TD(0) is right on 86 % of the images, the one trained with "
        "cross-entropy on 18 %; at the last step 89 % and 93 %.",
        f"On {ODD[0]}, after 2 of 9 steps the network trained with TD(0) is right on 50 % of the images.",
    )
    missing = (Missing("activations of the networks", "cascaded record runs/a --activations 40"),)
    return Report(
        title="Anytime prediction on cluttered digits",
        findings=findings,
        context="1,000 test images of clutter, 2 seeds per network.",
        colors=COLORS,
        first=made_figure("accuracy", "Accuracy per step"),
        sections=made_sections(),
        claims=made_claims(),
        runs=made_runs(),
        explorers=(made_explorer(), made_explorer("cifar100 test", classes=100, items=20)) if explorers else (),
        explorer_missing=() if explorers else missing,
        made_with={"cascaded": "0.5.0", "torch": "2.13.0", "numpy": "2.4.1"},
    )


def made_runs() -> tuple[dict[str, str], ...]:
    facts = {"data": "clutter", "architecture": "resnet18, width 8", "epochs": "40", "training time": "62 s"}
    facts |= {"accuracy": "91.2 %", "recorded": "test, out of distribution", "device": "2 cores"}
    return tuple(
        {"network": network, "run": f"runs/{network}-{seed}", "seed": str(seed), **facts}
        for network in NETWORKS
        for seed in (0, 1)
    )


def made_sections() -> tuple[Section, ...]:
    lead = "Each network is stopped at every step, and its predictions are counted."
    figures = tuple(made_figure(f"speed-{number}", f"Speed and accuracy, part {number}") for number in range(3))
    odd_one = made_figure("noises", f"The noises of {ODD[1]}", made_figure("frames", f"Frames of {ODD[0]}"))
    stopper = Missing("the learned stopper", "cascaded record runs/a runs/b --split validation")
    odd = Missing(f"the run {ODD[2]}", f"cascaded record 'runs/{ODD[2]}' && echo \"{ODD[0]}\"")
    note = f"The trace of {ODD[1]} was skipped: it was recorded with other weights."
    return (
        Section("speed", "Speed and accuracy", lead, figures, (stopper,), (note,)),
        Section("noise", "Six noises", "Accuracy under noise that changes at every step.", (odd_one,)),
        Section("taxonomy", f"Classes such as {ODD[0]}", "Are early errors near misses?", (), (odd, stopper)),
    )


def made_figure(key: str, title: str, *more: PageFigure) -> PageFigure:
    caption = "Mean over two seeds with bands of one standard error. Further to the left is faster, higher is better."
    files = {kind: f"{key}.{kind}" for kind in ("svg", "pdf", "png", "csv")}
    table = (("step", *NETWORKS), ("1", *(["10 %"] * len(NETWORKS))), ("2", *(["86 %"] * len(NETWORKS))))
    return PageFigure(title, caption, _drawing(title), files, tuple(more), table)


def made_claims() -> tuple[dict[str, Any], ...]:
    first = "Cascaded networks trained with TD are faster than serial ones at the same accuracy."
    second = "A lambda below 1 is better than 1."
    last = f"Latency follows how typical an image is, even of {ODD[0]}."
    record = "cascaded record runs/a --embeddings"
    points, rho = effect(12.34, 8.1, 16.5, "points"), effect(-0.0241, -0.05, -0.001, "rho")
    some = effect(4.2, -0.3, 8.9, "points")
    names = ("claim", "statement", "what", "effect", "interval_over", "paper", "verdict", "command")
    rows = (
        ("C1", first, "threshold, clutter", points, "2 seeds", "+9 points", "supported", ""),
        ("C1", first, "deadline, clutter", some, "1000 images", "+6 points", "inconclusive", ""),
        ("C2", second, "lambda 0 against 1", rho, "images", "+0.03", "contradicted", ""),
        ("C5", last, "no distances were measured", None, "", "rho 0.42", "not measured", record),
    )
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def made_explorer(data: str = "clutter test", classes: int = 10, items: int = 30, side: int = 7) -> Explorer:
    """Digits that are only blobs; networks of different length, more confident with every step."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:28, :28]
    places = rng.uniform(6, 22, (items, 2))
    blobs = np.exp(
        -((y - places[:, :1, None]) ** 2 + (x - places[:, 1:, None]) ** 2) / rng.uniform(10, 60, (items, 1, 1))
    )
    images = (255 * blobs[:, None] * rng.uniform(0.3, 1, (items, 3, 1, 1))).astype(np.uint8)
    labels = rng.integers(0, classes, items)
    names = CLASSES if classes == 10 else tuple(f"class {number}" for number in range(classes))
    config = RecordingConfig(*data.split())
    return {
        name: made_network(config, Provenance(**METHODS.get(name, {}), classes=names), images, labels, place, side)
        for place, name in enumerate(NETWORKS)
    }


def made_network(config, provenance, images, labels, place, side) -> Activations:
    rng = np.random.default_rng(place)
    steps, items, classes = 6 + 3 * (place % 3), len(labels), len(provenance.classes)
    stages = steps - 1
    logits = rng.normal(size=(1, items, classes)) + rng.normal(size=(steps, items, classes)) * 0.3
    logits[:, np.arange(items), labels] += np.linspace(0, 5, steps)[:, None] * rng.uniform(0.1, 1.5, items)
    ages = np.arange(1, steps + 1)[:, None, None] - np.arange(stages)
    convergence = np.broadcast_to((ages / 3).clip(0, 1), (steps, items, stages)).astype(np.float32)
    final = rng.integers(0, 256, (items, stages, side, side))
    maps = (final * convergence[..., None, None]).astype(np.uint8)
    logits, blocks = logits.astype(np.float32), np.zeros((0, stages - 1), np.float32)
    return Activations(config, provenance, images, labels, np.arange(items), logits, maps, convergence, blocks, blocks)


def _drawing(title: str) -> str:
    line = '<path d="M40 20V200H266" fill="none" stroke="var(--grid)"/>'
    words = '<text x="40" y="220" font-size="10" style="fill: var(--muted)">step</text>'
    return f'<svg viewBox="0 0 346 230" role="img" aria-label="{escape(title)}">{line}{words}</svg>'
