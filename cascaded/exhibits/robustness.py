"""Noise and strangers: what films that are spoilt do to the answers, and whether images of another kind are told."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from cascaded.exhibits.gaps import gaps, refusals
from cascaded.exhibits.kinds import Dot, Dots, Figure, Level, Lines, Pictures, Section, Thumb
from cascaded.exhibits.material import Material
from cascaded.exhibits.over_seeds import Points, dots_of, lines_of, whiskers
from cascaded.exhibits.speed import banded, key, learned_for
from cascaded.results.asked import Asked

FORMS = ("msp", "entropy", "softmax", "logits")
STEPS, SIDE = 8, 48
CROP = (60, 120, 320)  # top, left and side of what is shown of the photograph


def noise_section(material: Material) -> Section:
    """The six noises, and what they do while they last and after they have passed."""
    figures = [film_strip()]
    for analysis, draw in (("persistent_noise", _lasting), ("transient_noise", _passing)):
        alike: dict[str, list[Asked]] = {}
        for asked in material.rows(analysis):
            alike.setdefault(_setting(asked), []).append(asked)
        figures += [draw(material, rows) for rows in alike.values()]
    figures += [_confidence(material, asked) for asked in material.rows("transient_noise")]
    lead = (
        "Noise that changes at every step: four that take information away (focus, Perlin, occlusion, resolution) and "
        "two that move it (translation, rotation). A network that integrates over time can see through what changes. "
        "In the paper networks are trained with the noise they are tested under."
    )
    names = ("persistent_noise", "transient_noise")
    notes = (*_untrained(material, *names), *refusals(material, *names))
    return Section("noise", "Noise", lead, figures, gaps(material, *names), notes)


def _untrained(material: Material, *analyses: str) -> tuple[str, ...]:
    """Which networks were tested under noise that they had not been trained with."""
    found: dict[str, None] = {}
    for asked in (each for analysis in analyses for each in material.rows(analysis)):
        for condition in material.conditions:
            tested = any(asked.row in by_row for by_row in condition.by_seed.values())
            if tested and condition.group.first.config.noise != asked.noise:
                found[f"{material.names[condition.label]} was not trained with {asked.noise}."] = None
    return tuple(found)


def film_strip() -> Figure:
    """The six noises on a photograph, a film a row; the same one every time."""
    import torch
    import torch.nn.functional as F
    from sklearn.datasets import load_sample_images

    from cascaded.data.noise import NOISES

    top, left, side = CROP
    photograph = torch.tensor(load_sample_images().images[0]).permute(2, 0, 1) / 255
    image = F.interpolate(photograph[None, :, top : top + side, left : left + side], (SIDE, SIDE), mode="area")
    generator = torch.Generator().manual_seed(5)
    films = {"clean": image.expand(STEPS, *image.shape)}
    films |= {name: noise.film(image, STEPS, generator) for name, noise in NOISES.items()}
    rows = tuple((name, tuple(Thumb(_bytes(frame[0])) for frame in film)) for name, film in films.items())
    caption = f"{STEPS} steps of a film under each noise, spoilt as much as the paper's images are, in proportion."
    return Figure("noises", "Six noises that change at every step", caption, Pictures(rows))


def _bytes(frame: Any) -> np.ndarray:
    return (frame * 255).round().byte().permute(1, 2, 0).numpy()


def _lasting(material: Material, rows: list[Asked]) -> Figure:
    """Accuracy under noise that lasts, noise by noise."""
    what = _setting(rows[0])
    body = Dots("accuracy", *_by_noise(material, rows, "accuracy"))
    caption = f"Accuracy at the last step while every frame is noisy: {what}.{whiskers(body.dots)}"
    return Figure(key("persistent", what), f"Noise that lasts, {what}", caption, body)


def _passing(material: Material, rows: list[Asked]) -> Figure:
    """What noise that passes costs, noise by noise."""
    what = _setting(rows[0])
    body = Dots("drop in integrated performance", *_by_noise(material, rows, "dip"), levels=(Level("none", 0.0),))
    caption = (
        f"How far the confidence in the true class is, on average from the first noisy step on, below where it "
        f"ends: {what}. Lower is better.{whiskers(body.dots)}"
    )
    return Figure(key("transient", what), f"Noise that passes, {what}", caption, body)


def _setting(asked: Asked) -> str:
    """What all noises of a figure have in common: the images, and how time goes where it is fine."""
    return f"{asked.data} {asked.split}" + (f", {asked.kernel}" if asked.is_fine else "")


def _by_noise(material: Material, rows: list[Asked], metric: str) -> tuple[tuple[str, ...], tuple[Dot, ...]]:
    often = Counter(asked.noise for asked in rows)
    groups = [
        asked.noise if often[asked.noise] == 1 else f"{asked.noise}, {asked.what.rpartition(', ')[2]}" for asked in rows
    ]
    dots = [dots_of(material, asked, {metric: group}) for asked, group in zip(rows, groups, strict=True)]
    return tuple(dict.fromkeys(groups)), tuple(dot for some in dots for dot in some)


def _confidence(material: Material, asked: Asked) -> Figure:
    """The confidence in the true class over a film whose middle is noisy, for the longest noise."""
    answers = material.told(asked)
    longest = max(answers[0]["frames"], key=int)

    def read(result: dict[str, Any]) -> Points:
        told = result["frames"].get(longest, {}).get("confidence", ())
        return list(range(1, len(told) + 1)), told

    onset = float(answers[0]["onset"])
    spans = (("noisy", onset - 0.5, onset + int(longest) - 0.5),)
    body = Lines("step", "confidence in the true class", lines_of(material, asked, read), spans=spans, whole=True)
    caption = (
        f"Mean confidence in the true class, {longest} noisy steps between clean ones: {asked.what}.{banded(body)}"
    )
    return Figure(key("confidence", asked.noise, asked.what), f"Passing {asked.noise}, {asked.data}", caption, body)


def outside_section(material: Material) -> Section:
    """Whether images of another kind can be told from the trace."""
    figures = []
    for asked in material.rows("out_of_distribution"):
        figures += [_detection(material, asked, "auroc"), _detection(material, asked, "fpr")]
    lead = (
        "Can a network tell that an image is of a kind it was not made for? A small classifier reads what was said, at "
        "the last step alone or at all steps, as the highest probability (msp), the entropy, all probabilities "
        "(softmax) or all scores (logits). If it matters how an answer came about, all steps tell more than the last."
    )
    missing = gaps(material, "out_of_distribution")
    notes = (
        *learned_for(material, "out_of_distribution", "Classifiers were"),
        *refusals(material, "out_of_distribution"),
    )
    return Section("outside", "Images of another kind", lead, figures, missing, notes)


def _detection(material: Material, asked: Asked, figure: str) -> Figure:
    last = dots_of(material, asked, {f"{figure} {form} last": form for form in FORMS}, "last step")
    all_steps = dots_of(material, asked, {f"{figure} {form} all": form for form in FORMS}, "all steps")
    baseline = dots_of(material, asked, {f"{figure} baseline": "confidence alone"}, "last step")
    dots = (*last, *all_steps, *baseline)
    label = {"auroc": "AUROC", "fpr": "false alarms at 95 % detected"}[figure]
    better = {"auroc": "Higher is better.", "fpr": "Lower is better."}[figure]
    caption = (
        f"{asked.what}; the mean over outside sets. Open marks read the last step, filled ones all steps. "
        f"{better}{whiskers(dots)}"
    )
    body = Dots(label, (*FORMS, "confidence alone"), dots)
    return Figure(key("outside", figure, asked.what), f"{label}, {asked.data}", caption, body)
