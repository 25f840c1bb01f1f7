"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.errors import MissingDependency, SerdeError
from serde.graph import Graph
from serde.plugins import Bridge

INSTALL = "ONNX Runtime is needed to run ONNX models: pip install 'serde-hub[verify]'"


def decode(model: Any, params: Any = None, **options: Any) -> Graph:
    """Read a live ModelProto."""
    from serde.formats.onnx.reader import decode as decode_model

    return decode_model(model)


def run(
    source: Any, feeds: Mapping[str, np.ndarray[Any, Any]], *, outputs: Any = None, **options: Any
) -> list[np.ndarray[Any, Any]]:
    """What ONNX Runtime computes for a model file or ModelProto.

    Raises:
        MissingDependency: without ONNX Runtime. SerdeError: where it refuses the model.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependency(INSTALL) from error
    is_path = isinstance(source, (str, os.PathLike))
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            os.fspath(source) if is_path else source.SerializeToString(),
            settings,
            providers=["CPUExecutionProvider"],
        )
        wanted = {i.name for i in session.get_inputs()}
        return list(session.run(outputs, {n: a for n, a in feeds.items() if n in wanted}))
    except Exception as error:  # its exceptions have no common base but this
        raise SerdeError(f"ONNX Runtime refuses the model: {error}") from error


BRIDGE = Bridge("onnx", ("onnx",), "onnx", decode, run)
