"""Write ONNX models as text and run graphs in ONNX Runtime, for tests to compare with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import raise_to_ir

OPSET = 21  # what graphs are run at
OPTIMIZED, PLAIN = "with ONNX Runtime's optimizers", "without its optimizers"
LEVELS = {  # as users run models, and what they say
    OPTIMIZED: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    PLAIN: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
WRONG = "ONNX Runtime's optimizers change the result"
Model = onnx.ModelProto | bytes | Path
DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"


def model_of(body: str, opset: int = OPSET, ir_version: int = 10) -> onnx.ModelProto:
    """The model whose graph ``body`` spells in onnx's own text form: ``g (float[N] x) => …``."""
    return parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>\n{body}')


def save_model(path: Path, body: str, opset: int = 17) -> str:
    """Write the model whose graph ``body`` spells; its path as users give it."""
    onnx.save(model_of(body, opset, 8), path)
    return str(path)


def decode_text(body: str, opset: int = OPSET) -> Graph:
    """The graph ``body`` spells, at its own opset."""
    return decode(model_of(body, opset))


def ir_of(body: str, opset: int = OPSET) -> Graph:
    """The graph ``body`` spells, raised to the IR."""
    return raise_to_ir(decode_text(body, opset))


def run(
    graph: Graph, feeds: Mapping[str, np.ndarray], opset: int = OPSET, level: str = ""
) -> list[np.ndarray]:
    """What ONNX Runtime computes for an IR graph, written at ``opset``, at a level or at all.

    Of quantized layers it is ``PLAIN`` that computes right everywhere: on processors without VNNI
    sums in fused kernels of uint8 by int8 saturate.
    """
    model = to_proto(from_ir(graph, opset))
    return run_at(level, model, feeds) if level else run_model(model, feeds)


@cache
def sums_saturate() -> bool:
    """Whether ONNX Runtime's sums of products of uint8 and int8 saturate at 16 bits here.

    They do on processors without VNNI: what it computes of quantized layers is wrong there.
    """
    body = "g (uint8[1,2] a, int8[2,1] b) => (int32[1,1] y) { y = MatMulInteger(a, b) }"
    feeds = {"a": np.full((1, 2), 255, np.uint8), "b": np.full((2, 1), 127, np.int8)}
    return bool(run_at(PLAIN, model_of(body), feeds)[0] != 2 * 255 * 127)


def run_model(model: Model, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes as users run it, which must be what it computes unoptimized."""
    optimized, plain = (run_at(level, model, feeds) for level in LEVELS)
    assert_agree(optimized, plain)
    return optimized


def run_at(level: str, model: Model, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime computes at one of ``LEVELS``; feeds that the model lacks are left out."""
    session = session_of(model, level)
    names = {i.name for i in session.get_inputs()}
    return list(session.run(None, {n: a for n, a in feeds.items() if n in names}))


def session_of(model: Model, level: str = OPTIMIZED) -> onnxruntime.InferenceSession:
    """A session of one thread for a model, its bytes or its path."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.graph_optimization_level = LEVELS[level]
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    source = os.fspath(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"])


def assert_agree(optimized: Sequence[Any], plain: Sequence[Any]) -> None:
    """Assert that ONNX Runtime's optimizers changed no more than the last digits of floats."""
    for a, b in zip(optimized, plain, strict=True):
        if not isinstance(b, np.ndarray) or b.dtype.kind not in "fc":
            np.testing.assert_equal(a, b, WRONG)
            continue
        finite = np.abs(b[np.isfinite(b)], dtype=np.float64)
        digits = 1e-2 if b.dtype == np.float16 else 1e-4
        atol = digits * finite.max(initial=0)
        np.testing.assert_allclose(a, b, digits, atol, equal_nan=True, err_msg=WRONG)


def error(y: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in terms of the largest number; infinite for another shape or type."""
    if y.shape != expected.shape or y.dtype != expected.dtype or not np.isfinite(y).all():
        return float("inf")
    if y.dtype == bool:
        return float((y != expected).any())
    return float(np.abs(y - expected).max() / np.abs(expected).max())
