"""Write ONNX models as text and run graphs in ONNX Runtime, for tests to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import parser

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.graph import Graph
from serde.opset import lower_to, raise_to_ir

OPSET = 21  # what graphs are run at
DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"


def model_of(body: str, opset: int = OPSET, ir_version: int = 10) -> onnx.ModelProto:
    """The model whose graph ``body`` spells in onnx's own text form: ``g (float[N] x) => …``."""
    return parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>\n{body}')


def decoded(body: str, opset: int = OPSET) -> Graph:
    """The graph ``body`` spells, at its own opset."""
    return decode(model_of(body, opset))


def ir_of(body: str, opset: int = OPSET) -> Graph:
    """The graph ``body`` spells, raised to the IR."""
    return raise_to_ir(decoded(body, opset))


def run(graph: Graph, feeds: Mapping[str, np.ndarray], opset: int = OPSET) -> list[np.ndarray]:
    """What ONNX Runtime computes for an IR graph, lowered to ``opset``."""
    return run_model(to_proto(lower_to(graph, opset)), feeds)


def run_model(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes, its own optimisations left out."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    names = {i.name for i in session.get_inputs()}
    return list(session.run(None, {n: a for n, a in feeds.items() if n in names}))


def error(y: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference in terms of the largest number; infinite for another shape or type."""
    if y.shape != wanted.shape or y.dtype != wanted.dtype or not np.isfinite(y).all():
        return float("inf")
    return float(np.abs(y - wanted).max() / np.abs(wanted).max())
