"""The predictions of a network for one image, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from cascaded.cascade.kernels import ExponentialSmoothing
from cascaded.cascade.named import make_kernel
from cascaded.errors import InputError, between
from cascaded.hub.pretrained import Pretrained

FINE_STEPS = 70
"""Steps under exponential smoothing, which converges only in the limit; as in the paper."""


@dataclass(frozen=True)
class Prediction:
    """Class probabilities of one image at every step.

    Attributes:
        classes: Class names.
        probabilities: Softmax of the logits at every step.
        threshold: Stop at the first step whose confidence is above this; None to run all steps.
    """

    classes: tuple[str, ...]
    probabilities: Float32[np.ndarray, "time classes"]
    threshold: float | None = None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.probabilities)

    @property
    def labels(self) -> list[str]:
        """The predicted class at every step."""
        return [self.classes[index] for index in self.probabilities.argmax(axis=1)]

    @property
    def stopped(self) -> bool:
        """Whether the confidence is above the threshold at any step."""
        return self.threshold is not None and bool((self.probabilities.max(axis=1) > self.threshold).any())

    @property
    def step(self) -> int:
        """The step of the final prediction, from 1: the first one above the threshold, or the last one."""
        return int((self.probabilities.max(axis=1) > self.threshold).argmax()) + 1 if self.stopped else self.steps

    @property
    def label(self) -> str:
        """The final prediction: the class with the highest probability at `step`."""
        return self.labels[self.step - 1]

    @property
    def confidence(self) -> float:
        """The probability of `label` at `step`."""
        return float(self.probabilities[self.step - 1].max())

    def top(self, step: int, count: int) -> list[tuple[str, float]]:
        """The most probable classes at a step (from 1) and their probabilities."""
        row = self.probabilities[step - 1]
        return [(self.classes[index], float(row[index])) for index in np.argsort(-row, kind="stable")[:count]]

    def summary(self) -> str:
        """The final prediction in one line."""
        prediction = f"predicted {self.label} ({self.confidence:.2f})"
        if self.stopped:
            return f"{prediction} after step {self.step} of {self.steps}"
        if self.threshold is not None:
            return f"{prediction} at the last step, confidence never above {self.threshold:g}"
        return f"{prediction} at the last step"

    def to_json(self, path: str, model: str) -> dict[str, Any]:
        """All of it as JSON, with the path of the image and the name of the network."""
        return {
            "path": path,
            "model": model,
            "prediction": self.label,
            "confidence": round(self.confidence, 6),
            "step": self.step,
            "steps": self.steps,
            "threshold": self.threshold,
            "stopped": self.stopped,
            "classes": list(self.classes),
            "probabilities": [[round(float(each), 6) for each in row] for row in self.probabilities],
        }


@torch.no_grad()
def predict(
    net: Pretrained,
    image: UInt8[np.ndarray, "height width channels"],
    *,
    threshold: float | None = None,
    kernel: str | None = None,
    steps: int | None = None,
) -> Prediction:
    """Run a network on one image.

    All steps are computed, also those after the final prediction. `cascaded.early_exit` with the same threshold stops
    at the same step and returns the same prediction.

    Args:
        net: A trained network.
        image: Pixels of the network's input shape, as `UserImage.resize` returns them.
        threshold: Stop at the first step whose confidence is above this.
        kernel: The delay kernel, such as "ews:0.9" for smaller time steps; the network's own by default.
        steps: Number of steps; until the output is constant by default, 70 under exponential smoothing.
    """
    if threshold is not None:
        between(0, 1, threshold=threshold)
    if kernel is not None and net.schedule == "serial":
        raise InputError("this network runs its blocks one after the other, without delays: leave the kernel out")
    delay = make_kernel(kernel) if kernel else None
    if isinstance(delay, ExponentialSmoothing):
        steps = steps or FINE_STEPS
    pixels = torch.from_numpy(image).permute(2, 0, 1)[None]
    logits = net(pixels, kernel=delay, steps=steps)
    return Prediction(net.classes, logits[:, 0].softmax(dim=-1).numpy(), threshold)
