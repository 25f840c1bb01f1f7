"""NonMaxSuppression before there was one."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import nms
from testing.onnx_live import OPTIMIZED, PLAIN, decode_text, model_of, run_at
from testing.version_converter.rules import check_rule, rules_of

BOXES = 30
TEXT = (
    f"g (float[2,{BOXES},4] b, float[2,3,{BOXES}] s) => (int64[k,3] y)"
    " <int64[1] m = {5}, float[1] o = {0.4}, float[1] t = {0.2}>"
    " { y = NonMaxSuppression(b, s, m, o, t) }"
)


@pytest.mark.parametrize(("version", "op"), rules_of(nms))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("opset", [8, 9])
def test_boxes_are_those_of_onnxruntime(opset: int) -> None:
    draws = np.random.default_rng(2)
    sizes = {"b": (2, BOXES, 4), "s": (2, 3, BOXES)}
    feeds = {name: draws.random(size, np.float32) for name, size in sizes.items()}
    (expected,) = run_at(PLAIN, model_of(TEXT, 17, 8), feeds)
    graph = lower_to(raise_to_ir(decode_text(TEXT, 17)), opset)
    (got,) = run_at(OPTIMIZED, to_proto(graph), feeds)
    np.testing.assert_array_equal(got, expected)
    loop = next(n for n in graph.nodes if n.op == "Loop")
    assert loop.outputs[1].ranked_shape[1:] == (2, 3)  # a flag for each turn, not a row of boxes
