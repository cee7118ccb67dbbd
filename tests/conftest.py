"""What all tests share: shapes are checked at run time, drawn examples are the same in every run."""

import gc
import os
import random
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config as shapes

from cascaded.cascade import cost
from cascaded.figures import files
from tests.checked import check_shapes
from tests.counted import counted_once
from tests.shared_folder import shared_folder

check_shapes()

settings.register_profile(
    "cascaded",
    max_examples=20,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cascaded")
torch.set_num_threads(1)
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as cascaded.runtime: some tests import ONNX Runtime before it
# as in an activated environment: commands are then printed as `cascaded ...`, whichever folder a test is in
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def pytest_configure(config: pytest.Config) -> None:
    """Processes that are forked for a test do not need the threads that carry the test's results."""
    config.addinivalue_line("filterwarnings", r"ignore:.* use of fork\(\) may lead to deadlocks:DeprecationWarning")


def pytest_collection_finish() -> None:
    """Spare the garbage collector a million objects of imported packages, which live until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)


def seed_all(name: str) -> None:
    """Seed the global random state of Python, numpy and torch from a name."""
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> None:
    """A fixture draws the same numbers whichever tests ran before it, in whichever process."""
    seed_all(f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """So does a test."""
    seed_all(item.nodeid)


WHOLE_PROGRAMS = {
    *("test_demo", "test_docs", "test_interop", "test_kills", "test_missing", "test_own_arch", "test_page"),
    *("test_printed_commands", "test_queue", "test_reproduce", "test_sweep", "test_train_command", "test_training"),
}


@pytest.fixture(autouse=True, scope="module")
def _shapes_of_whole_programs_are_not_checked(request):
    """Checking them takes a fifth of the time of a training; they are checked in the tests of its parts."""
    shapes.update("jaxtyping_disable", request.module.__name__.rpartition(".")[2] in WHOLE_PROGRAMS)
    yield
    shapes.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="session")
def _figures_without_pdf_and_png():
    """Reports are drawn in many tests; fonts of a PDF take half a second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "WRITTEN", ("svg", "csv"))
        yield


@pytest.fixture(scope="module")
def every_kind():
    """Figures are written as users get them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "WRITTEN", files.KINDS)
        yield


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory):
    """What tests and their fixtures decode does not end up in the home of whoever runs them, and is decoded once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CASCADED_CACHE", str(shared_folder(tmp_path_factory) / "cache"))
        patched.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared_folder(tmp_path_factory) / "inductor"))
        patched.setattr(cost, "_count", counted_once(shared_folder(tmp_path_factory) / "operations"))
        yield
