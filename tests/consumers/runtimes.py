"""The runtimes of ONNX files that are measured, by the names of their profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.live_worker import LiveWorker

from .consumers_live import CONSUMERS, NCNN, RUNTIMES
from .torch_live import RUNTIME as ONNX2TORCH
from .torch_live import TORCH

TITLES = {"openvino": "OpenVINO", "tract": "tract", "onnx2torch": "onnx2torch", "mnn": "MNN",
          "ncnn": "ncnn"}  # fmt: skip
VERSIONS = dict(package.split("==") for package in (*RUNTIMES, NCNN, ONNX2TORCH))
SEPARATE = {"onnx2torch": TORCH}  # those with an environment of their own


def worker_of(consumer: str) -> LiveWorker:
    """The process that a consumer runs in."""
    return SEPARATE.get(consumer, CONSUMERS)


def run(consumer: str, path: str, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
    """What a consumer computes for the model in a file."""
    return worker_of(consumer).run(path, feeds, command=consumer)
