"""The work on one network, `work.json` in its folder, and what of it is done, `done.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from cascaded.errors import InputError
from cascaded.files import from_json, read_json, write_json
from cascaded.traces.config import RecordingConfig
from cascaded.training.config import RunConfig
from cascaded.training.run_file import WEIGHTS
from cascaded.training.runs import checkpoint_places

Keep = Literal["weights", "traces", "none"]
WORK, DONE = "work.json", "done.json"


@dataclass(frozen=True)
class Measurement:
    """What an experiment measures of a network.

    Attributes:
        recordings: What is recorded.
        analyses: What is computed from the recordings: for each analysis the settings and versions that its rows depend
            on.
    """

    recordings: tuple[RecordingConfig, ...] = ()
    analyses: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """All work on one network, or on the joined folds of one.

    Attributes:
        folder: The folder of the run; of folds, that of their common results.
        config: The configuration, where `init_from` is a path; None if nothing is trained.
        shipped: Name of a network that comes with the package.
        folds: The folders of the folds whose recordings are analyzed together.
        measurements: By experiment, what is measured.
        fit_epochs: Training epochs of the stopper and of MetaCog.
        claim_draws: Bootstrap draws of the metrics that claims are about; None for as many as others have.
        keep: What stays of the network once everything is measured.
        deterministic: Refuse operations whose result may differ from run to run.
    """

    folder: str
    config: RunConfig | None = None
    shipped: str | None = None
    folds: tuple[str, ...] = ()
    measurements: Mapping[str, Measurement] = field(default_factory=dict)
    fit_epochs: int = 300
    claim_draws: int | None = None
    keep: Keep = "weights"
    deterministic: bool = False

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    def write(self) -> None:
        """Store it in its folder."""
        write_json(self.path / WORK, _plain(self))

    @classmethod
    def read(cls, folder: Path) -> Work:
        """What `write` wrote."""
        try:
            return from_json(read_json(folder / WORK), cls)
        except ValueError as error:
            raise InputError(f"{folder / WORK} does not describe work ({error}): start the queue again") from error

    def missing(self) -> list[str]:
        """The experiments that are not measured yet. If traces are to be kept, they have to be there."""
        done = Done.read(self.path)
        missing = [name for name, wanted in self.measurements.items() if done.measurements.get(name) != wanted]
        if self.keep == "traces" and not all((self.path / file).exists() for file in done.files):
            return list(self.measurements)
        return missing

    def is_done(self) -> bool:
        """Whether the network is trained and everything is measured; its weights may have been deleted since."""
        return (self.path / DONE).exists() and not self.missing()


@dataclass(frozen=True)
class Done:
    """The work on a network that is done.

    Attributes:
        measurements: By experiment, what was measured.
        files: Recordings that were made, relative to the network's folder.
        notes: What could not be computed, and why.
        seconds: Duration of all recordings and analyses.
        keep: What stays of the network.
    """

    measurements: dict[str, Measurement] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    keep: Keep = "weights"

    @classmethod
    def read(cls, folder: Path) -> Done:
        """What is done in a folder; nothing where there is no such file."""
        file = folder / DONE
        try:
            return from_json(read_json(file), cls) if file.exists() else cls()
        except ValueError as error:
            raise InputError(f"{file} is damaged ({error}): remove it to measure the network again") from error

    def write(self, folder: Path) -> None:
        """Store it."""
        write_json(folder / DONE, _plain(self))

    def also(self, name: str, measurement: Measurement, files: list[str], notes: list[str], seconds: float) -> Done:
        """With one more experiment."""
        return replace(
            self,
            measurements={**self.measurements, name: measurement},
            files=tuple(dict.fromkeys([*self.files, *files])),
            notes=tuple(dict.fromkeys([*self.notes, *notes])),
            seconds=self.seconds + seconds,
        )


def _plain(content: Any) -> Any:
    """As JSON has it."""
    return msgspec.to_builtins(asdict(content))


def has_weights(folder: Path) -> bool:
    """Whether the weights of a network, finished or not, are there."""
    return (folder / WEIGHTS).exists() or bool(checkpoint_places(folder))
