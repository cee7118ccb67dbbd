"""A learned stopper: it reads the outputs so far and predicts whether the prediction will still change.

    h_t = GRU((z_t - m) / d, h_{t-1})        score_t = sigmoid(w . h_t + b)
    target_t = 1 if prediction_s = prediction_t for all s > t, else 0

It reads the logits z, with one mean m and one deviation d over all logits it was trained on, so that
their differences stay. `cascaded.analysis.curves` sweeps the threshold on its score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from cascaded.analysis.metacog import draw_weights
from cascaded.analysis.ood import check_apart
from cascaded.analysis.outputs import predictions
from cascaded.data.split import limited
from cascaded.errors import InputError
from cascaded.files import from_json, read_tensors, write_tensors
from cascaded.progress import progress
from cascaded.traces.trace import Trace

FORMAT = 1
CHUNK = 1024


@dataclass(frozen=True)
class StopperConfig:
    """How a stopper is built and trained. The defaults are the paper's, except for `hidden`, which it does not give.

    Attributes:
        max_images: Images that it is trained on, the same number per class; all where there are fewer.
        hidden: Units of the GRU.
        lr: Adam's learning rate.
        weight_decay: Added to the gradient.
        epochs: Passes over all items.
        batch_size: Items per training step.
        seed: Seed of the choice of images, of initial weights and of their order.
    """

    max_images: int = 4_500
    hidden: int = 64
    lr: float = 1e-4
    weight_decay: float = 1e-4
    epochs: int = 300
    batch_size: int = 256
    seed: int = 42

    def __post_init__(self):
        if min(self.max_images, self.hidden, self.epochs, self.batch_size) < 1 or not self.lr > 0:
            raise InputError(f"{self} cannot be trained: give sizes of at least 1 and an lr above 0")


@dataclass(frozen=True)
class Form:
    """What a stopper was made for.

    Attributes:
        classes: How many logits it reads.
        steps: How many steps the traces have.
        kernel: Which kernel they were recorded under.
        hidden: Units of the GRU.
        trained_on: What it was trained on, in words.
    """

    classes: int
    steps: int
    kernel: str
    hidden: int
    trained_on: str = ""

    def check(self, trace: Trace) -> None:
        """A trace is of the kind the stopper was trained on."""
        for name, there, fix in (
            ("classes", trace.classes, f"train one on a trace of {trace.classes} classes"),
            ("steps", trace.steps, f"record it again with --steps {self.steps}"),
            ("kernel", trace.config.kernel, f"record it again with --kernel {self.kernel}"),
        ):
            if there != getattr(self, name):
                raise InputError(f"{name}: trace has {there}, this stopper was trained on {getattr(self, name)}: {fix}")


class Stopper(nn.Module):
    """A GRU over the outputs so far, with one logit per step.

    Args:
        form: What it is made for.
        generator: Where the initial weights come from.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, form: Form, generator: Generator):
        super().__init__()
        self.form = form
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("deviation", torch.ones(()))
        # first without storage: torch's own weights would come from the global random state, and change it
        self.gru = nn.GRU(form.classes, form.hidden, device="meta").to_empty(device="cpu")
        self.out = nn.Linear(form.hidden, 1, device="meta").to_empty(device="cpu")
        for layer in (self.gru, self.out):
            draw_weights(layer, form.hidden**-0.5, generator)

    def forward(
        self, logits: Float[Tensor, "time batch classes"], state: Tensor | None = None
    ) -> tuple[Float[Tensor, "time batch"], Tensor]:
        """Its own logit at every step, and the state it is left in."""
        h, after = self.gru((logits - self.mean) / self.deviation, state)
        return self.out(h).squeeze(-1), after

    @torch.no_grad()
    def scores(self, trace: Trace) -> Float64[np.ndarray, "time items"]:
        """Score from 0 to 1 at every step, high if the prediction will not change after it."""
        self.form.check(trace)
        scores = np.empty((trace.steps, trace.items))
        for first in range(0, trace.items, CHUNK):
            part = slice(first, first + CHUNK)
            scores[:, part] = _sigmoid(self(torch.from_numpy(trace.logits[:, part].astype(np.float32)))[0]).numpy()
        return scores

    @torch.no_grad()
    def step(
        self, logits: Float[Tensor, "batch classes"], state: Tensor | None = None
    ) -> tuple[Float64[Tensor, "batch"], Tensor]:
        """The score of one more output, as it arrives, and the state to pass along with the next.

        Args:
            logits: What the network says at this step.
            state: What the last step returned; None at the first.
        """
        if logits.dim() != 2 or logits.shape[1] != self.form.classes:
            raise InputError(
                f"logits have shape {tuple(logits.shape)}, this stopper was trained on {self.form.classes} classes: "
                "give (batch, classes)"
            )
        scores, after = self(logits.float().unsqueeze(0), state)
        return _sigmoid(scores[0]), after

    def save(self, file: Path | str) -> None:
        """Write it as safetensors, whole or not at all."""
        write_tensors(Path(file), self.state_dict(), {"stopper": FORMAT, "form": self.form})


def load_stopper(file: Path | str) -> Stopper:
    """A stopper from its file. Nothing is unpickled."""
    metadata, weights = read_tensors(file, "check the path, or train one again", framework="pt")
    if metadata.get("stopper") != FORMAT:
        raise InputError(f"{file} is no stopper of format {FORMAT}: give one that this version saved, or train one")
    try:
        form = from_json(metadata["form"], Form)
        if list(weights["gru.weight_ih_l0"].shape) != [3 * form.hidden, form.classes]:
            raise ValueError(f"size mismatch, {form} has other weights")
        stopper = Stopper(form, Generator().manual_seed(0))
        stopper.load_state_dict(weights)
    except (ValueError, TypeError, KeyError, RuntimeError, RecursionError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} has weights that do not fit its metadata ({reason}): train it again") from error
    return stopper.requires_grad_(False)


def form_of(trace: Trace, hidden: int = StopperConfig.hidden) -> Form:
    """What a stopper is made for that is trained on a trace."""
    return Form(trace.classes, trace.steps, trace.config.kernel, hidden, trace.description)


def settled_targets(trace: Trace) -> Bool[np.ndarray, "time items"]:
    """Whether the prediction at a step is that of every later step, too. At the last step it always is."""
    predicted = predictions(trace)
    return np.logical_and.accumulate((predicted == predicted[-1])[::-1], axis=0)[::-1]


def train_stopper(trace: Trace, config: StopperConfig | None = None, quiet: bool = False) -> Stopper:
    """Train a stopper: cross-entropy with `settled_targets`, averaged over steps and items.

    Labels only balance the images over classes.

    Args:
        trace: Of images that the network was not trained on, such as its validation images.
        config: How; None takes the paper's.
        quiet: Show no progress.
    """
    from torch.optim import Adam  # takes longer to import than all of torch

    config = config or StopperConfig()
    trace = _balanced(trace, config)
    generator = Generator().manual_seed(config.seed)
    stopper = Stopper(form_of(trace, config.hidden), generator)
    _fit_standard(stopper, trace)
    x = torch.from_numpy(trace.logits.astype(np.float32))
    y = torch.from_numpy(settled_targets(trace).astype(np.float32))
    adam = Adam(stopper.parameters(), config.lr, weight_decay=config.weight_decay, fused=True)
    with progress("training the stopper", config.epochs, quiet=quiet) as bar:
        for _ in range(config.epochs):
            for items in torch.randperm(trace.items, generator=generator).split(config.batch_size):
                loss = F.binary_cross_entropy_with_logits(stopper(x.index_select(1, items))[0], y[:, items])
                adam.zero_grad()
                loss.backward()
                adam.step()
            bar.advance()
    return stopper.requires_grad_(False)


def learned_stopper(
    validation: Trace, test: Trace, config: StopperConfig | None = None, quiet: bool = False
) -> tuple[Stopper, Float64[np.ndarray, "time items"]]:
    """Train a stopper on one trace and score another: the stopper, and its scores of the test trace.

    Args:
        validation: What it is trained on.
        test: What it is scored on: other images, as many steps and the same kernel.
        config: How it is trained; None takes the paper's.
        quiet: Show no progress.
    """
    check_apart(validation, test)
    form_of(validation).check(test)  # before the training, which takes its time
    stopper = train_stopper(validation, config, quiet)
    return stopper, stopper.scores(test)


def _balanced(trace: Trace, config: StopperConfig) -> Trace:
    """As many images as a stopper is trained on, the same number per class."""
    if trace.items <= config.max_images:
        return trace
    return trace.select(limited(torch.from_numpy(trace.labels), config.max_images, config.seed).numpy())


def _fit_standard(stopper: Stopper, trace: Trace) -> None:
    """Mean and deviation of all logits, a step at a time: a mapped trace stays on the disk."""
    mean = math.fsum(float(step.mean(dtype=np.float64)) for step in trace.logits) / trace.steps
    squares = (float(np.square(step.astype(np.float64) - mean).mean()) for step in trace.logits)
    stopper.mean.fill_(mean)
    stopper.deviation.fill_(math.sqrt(math.fsum(squares) / trace.steps) or 1.0)


def _sigmoid(logits: Tensor) -> Tensor:
    return logits.double().sigmoid()  # in single precision scores near 1 would round to ties
