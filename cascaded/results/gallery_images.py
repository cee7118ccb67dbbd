"""Find the fastest and the slowest images of a run's recordings in its data, and store them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64, UInt8

from cascaded.analysis.latency import EXTREMES, by_latency, extremes, selection_latency
from cascaded.data.images import Images
from cascaded.data.sheet import contact_sheet
from cascaded.data.sources import load
from cascaded.errors import InputError
from cascaded.files import write_whole
from cascaded.results.analyzed import Analyzed
from cascaded.results.galleries import IMAGES, Gallery, gallery_file, read_gallery, thumbnails, write_gallery
from cascaded.results.tasks import Settings, clean_traces
from cascaded.traces.store import TraceFile
from cascaded.training.data import data_of, load_split
from cascaded.training.runs import read_inputs


def write_galleries(run: Analyzed, settings: Settings) -> list[Path]:
    """Store the fastest and slowest images of every recording without noise, and a contact sheet by class.

    Args:
        run: The run. The images that were recorded have to be at hand.
        settings: Those of selection latency.
    """
    files = []
    for trace in clean_traces(run):
        file, source = gallery_file(run.folder, trace.name), f"{trace.header.digest} {settings.unsettled_fraction}"
        known = read_gallery(file)
        if known is None or known.source != source:
            _write(run, trace, file, source, settings.unsettled_fraction)
        files.append(file)
    return [file for file in files if file.exists()]


def _write(run: Analyzed, trace_file: TraceFile, file: Path, source: str, unsettled_fraction: float) -> None:
    trace, images = trace_file.load(), find_images(run, trace_file)
    latency = selection_latency(trace, unsettled_fraction=unsettled_fraction)
    order = by_latency(trace, latency)
    found = extremes(latency, order, IMAGES)
    items, row = np.concatenate([*found.values()]), np.repeat(np.arange(len(EXTREMES)), [*map(len, found.values())])
    thumbs, about = thumbnails(_pixels(images, trace.indices[items])), (run.keys(trace_file), source, images.classes)
    write_gallery(file, Gallery(*about, thumbs, row, latency.steps[items].astype(np.float32), trace.labels[items]))
    rows = []
    for label in np.unique(trace.labels):
        for name, some in extremes(latency, order[trace.labels[order] == label], IMAGES).items():
            pixels = torch.from_numpy(_pixels(images, trace.indices[some]))
            rows += [(f"{images.classes[label]}, {name}", pixels)] if len(some) else []
    write_whole(file.with_suffix(".png"), lambda part: contact_sheet(rows).save(part, format="PNG"))


def find_images(run: Analyzed, trace: TraceFile) -> Images:
    """The images that a trace was recorded from; others are refused."""
    data, split = str(trace.config.data), str(trace.config.split)
    if data == run.config.data:
        with data_of(run.folder, run.config):
            images = load_split(run.config, "train" if split == "validation" else split)
    else:
        channels, _, size = read_inputs(run.runs[0]).shape
        images = load(data, split, image_size=size, channels=channels)
    recorded, here = trace.provenance.images, images.fingerprint()
    if here != recorded:
        differ = f"{trace.name} is of images {recorded[:12]}, {data} has {here[:12]}"
        raise InputError(f"{differ}: bring them back, or record it again")
    return images


def _pixels(images: Images, rows: Int64[np.ndarray, "*rows"]) -> UInt8[np.ndarray, "*rows channels height width"]:
    """Images by their rows in the source."""
    order = np.argsort(images.indices.numpy())
    places = order[np.searchsorted(images.indices.numpy(), rows, sorter=order)]
    return images.images[torch.from_numpy(places)].numpy()
