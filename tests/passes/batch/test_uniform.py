"""Axes along which values have equal numbers: those that NumPy finds."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType, Node, Tensor, Value
from serde.passes.batch.uniform import find_uniform_axes, is_uniform
from testing.onnx_live import run_model
from tests.passes.batches import model_with

CASES = {
    "zeros": "y = ConstantOfShape(s)",
    "repeated": "y = Expand(t, s)",
    "more axes": "u = Exp(w) y = Expand(u, s)",
    "an element": "u = Expand(t, s) y = Add(u, w)",
    "another place": "u = Expand(t, s) y = Transpose<perm=[1,2,0]>(u)",
    "a sum": "u = Expand(t, s) y = ReduceSum<keepdims=1>(u, one)",
    "a softmax": "u = Expand(t, s) y = Softmax<axis=0>(u)",
    "a product": "u = Expand(t, s) y = MatMul(u, m)",
    "sums": "u = Expand(t, s) y = CumSum(u, z)",
    "other numbers": "u = Expand(t, s) y = Mul(u, v)",
}


@pytest.mark.parametrize("operators", CASES.values(), ids=CASES)
def test_uniform_axes(operators):
    constants = {
        "s": [3, 4, 5],
        "t": (1, 4, 5),
        "w": (5,),
        "v": (3, 1, 5),
        "m": (5, 2),
        "one": [1],
        "z": 0,
    }
    model = model_with(f"(float[1] x) => (float[A,B,C] y) {{ {operators} }}", **constants)
    (result,) = run_model(model, {"x": np.ones(1, np.float32)})
    graph = onnx_graph(model)
    known = {}
    for node in graph:
        known[node.outputs[0]] = find_uniform_axes(node, known)
    y = graph[-1].outputs[0]
    equal = {
        a
        for a in range(3)
        if np.array_equal(result, np.broadcast_to(result.take([0], a), result.shape))
    }
    found = {a for a in range(3) if is_uniform(y, a, known)}
    assert found <= equal
    assert (0 in found or 2 in found) == bool(equal & {0, 2}) or "Softmax" in operators


def onnx_graph(model) -> list[Node]:
    """The nodes as they are, without any folded, of types that onnx infers."""
    import onnx
    from onnx import numpy_helper

    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = {
        t.name: Value(t.name, DType.of(a.dtype), a.shape, Tensor.of(a))
        for t in inferred.initializer
        for a in [numpy_helper.to_array(t)]
    }
    for v in (*inferred.value_info, *inferred.output):
        shape = tuple(d.dim_value for d in v.type.tensor_type.shape.dim)
        values.setdefault(v.name, Value(v.name, DType.FLOAT32, shape))
    return [
        Node(n.op_type, tuple(values[i] for i in n.input), tuple(values[o] for o in n.output),
             {a.name: _plain(onnx.helper.get_attribute_value(a)) for a in n.attribute})
        for n in inferred.node
    ]  # fmt: skip


def _plain(value):
    return tuple(value) if isinstance(value, list) else value
