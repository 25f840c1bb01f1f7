"""Operators as opsets 1 to 13 spelled them, read, raised, written at opset 17 and run.

What they mean is told by NumPy; where ONNX Runtime still runs the old form, by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from testing.node_cases import results

WRITTEN = 17
RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
C = RNG.standard_normal(3).astype(np.float32)
M = RNG.standard_normal((2, 3)).astype(np.float32)
POSITIVE = np.abs(X) + 1
ONES = np.ones(3, np.float32)


@dataclass(frozen=True)
class Old:
    """One node of an old opset; ``expected`` None asks ONNX Runtime what the old form gives."""

    op: str
    opset: int
    inputs: Sequence[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    outputs: int = 1
    held: Sequence[int] = ()  # inputs that are constants

    @property
    def id(self) -> str:
        return f"{self.op}-{self.opset}-{'-'.join(self.attrs)}"


def column(c: np.ndarray) -> np.ndarray:
    return c.reshape(-1, 1, 1)


def normal(x: np.ndarray, mean: Any = 0, var: Any = 1) -> np.ndarray:
    return (x - mean) / np.sqrt(var + 1e-5)


STATISTICS = (C, ONES, C * 0.5, ONES * 2)
PER_ELEMENT = tuple(RNG.uniform(0.5, 1, X.shape[1:]).astype(np.float32) for _ in range(4))
CASES = [
    Old("Add", 6, (X, C), {"broadcast": 1, "axis": 1}, X + column(C)),
    Old("Add", 6, (X, X[0, 0]), {"broadcast": 1}, X + X[0, 0]),
    Old("Add", 1, (X, X), {"consumed_inputs": [0, 0]}, X + X),
    Old("Sub", 1, (X, C), {"broadcast": 1, "axis": -3}, X - column(C)),
    Old("Mul", 6, (X, X[:, :, 0, 0]), {"broadcast": 1, "axis": 0}, X * X[:, :, :1, :1]),
    Old("Div", 6, (X, POSITIVE), {}, X / POSITIVE),
    Old("Pow", 1, (POSITIVE, C), {"broadcast": 1, "axis": 1}, POSITIVE ** column(C)),
    Old("And", 1, (X > 0, C > 0), {"broadcast": 1, "axis": 1}, (X > 0) & column(C > 0)),
    Old("Greater", 1, (X, C), {"broadcast": 1, "axis": 1}, column(C) < X),
    Old("Equal", 1, (np.int32([[1, 2]]), np.int32([1])), {"broadcast": 1}, [[True, False]]),
    Old("Gemm", 6, (M, M.T, C[:2]), {"broadcast": 1}, M @ M.T + C[:2]),
    Old("Relu", 1, (X,), {"consumed_inputs": [0]}, np.maximum(X, 0)),
    Old("Clip", 1, (X,), {}, X),
    Old("Clip", 1, (X,), {"min": -0.5}, np.maximum(X, -0.5)),
    Old("Clip", 6, (X,), {"min": -0.5, "max": 0.5}, np.clip(X, -0.5, 0.5)),
    Old("Selu", 1, (X,), {}, 1.0507 * np.where(X > 0, X, 1.6732 * (np.exp(X) - 1))),
    Old("PRelu", 6, (X, C), {}, np.where(X < 0, column(C) * X, X)),
    Old("PRelu", 1, (X, C[:1]), {}, np.where(X < 0, C[0] * X, X)),
    Old("Cast", 1, (X,), {"to": "INT32"}, X.astype(np.int32)),
    Old("Cast", 1, (X,), {"to": "DOUBLE"}, X.astype(np.float64)),
    Old("Concat", 1, (X, X), {}, np.concatenate([X, X], 1)),
    Old("Reshape", 1, (X,), {"shape": [0, -1]}, X.reshape(2, -1)),
    Old("Split", 1, (X,), {"axis": 1, "split": [1, 2]}, (X[:, :1], X[:, 1:]), 2),
    Old("Split", 1, (X, np.float32([1, 1])), {"axis": 0}, (X[:1], X[1:]), 2, held=(1,)),
    Old("Split", 2, (X,), {"axis": 2}, (X[:, :, :2], X[:, :, 2:]), 2),
    Old("Tile", 1, (X, np.float32(2), np.float32(1)), {}, np.tile(X, (1, 2, 1, 1)), held=(2,)),
    Old("Pad", 1, (M,), {"paddings": [0, 1, 2, 0], "value": 3.0},
        np.pad(M, [(0, 2), (1, 0)], constant_values=3)),
    Old("Pad", 2, (M,), {"pads": [0, 1, 0, 2], "mode": "edge"},
        np.pad(M, [(0, 0), (1, 2)], "edge")),
    Old("Slice", 1, (X,), {"starts": [1, 0], "ends": [3, -1], "axes": [1, 3]}, X[:, 1:3, :, :-1]),
    Old("Slice", 1, (M,), {"starts": [0, 1], "ends": [1, 1000]}, M[:1, 1:]),
    Old("Squeeze", 1, (M[None],), {"axes": [0]}, M),
    Old("Unsqueeze", 1, (M,), {"axes": [0, 2]}, M[None, :, None]),
    Old("TopK", 1, (M,), {"k": 2, "axis": 1}, None, 2),
    Old("ReduceSum", 1, (X,), {"axes": [1, 2], "keepdims": 0}, X.sum((1, 2))),
    Old("ReduceMax", 1, (X,), {}, X.max(keepdims=True)),
    Old("ReduceLogSumExp", 1, (X,), {"axes": [-1]}, np.log(np.exp(X).sum(-1, keepdims=True))),
    Old("Softmax", 1, (X,), {"axis": 1}, None),
    Old("LogSoftmax", 11, (X,), {"axis": 2}, None),
    Old("Hardmax", 1, (M,), {}, np.eye(3, dtype=np.float32)[M.argmax(1)]),
    Old("BatchNormalization", 1, (X, *STATISTICS), {"consumed_inputs": [0] * 5, "is_test": 1},
        column(C) * normal(X, column(C * 0.5), 2) + 1),
    Old("BatchNormalization", 6, (X, *STATISTICS), {"is_test": 1, "momentum": 0.5},
        column(C) * normal(X, column(C * 0.5), 2) + 1),
    Old("BatchNormalization", 7, (X, *PER_ELEMENT), {"spatial": 0},
        PER_ELEMENT[0] * normal(X, PER_ELEMENT[2], PER_ELEMENT[3]) + PER_ELEMENT[1]),
    Old("BatchNormalization", 9, (X, *STATISTICS), {"momentum": 0.75},
        (column(C) * normal(X, X.mean((0, 2, 3), keepdims=True), X.var((0, 2, 3), keepdims=True))
         + 1, C * 0.375 + X.mean((0, 2, 3)) * 0.25, ONES * 1.5 + X.var((0, 2, 3)) * 0.25), 3),
    Old("InstanceNormalization", 1, (X, C, ONES), {"consumed_inputs": [0], "epsilon": 1e-5},
        column(C) * normal(X, X.mean((2, 3), keepdims=True), X.var((2, 3), keepdims=True)) + 1),
    Old("Dropout", 1, (X,), {"is_test": 1}, X),
    Old("Dropout", 7, (X,), {"ratio": 0.3}, X),
    Old("Dropout", 7, (X,), {}, (X, np.ones_like(X)), 2),
    Old("Dropout", 10, (X,), {}, (X, np.ones(X.shape, bool)), 2),
    Old("MaxPool", 1, (X,), {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, None),
    Old("AveragePool", 1, (X,), {"kernel_shape": [2, 2], "strides": [2, 2]}, None),
    Old("AveragePool", 7, (X,), {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"}, None),
    Old("AveragePool", 10, (X,), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, None),
    Old("LpPool", 1, (X,), {"kernel_shape": [2, 2], "p": 2.0},
        np.sqrt(sum(X[:, :, i:3 + i, j:4 + j] ** 2 for i in (0, 1) for j in (0, 1)))),
    Old("GlobalLpPool", 1, (X,), {"p": 1.0}, np.abs(X).sum((2, 3), keepdims=True)),
    Old("Upsample", 1, (X,), {"height_scale": 2.0, "width_scale": 3.0},
        X.repeat(2, 2).repeat(3, 3)),
    Old("Upsample", 7, (X,), {"scales": [1.0, 1.0, 1.5, 2.0]}, None),
    Old("Upsample", 7, (X,), {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, None),
    Old("Upsample", 9, (X, np.float32([1, 1, 2, 2])), {"mode": "linear"}, None),
    Old("Resize", 10, (X, np.float32([1, 1, 2, 2])), {"mode": "nearest"}, None),
    Old("Resize", 10, (X, np.float32([1, 1, 2, 0.6])), {"mode": "linear"}, None),
    Old("Resize", 11, (X, np.float32([]), np.float32([1, 1, 2, 2])),
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}, None),
    Old("Scatter", 9, (M, np.int64([[1, 0, 1]]), M[:1] * 2), {"axis": 0}, None),
    Old("OneHot", 9, (np.int64([1, 0]), np.int64(3), np.float32([2, 5])), {},
        np.float32([[2, 5, 2], [5, 2, 2]])),
    Old("Sum", 1, (X, X, X), {"consumed_inputs": [0, 0, 0]}, 3 * X),
    Old("Max", 6, (X, POSITIVE), {}, np.maximum(X, POSITIVE)),
    Old("Erf", 9, (X,), {}, None),
    Old("Mod", 10, (np.int64([5, -5]), np.int64([3, 3])), {}, np.int64([2, 1])),
    Old("DepthToSpace", 1, (X[:, [0, 1, 2, 0]],), {"blocksize": 2}, None),
    Old("RoiAlign", 10, (X, np.float32([[0, 0, 3, 3]]), np.int64([1])),
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, None),
]  # fmt: skip


def model_of(case: Old) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """The model of one node, and what to feed it."""
    values = [np.asarray(v) for v in case.inputs]
    names, outputs = [f"i{n}" for n in range(len(values))], [f"o{n}" for n in range(case.outputs)]
    fed = [n for n in range(len(values)) if n not in case.held]
    graph = helper.make_graph(
        [helper.make_node(case.op, names, outputs, **case.attrs)],
        "old",
        [helper.make_tensor_value_info(
            names[n], helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape
        ) for n in fed],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(values[n], names[n]) for n in case.held],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", case.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=4), [values[n] for n in fed]


def run(model: onnx.ModelProto, feeds: list[np.ndarray]) -> list[Any]:
    """What ONNX Runtime gives."""
    got = dict(results(model, feeds))["ONNX Runtime"]
    if isinstance(got, Exception):
        raise got
    return list(got)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_old_form(case: Old) -> None:
    model, feeds = model_of(case)
    got = run(to_proto(lower_to(raise_to_ir(decode(model)), WRITTEN)), feeds)
    expected = case.expected
    if expected is None:
        for output, value in zip(model.graph.output, got, strict=True):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            output.type.CopyFrom(helper.make_tensor_type_proto(kind, None))
        model.opset_import[0].version = max(7, case.opset)
        expected = run(model, feeds)
    for a, b in zip(expected if (isinstance(expected, (tuple, list)) and case.outputs > 1) or
                    case.expected is None else [expected], got, strict=True):  # fmt: skip
        assert np.shape(a) == b.shape
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


RECURRENT = [
    ("RNN", 1, {}), ("RNN", 1, {"output_sequence": 1}), ("LSTM", 1, {"direction": "reverse"}),
    ("GRU", 3, {"linear_before_reset": 1}), ("GRU", 1, {"direction": "foward"}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "opset", "attrs"), RECURRENT)
def test_recurrent(op: str, opset: int, attrs: dict[str, Any]) -> None:
    """The same as opset 7 gives, of which only ``output_sequence`` is gone."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    x, w, r = (RNG.standard_normal(s).astype(np.float32) * 0.5
               for s in ((4, 2, 3), (1, gates * 5, 3), (1, gates * 5, 5)))  # fmt: skip
    old = Old(op, opset, (x, w, r), {"hidden_size": 5, **attrs}, outputs=2)
    kept = {n: v for n, v in attrs.items() if n != "output_sequence" and v != "foward"}
    new = Old(op, 7, (x, w, r), {"hidden_size": 5, **kept}, outputs=2)
    model, feeds = model_of(old)
    got = run(to_proto(lower_to(raise_to_ir(decode(model)), WRITTEN)), feeds)
    plain, _ = model_of(new)
    for output in plain.graph.output:
        output.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    for a, b in zip(run(plain, feeds), got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


FLAT = [(op, v, a) for op in ("Softmax", "LogSoftmax", "Hardmax") for v, a in (
    (7, 0), (7, 1), (7, 2), (11, 1), (11, -1), (11, -2), (13, -1))]  # fmt: skip


@pytest.mark.parametrize("written", [7, 11, 13, WRITTEN])
@pytest.mark.parametrize(("op", "opset", "axis"), FLAT)
def test_normalized_at_an_unknown_rank(op: str, opset: int, axis: int, written: int) -> None:
    """No rank is needed to take all axes from one on as one, nor for the last axis."""
    model, _ = model_of(Old(op, opset, (X[0],), {"axis": axis}))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    got = run(to_proto(lower_to(raise_to_ir(decode(model)), written)), [X[0]])
    for a, b in zip(run(model, [X[0]]), got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("case", "reason"), [
    (Old("ReduceSum", 19, (X,), {"axes": [0]}),
     r"ReduceSum has no axes=\(0,\) at opset 19; opset 12 is the last that has it"),
    (Old("Squeeze", 13, (M[None],), {"axes": [0]}), "at opset 13; opset 12 is the last"),
    (Old("Pad", 11, (M, np.int64([0, 0, 0, 0])), {"pads": [1, 1, 1, 1]}), "opset 10 is the last"),
])  # fmt: skip
def test_attribute_of_another_opset(case: Old, reason: str) -> None:
    model, _ = model_of(case)
    with pytest.raises(SerdeError, match=reason):
        raise_to_ir(decode(model))


WITHDRAWN = "ATen GivenTensorFill GRUUnit"


@pytest.mark.parametrize("op", WITHDRAWN.split())
def test_withdrawn_operator_is_refused(op: str) -> None:
    """Experiments of the first opsets that the standard no longer describes."""
    model, _ = model_of(Old(op, 5, (X,)))
    with pytest.raises(SerdeError, match=op):
        raise_to_ir(decode(model))


REFUSED = [
    (Old("LpPool", 1, (X,), {"kernel_shape": [2, 2], "p": 2.5}), "order 2.5"),
    (Old("Cast", 1, (X,), {"to": "FLOATS"}), "no element type"),
    (Old("Tile", 1, (X, np.float32(2), np.float32(1))), "must be constant below opset"),
    (Old("BatchNormalization", 9, (X, *STATISTICS), outputs=5), "saved mean"),
    (Old("BatchNormalization", 7, (X, *PER_ELEMENT), {"spatial": 0}, outputs=3), "spatial=0"),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED, ids=lambda v: getattr(v, "id", ""))
def test_refusal(case: Old, reason: str) -> None:
    with pytest.raises(SerdeError, match=reason):
        raise_to_ir(decode(model_of(case)[0]))
