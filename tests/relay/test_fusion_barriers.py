"""Kernels of dynamic sizes that computed tensors of no axes take part in, run by live TVM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import serde
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.passes.fusion_barriers import add_fusion_barriers
from serde.ir.graph import DType, Graph, Node, Value
from testing.onnx_live import run_model
from testing.relay import tvm_live

HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[4] x, float[1] v, float s) => (y)'
PLACES = "p = NonZero(x) f = Cast<to=1>(p)"  # float[1, ?]
CASES = {
    "input": "a = Add(v, s) y = Mul(f, a)",
    "result": "t = Sqrt(s) a = Sub(v, t) y = Add(f, a)",
    "chain": "a = Add(v, s) l = Less(a, v) w = Where(l, a, v) y = Mul(w, f)",
    "reduced": "t = ReduceMax<keepdims=0>(x) a = Mul(v, t) b = Neg(a) y = Max(f, b)",
    "between": "a = Add(v, s) b = ReduceSum(a) c = Mul(b, s) y = Div(f, c)",
    "twice": "a = Add(v, s) b = Mul(a, f) c = Concat<axis=0>(b, f) y = Mul(c, a)",
}


@pytest.mark.parametrize("name", CASES)
def test_computed_scalars_beside_dynamic_sizes(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"{HEAD} {{ {PLACES} {CASES[name]} }}")
    onnx.save(model, tmp_path / "m.onnx")
    feeds = {
        "x": np.float32([0, 3, -1, 2]), "v": np.float32([5]), "s": np.array(2, np.float32)
    }  # fmt: skip
    graph = from_ir(serde.load(tmp_path / "m.onnx"))
    path, *params = encode(graph, tmp_path / "m.json")
    assert not params
    (got,) = tvm_live.run(
        "json", Path(path).read_text(), {v.name: feeds[v.name] for v in graph.inputs}
    )
    (expected,) = run_model(model, feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_one_hot_of_a_computed_depth(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> g (int64[5] i, int64[1] d, float[2] v) => (y)'
    model = onnx.parser.parse_model(f"{head} {{ y = OneHot<axis=0>(i, d, v) }}")
    onnx.save(model, tmp_path / "m.onnx")
    feeds = {"i": np.int64([0, -1, 7, 3, -9]), "d": np.int64([4]), "v": np.float32([2, 5])}
    graph = from_ir(serde.load(tmp_path / "m.onnx"))
    path, *_ = encode(graph, tmp_path / "m.json")
    (got,) = tvm_live.run("json", Path(path).read_text(), feeds)
    np.testing.assert_array_equal(got, run_model(model, feeds)[0])


def test_results_of_unknown_shape_are_dynamic() -> None:
    """As in a loop of MXNet that makes a tensor grow."""
    v, wide, full, state, grown = (
        Value(name, DType.FLOAT32, shape)
        for name, shape in (
            ("v", (1,)), ("wide", (1, 1)), ("full", (1, 3)), ("state", (None, 3)), ("grown", None)
        )
    )  # fmt: skip
    nodes = (
        Node("expand_dims", (v,), (wide,), {"axis": 0}),
        Node("broadcast_to", (wide,), (full,), {"shape": (1, 3)}),
        Node("concatenate", (state, full), (grown,)),
    )
    graph = add_fusion_barriers(Graph("g", (v, state), (grown,), nodes))
    stop = "annotation.stop_fusion"
    assert [n.op for n in graph.nodes][:3] == ["expand_dims", stop, "broadcast_to"]
