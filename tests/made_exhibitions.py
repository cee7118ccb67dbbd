"""An exhibition made by hand, with everything in it that a page can show, and names that no page should trust."""

from __future__ import annotations

from html import escape

import numpy as np

from cascaded.exhibits.kinds import Figure, Lines, Missing, Section, Series
from cascaded.exhibits.page import ClaimLine, Exhibition, Explorer, RunLine, Watched
from cascaded.report.files import Drawn

ODD = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'more' </script><img src=x onerror=alert(2)>",
    "long-" * 40,
)
PLAIN = ("CascadedTD(0)", "CascadedTD(1)", "CascadedCE", "Shallow-Deep")
MODELS = (*PLAIN, *ODD)
HUES = ("#0072b2", "#d55e00", "#009e73", "#b8578f", "#8a6d00", "#4f7f94", "#b2483c")
COLOURS: dict[str, str] = dict(zip(MODELS, HUES, strict=True))
CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", ODD[0], ODD[2])


def made_exhibition(explorers: bool = True) -> Exhibition:
    """Everything at once; without explorers, what would have to be recorded for one."""
    summary = (
        "Trained with TD, cascaded networks are right at step 3 for 86 % of the images; with cross-entropy at the end "
        "alone, for 18 %.",
        "At the last step all four are within 4 points of each other: 89, 91, 93 and 92 %.",
        f"A model with an odd name is here as well: {ODD[0]}.",
    )
    there = (made_explorer(), made_explorer("cifar100 test", classes=100, items=20)) if explorers else ()
    absent = () if explorers else (Missing("the blocks' states of any run", "cascaded record runs/a --maps"),)
    versions = {"cascaded": "0.5.0", "torch": "2.13.0", "numpy": "2.4.1"}
    runs, sections = made_runs(), made_sections()
    return Exhibition("Cluttered digits", summary, MODELS, runs, sections, made_claims(), there, absent, versions)


def made_runs() -> tuple[RunLine, ...]:
    facts = {"seed": "0", "data": "clutter", "network": "resnet-8, width 8", "epochs": "40", "time": "62 s"}
    facts |= {"last step": "91.2 %", "recorded": "test, out of distribution", "device": "2 cores"}
    return tuple(
        RunLine(f"runs/{model}-{seed}", model, {**facts, "seed": str(seed)}) for model in MODELS for seed in (0, 1)
    )


def made_sections() -> tuple[Section, ...]:
    lead = (
        "How good is the answer if one stops early? Each network is stopped at every step, and its answers are counted."
    )
    figures = [made_figure(f"speed-{number}", f"Speed and accuracy, part {number}") for number in range(3)]
    odd_one = made_figure("film-strip", f"A film strip of {ODD[1]}")
    stopper = Missing("the learned stopper", "cascaded analyse runs/a runs/b --what stopping --seeds 5")
    odd = Missing(f"the run {ODD[2]}", f"cascaded record 'runs/{ODD[2]}' && echo \"{ODD[0]}\"")
    note = f"The trace of {ODD[1]} was passed over: it was made by other weights."
    return (
        Section("speed", "Speed and accuracy", lead, figures, (stopper,), (note,)),
        Section("noise", "Six noises", "What does noise do while it lasts, and after?", [odd_one]),
        Section("taxonomy", f"Classes such as {ODD[0]}", "Are early mistakes sensible ones?", (), (odd, stopper)),
    )


def made_figure(key: str, title: str) -> Figure:
    series = tuple(Series(model, (1, 2, 3), (0.1, 0.5 + place / 20, 0.9)) for place, model in enumerate(MODELS))
    caption = "Mean over two seeds with bands of one standard error. Further to the left is faster, higher is better."
    return Figure(key, title, caption, Lines("step", "accuracy", series))


def made_claims() -> tuple[ClaimLine, ...]:
    first = "Cascaded networks trained with TD answer faster than serial ones at the same accuracy."
    second = "A lambda below 1 is better than 1."
    last = f"Latency follows how typical an image is, even of {ODD[0]}."
    record = "cascaded analyse runs/* --what prototypes"
    return (
        ClaimLine("C1", first, "threshold, clutter", 12.34, 8.1, 16.5, "points", "2 seeds", "+9 points", "yes"),
        ClaimLine("C1", first, "deadline, clutter", 4.2, -0.3, 8.9, "points", "1000 images", "+6 points", "no"),
        ClaimLine("C2", second, "lambda 0 against 1", -0.0241, -0.05, 0.001, "rho", "images", "+0.03", "no"),
        ClaimLine(
            "C5", last, "no distances were measured", None, None, None, "", "", "rho 0.42", "not measured", record
        ),
    )


def made_explorer(data: str = "clutter test", classes: int = 10, items: int = 30, side: int = 7) -> Explorer:
    """Digits that are only blobs; networks of different length, surer with every step."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:28, :28]
    places = rng.uniform(6, 22, (items, 2))
    blobs = np.exp(
        -((y - places[:, :1, None]) ** 2 + (x - places[:, 1:, None]) ** 2) / rng.uniform(10, 60, (items, 1, 1))
    )
    images = (255 * blobs[..., None] * rng.uniform(0.3, 1, (items, 1, 1, 3))).astype(np.uint8)
    labels = tuple(int(label) for label in rng.integers(0, classes, items))
    names = CLASSES if classes == 10 else tuple(f"class {number}" for number in range(classes))
    models = tuple(
        made_watched(model, labels, classes, 6 + 3 * (place % 3), side) for place, model in enumerate(MODELS)
    )
    return Explorer(data, names, images, labels, models)


def made_watched(model: str, labels: tuple[int, ...], classes: int, steps: int, side: int = 7) -> Watched:
    rng = np.random.default_rng(len(model))
    items, stages = len(labels), steps - 1
    logits = rng.normal(size=(1, items, classes)) + rng.normal(size=(steps, items, classes)) * 0.3
    logits[:, np.arange(items), labels] += np.linspace(0, 5, steps)[:, None] * rng.uniform(0.1, 1.5, items)
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    ages = np.arange(1, steps + 1)[:, None, None] - np.arange(stages)
    nearness = np.broadcast_to((ages / 3).clip(0, 1), (steps, items, stages)).astype(np.float32)
    settled = rng.integers(0, 256, (items, stages, side, side))
    maps = (settled * nearness[..., None, None]).astype(np.uint8)
    return Watched(model, shares.astype(np.float32), maps, nearness)


def made_drawings(exhibition: Exhibition) -> dict[str, Drawn]:
    """All figures of an exhibition as if they had been drawn: a few lines each."""
    figures = [figure for section in exhibition.sections for figure in section.figures]
    return {figure.key: _drawing(figure) for figure in figures}


def _drawing(figure: Figure) -> Drawn:
    width, height = 346, 230
    curve = '<path d="M40 {low} Q{at} 30 {far} {up}" fill="none" stroke="{hue}" stroke-width="2"/>'
    curves = "".join(
        curve.format(low=height - 30, at=70 + 12 * place, far=width - 90, up=40 + 9 * place, hue=hue)
        for place, hue in enumerate(HUES)
    )
    axes = f'<path d="M40 20V{height - 30}H{width - 80}" fill="none" stroke="var(--grid)"/>'
    label = escape(figure.body.table()[0][3])
    words = f'<text x="40" y="{height - 10}" font-size="10" style="fill: var(--muted)">{label}</text>'
    svg = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(figure.title)}">'
    files = {kind: f"{figure.key}.{kind}" for kind in ("svg", "pdf", "png", "csv")}
    return Drawn(figure.key, figure.title, figure.caption, f"{svg}{axes}{curves}{words}</svg>", files)
