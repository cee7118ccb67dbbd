"""What a network says of a picture at every step, and when it has said enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from cascaded.errors import InputError

if TYPE_CHECKING:
    from cascaded.hub.pretrained import Pretrained
    from cascaded.runtime.images import Picture

FINE = ("ews:0.9", 70)
"""Fine time: the kernel and the number of read-outs of the paper's smooth curves."""


@dataclass(frozen=True)
class Answer:
    """A network's answer to one picture over time.

    Attributes:
        classes: What it tells apart.
        probabilities: How likely it finds each class at each step.
        stop: The probability above which an answer is taken; None to wait for the last step.
    """

    classes: tuple[str, ...]
    probabilities: Float32[np.ndarray, "time classes"]
    stop: float | None = None

    @property
    def steps(self) -> int:
        """How many steps it was given."""
        return len(self.probabilities)

    @property
    def leaders(self) -> list[int]:
        """The likeliest class at each step."""
        return self.probabilities.argmax(axis=1).tolist()

    @property
    def changes(self) -> list[int]:
        """Steps, from 1, at which another class leads than at the step before."""
        said = self.leaders
        return [step for step in range(2, self.steps + 1) if said[step - 1] != said[step - 2]]

    @property
    def stopped(self) -> int | None:
        """The first step whose leading probability is above `stop`; None where there is none."""
        if self.stop is None:
            return None
        above = (self.probabilities.max(axis=1) > self.stop).nonzero()[0]
        return int(above[0]) + 1 if len(above) else None

    @property
    def step(self) -> int:
        """The step whose answer counts, from 1."""
        return self.stopped or self.steps

    @property
    def said(self) -> str:
        """The class that it answers with."""
        return self.classes[self.leaders[self.step - 1]]

    @property
    def probability(self) -> float:
        """How likely it found that class then."""
        return float(self.probabilities[self.step - 1].max())

    def sentence(self) -> str:
        """The answer in a line."""
        sure = f"({self.probability:.2f})"
        if self.stopped:
            return f"answers {self.said} after step {self.step} of {self.steps} {sure}"
        if self.stop is not None:
            return f"never surer than {self.stop:g}: answers {self.said} at the last step {sure}"
        since = self.changes[-1] if self.changes else 1
        told = f", and has since step {since} of {self.steps}" if since < self.steps else ""
        return f"answers {self.said} at the last step {sure}{told}"

    def likeliest(self, step: int, count: int) -> list[tuple[str, float]]:
        """Classes and their probabilities at a step (from 1), the likeliest first."""
        row = self.probabilities[step - 1]
        return [(self.classes[place], float(row[place])) for place in np.argsort(-row, kind="stable")[:count]]

    def shown(self, count: int) -> list[int]:
        """Classes to draw: all that ever lead, and at least `count`, by how likely they were at their best."""
        by_peak = np.argsort(-self.probabilities.max(axis=0), kind="stable").tolist()
        led = set(self.leaders)
        rest = [place for place in by_peak if place not in led][: max(0, count - len(led))]
        return [place for place in by_peak if place in led or place in rest]

    def to_json(self, path: str, model: str) -> dict[str, Any]:
        """All of it, for a program: of which picture, and by which network."""
        return {
            "path": path,
            "model": model,
            "answer": self.said,
            "step": self.step,
            "steps": self.steps,
            "probability": round(self.probability, 6),
            "stop": self.stop,
            "stopped": self.stopped is not None,
            "classes": list(self.classes),
            "probabilities": [[round(float(each), 6) for each in row] for row in self.probabilities],
        }


def ask(net: Pretrained, picture: Picture, stop: float | None = None, fine: bool = False) -> Answer:
    """Show a network a picture.

    All steps are computed, also those after the answer: what they would have said is worth seeing. The step is the one
    at which `cascaded.early_exit` would have let the picture go.

    Args:
        net: A trained network.
        picture: What to show it.
        stop: The probability above which an answer is taken.
        fine: Have the same weights run in fine time.
    """
    import torch

    from cascaded.cascade.named import make_kernel

    if stop is not None and not 0 <= stop <= 1:
        raise InputError(f"stop is {stop}: give a probability from 0 to 1")
    if fine and net.schedule == "serial":
        raise InputError(
            f"{net.spec.model} runs block by block, fine time needs delays: leave it out, or choose a cascaded network"
        )
    kernel, steps = (make_kernel(FINE[0]), FINE[1]) if fine else (None, None)
    with torch.no_grad():
        logits = net(picture.seen(net.inputs.shape)[None], kernel=kernel, steps=steps)
    return Answer(net.classes, logits[:, 0].softmax(dim=-1).numpy(), stop)
