"""Predictions for images that arrive at any time: one thread computes the steps of all of them in batches. No torch.

Every step of an exported network has a file of its own, so items at the same step form a batch. They take turns: a step
of the new items, a step of one group, and so on. Items with a prediction leave their group.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Literal, NamedTuple

import numpy as np

from cascaded.errors import InputError, at_least
from cascaded.runtime.result import confidence
from cascaded.runtime.runner import Runner, RunnerState

Reason = Literal["threshold", "deadline", "last step"]
"""Why a prediction is final."""


class StepOutput(NamedTuple):
    """The prediction for an item after a step.

    Attributes:
        prediction: The most probable class.
        confidence: Its probability.
        step: Number of the step, from 1.
        seconds: Time since the start of the item.
        reason: Why no further step follows; None if one does.
    """

    prediction: int
    confidence: float
    step: int
    seconds: float
    reason: Reason | None


@dataclass(eq=False)
class Item:
    """An image to predict.

    Attributes:
        image: Bytes, (channels, height, width).
        start: When its time began, on the batcher's clock.
        threshold: Confidence above which it exits.
        deadline: When it exits, on the batcher's clock.
        on_step: Called after every step, in the batcher's thread.
        result: Its final prediction.
        before: When its last step ended.
        step: Number of its last step.
        abandoned: Nobody waits for it: it exits at the next step.
    """

    image: np.ndarray
    start: float
    threshold: float | None = None
    deadline: float = float("inf")
    on_step: Callable[[StepOutput], None] | None = None
    result: Future[StepOutput] = field(default_factory=Future)
    before: float = 0.0
    step: int = 0
    abandoned: bool = False


@dataclass
class Group:
    """Items whose next step one file computes."""

    items: list[Item]
    state: RunnerState | None = None


class Batcher:
    """Computes the steps of all items in one thread, in batches.

    An item exits at the first step at which its confidence is above its threshold, or if, at the pace of its last step,
    the next one would end after its deadline, or at the last step. Its first step is always computed.

    Args:
        runner: The exported network.
        steps: Last step; by default the one at which the output is final.
        max_batch: Items that are computed at the same time; others wait.
        on_run: Called with the number of items and the seconds of every run of a file.
        clock: Returns the time in seconds.

    Attributes:
        last: The last step.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        steps: int | None = None,
        max_batch: int = 32,
        on_run: Callable[[int, float], None] = lambda items, seconds: None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        at_least(1, max_batch=max_batch)
        self.runner, self.last, self.clock = runner, runner.last_step(steps), clock
        self._max_batch, self._on_run, self._given_steps = max_batch, on_run, steps is not None
        self._waiting: deque[Item] = deque()
        self._groups: deque[Group] = deque()
        self._changed, self._closed = Condition(), False
        self._thread = Thread(target=self._work, name="batcher", daemon=True)

    def start(self) -> None:
        """Start the thread; items that were submitted before wait for it."""
        self._thread.start()

    def submit(self, item: Item) -> Future[StepOutput]:
        """Compute an item; its prediction is in the future that this returns."""
        with self._changed:
            if self._closed:
                raise InputError("the server is shutting down: send the request to another one")
            self._waiting.append(item)
            self._changed.notify()
        return item.result

    def close(self) -> None:
        """Accept no more items, finish those that were submitted, and stop the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    # --- the thread

    def _work(self) -> None:
        while (arrived := self._arrived()) is not None:
            for group in arrived:
                self._run(group)
            if self._groups:
                self._run(self._groups.popleft())

    def _arrived(self) -> list[Group] | None:
        """New items, in at most two groups; None after the last item if the batcher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._groups or self._closed)
            if not self._waiting and not self._groups:
                return None
            room = self._max_batch - sum(len(group.items) for group in self._groups)
            taken = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        now = self.clock()
        taken = [item for item in taken if item.result.set_running_or_notify_cancel()]
        for item in taken:
            item.before = now
        split = ([item for item in taken if self._one_pass(item) == one_pass] for one_pass in (False, True))
        return [Group(items) for items in split if items]

    def _one_pass(self, item: Item) -> bool:
        """Whether one full pass is enough: the item does not stop early, and nobody reads its steps."""
        steps = item.threshold is not None or item.deadline < float("inf") or item.on_step is not None
        return not steps and not self._given_steps

    def _run(self, group: Group) -> None:
        """Compute a group's next step, or a full pass for items that read only the final output."""
        try:
            self._compute(group)
        except Exception as error:  # only the requests of this batch fail, and the thread goes on
            for item in group.items:
                if not item.result.done():
                    item.result.set_exception(error)

    def _compute(self, group: Group) -> None:
        began, items = self.clock(), group.items
        images = np.stack([item.image for item in items]) if group.state is None else None
        if images is not None and self._one_pass(items[0]):
            logits, state = self.runner.full_pass(images), None
        else:
            logits, state = self.runner.step(images, group.state)
        now = self.clock()
        self._on_run(len(items), now - began)
        stay = np.array([self._finish(*each, now, state is None) for each in zip(items, logits, strict=True)])
        if state is not None and stay.any():
            kept = [item for item, stays in zip(items, stay, strict=True) if stays]
            self._queue(Group(kept, state if stay.all() else state.select(stay)))

    def _finish(self, item: Item, logits: np.ndarray, now: float, final: bool) -> bool:
        """Record the output of an item's step; returns whether another step follows."""
        sure = float(confidence(logits[None])[0])
        item.step = self.last if final else item.step + 1
        pace, item.before = now - item.before, now
        reason: Reason | None = None
        if item.threshold is not None and sure > item.threshold:
            reason = "threshold"
        elif item.step == self.last or item.abandoned:
            reason = "last step"
        elif now + pace > item.deadline:
            reason = "deadline"
        output = StepOutput(int(logits.argmax()), sure, item.step, now - item.start, reason)
        if item.on_step is not None:
            item.on_step(output)
        if reason is not None:
            item.result.set_result(output)
        return reason is None

    def _queue(self, group: Group) -> None:
        """Add a group at the end, to one that can be computed with it if there is one."""
        for other in self._groups:
            if group.state is not None and other.state is not None and self.runner.can_join(other.state, group.state):
                other.items, other.state = other.items + group.items, other.state.join(group.state)
                return
        self._groups.append(group)
