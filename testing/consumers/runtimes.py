"""The runtimes of ONNX files that are measured, by the names of their profiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from testing.live_worker import LiveError, LiveWorker
from testing.onnx_live import LEVELS, assert_agree, run_at

from .consumers_live import CONSUMERS, NCNN, RUNTIMES

HERE = "onnxruntime"  # the one that runs in this process
TITLES = {HERE: "ONNX Runtime", "openvino": "OpenVINO", "tract": "tract",
          "mnn": "MNN", "ncnn": "ncnn"}  # fmt: skip
VERSIONS = dict(package.split("==") for package in (*RUNTIMES, NCNN))
VERSIONS[HERE] = onnxruntime.__version__


def worker_of(consumer: str) -> LiveWorker:
    """The process that a consumer runs in."""
    return CONSUMERS


def is_here(consumer: str) -> bool:
    """Whether a consumer can be asked."""
    if consumer == HERE:
        return True
    worker = worker_of(consumer)
    try:
        return not isinstance(worker.start(), str) and bool(worker.ask("version", consumer))
    except LiveError:
        return False  # of several runtimes in an environment, it has others


def run(consumer: str, path: str, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
    """What a consumer computes for the model in a file. Raises LiveError where it cannot."""
    if consumer != HERE:
        return worker_of(consumer).run(path, feeds, command=consumer)
    try:
        optimized, plain = (run_at(level, Path(path), feeds) for level in LEVELS)
    except Exception as error:  # its exceptions have no common base but this
        raise LiveError(str(error)) from error
    assert_agree(optimized, plain)
    return optimized
