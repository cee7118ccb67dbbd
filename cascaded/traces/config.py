"""Where a trace came from: the network, the images, and how the one was shown the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from cascaded.errors import InputError
from cascaded.files import check_types

Protocol = Literal["persistent", "transient"]


@dataclass(frozen=True)
class Noising:
    """Noise that a trace was recorded under.

    Attributes:
        name: Which noise: `occlusion`.
        protocol: `persistent`, every frame spoilt; `transient`, some frames between clean ones.
        onset: Number of the first noisy step, from 1.
        frames: How many frames are noisy.
        trials: How often every image was shown, each time with other draws. Items stand trial by trial.
        seed: What the draws were made from.
        drawn: How many frames were drawn, of which these are the first.
    """

    name: str
    protocol: Protocol
    onset: int
    frames: int
    trials: int = 1
    seed: int = 0
    drawn: int = 0


@dataclass(frozen=True)
class Origin:
    """Where a trace came from. Two traces can be compared item by item if their data, split and images agree.

    Attributes:
        run: Folder of the run whose network was recorded; empty for a trace made by hand.
        model: Which of the paper's models: `cascaded-td`.
        lam: Its lambda; None where the loss has none.
        seed: The run's seed.
        fold: Which fold of how many the run held out: `(3, 10)`; None where all were trained on.
        weights: SHA-256 of the weights.
        data: Name of the data.
        split: Which part of it.
        images: A digest of all images of that source, to tell them from others of the same name.
        shown: A digest of the rows that were shown.
        classes: What the network's classes are called.
        known: Whether the labels are numbers of these classes; False for images the network was not meant for.
        schedule: `cascaded` or `serial`.
        kernel: How results were delayed: `osd`, `ews:0.9`.
        noise: Noise, if there was any.
        coarse_of: For every class the coarser one it belongs to, where the data has two levels.
        coarse_classes: What the coarser classes are called.
        updates: Block updates at every step.
        operations: Floating-point operations an image at every step.
        made_with: Versions that made it.
    """

    run: str = ""
    model: str = ""
    lam: float | tuple[float, ...] | None = None
    seed: int = 0
    fold: tuple[int, int] | None = None
    weights: str = ""
    data: str = ""
    split: str = ""
    images: str = ""
    shown: str = ""
    classes: tuple[str, ...] = ()
    known: bool = True
    schedule: str = "cascaded"
    kernel: str = "osd"
    noise: Noising | None = None
    coarse_of: tuple[int, ...] = ()
    coarse_classes: tuple[str, ...] = ()
    updates: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    made_with: dict[str, str] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        """How often every image was shown."""
        return self.noise.trials if self.noise else 1

    def to_json(self) -> dict[str, Any]:
        """As a trace's header keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Origin:
        """What `to_json` gave, back from JSON. What a later version may have added is passed over."""
        known = {each.name for each in fields(cls)}
        check_types(told, cls)
        told = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
        if told.get("noise") is not None:
            parts = {each.name for each in fields(Noising)}
            check_types(told["noise"], Noising)
            told["noise"] = Noising(**{name: value for name, value in told["noise"].items() if name in parts})
        return cls(**{name: value for name, value in told.items() if name in known})

    def __str__(self) -> str:
        """In a sentence: `cifar10 test under ews:0.9 of runs/td0/0`."""
        noise = f" with {self.noise.protocol} {self.noise.name}" if self.noise else ""
        return f"{self.data or 'made by hand'} {self.split}{noise} under {self.kernel} of {self.run or 'no run'}"


def check_same_images(mine: Origin, yours: Origin) -> None:
    """Two traces are of the same images; whether in the same order is for `Trace` to tell."""
    for what in ("data", "split", "images"):
        a, b = getattr(mine, what), getattr(yours, what)
        if a != b:
            short = {"images": ("images " + a[:12], "images " + b[:12])}.get(what, (a, b))
            raise InputError(
                f"{mine.run or 'one trace'} was recorded on {short[0]}, {yours.run or 'the other'} on {short[1]}: "
                f"record both on the same --data and --split"
            )
