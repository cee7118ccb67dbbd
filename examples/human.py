"""Networks beside people: from nothing to the figure.

Two shipped networks see what people were shown, on embedded CIFAR-10 images. Their accuracy per step is compared with
that of people at deadlines, and both are drawn over milliseconds. On the command line: `cascaded record --human`,
`cascaded analyze --only human`, `cascaded report`.

    python examples/human.py [IMAGES] [FOLDER]
"""

import shutil
import sys
from importlib.resources import files
from pathlib import Path

import cascaded
from cascaded import figures
from cascaded.data import human
from cascaded.results.human import main_rows
from cascaded.results.run import run_analyses
from cascaded.results.tasks import Settings
from cascaded.traces.record import record
from cascaded.traces.stimuli import human_recordings

NETWORKS = ("cifar10-td0", "cifar10-ce")


def recorded(folder: Path, images: int) -> Path:
    """Copy the shipped networks, and record all that people were shown."""
    for name in NETWORKS:
        shutil.copytree(str(files("cascaded") / "hub" / "networks" / name), folder / name, dirs_exist_ok=True)
        run = cascaded.load_run(folder / name)
        for config in human_recordings(cascaded.RecordingConfig(data="cifar10-sample", max_images=images)):
            record(run, config)
    return folder


def main(images: int = 700, folder: str | Path = "beside-people") -> None:
    """Record, compare, draw."""
    people = human.curves()
    print(f"{people['trials'].sum()} trials of people count")
    print(
        people.query("manipulation == 'noise' and level == 0")[["deadline_ms", "accuracy", "low", "high"]].to_string()
    )

    networks = recorded(Path(folder), images)
    run_analyses([networks], ["human"], Settings(draws=50))
    table = cascaded.results.load(networks, "human")
    numbers = cascaded.results.estimates(main_rows(table))
    for metric in ("mapping_offset", "mapping_scale", "fit_error", "ceiling_error"):
        for row in numbers[numbers["metric"] == metric].itertuples():
            name = cascaded.results.display_name(str(row.method), row.lam)
            print(f"{metric:15} {name:15} {cascaded.results.METRICS[metric].format(row.value)}")
    for kind, file in figures.save(figures.human_curves(table), networks / "people").items():
        print(f"wrote {file}" if kind != "csv" else f"wrote {file}, the numbers of the figure")


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))
