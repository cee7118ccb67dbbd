"""Files in ONNX Runtime. Importing this module does not import it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cascaded.errors import InputError, first_line


def open_session(file: Path, threads: int) -> Any:
    """Open an ONNX file in ONNX Runtime, on the CPU."""
    runtime = import_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    # every file has threads of its own: those that wait for the next call must not slow down the other files
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # ONNX Runtime raises many types
        raise InputError(
            f"{file} is not an ONNX file of this network ({first_line(error)}): export it again"
        ) from error


def import_runtime() -> Any:
    """The onnxruntime package."""
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"running exported networks needs ONNX Runtime ({error}): pip install 'cascaded[export]'"
        ) from error
    return onnxruntime
