"""Element types an opset lacks: constants of them, and values between float32 ends."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph, Tensor, Value
from serde.legalize.convert import lower_to, lower_to_target
from serde.legalize.target import Target
from serde.pipeline import load
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.schema import ELEMENT_CODES
from serde.version_converter.element_types import BORN
from testing.node_cases import results

RNG = np.random.default_rng(3)
FLOATS = [
    d for d in BORN if d.kind == "f" and d is not DType.FLOAT8E8M0
]  # what e8m0 holds are powers of two, given as constants
INTEGERS = [d for d in BORN if d.kind in "iu"]


def run_graph(graph: Graph, opset: int, *feeds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a runtime makes of the graph at ``opset``."""
    outcomes = [r for _, r in results(to_proto(lower_to(graph, opset)), feeds)]
    return next(np.asarray(r[0]) for r in outcomes if not isinstance(r, Exception))


def weights(dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Values of every kind that ``dtype`` has."""
    if dtype.kind in "iu":
        bounds = ml_dtypes.iinfo(dtype.numpy)
        return RNG.integers(bounds.min, int(bounds.max) + 1, shape).astype(dtype.numpy)
    if dtype is DType.FLOAT8E8M0:
        return (2.0 ** RNG.integers(-9, 9, shape)).astype(dtype.numpy)
    return RNG.standard_normal(shape).astype(dtype.numpy)


def ties(dtype: DType) -> np.ndarray[Any, Any]:
    """Every value of a float type of few bits, what lies halfway between two, and beside that."""
    if dtype is DType.BFLOAT16:
        every = np.arange(0, 1 << 16, 37, dtype=np.uint16).view(ml_dtypes.bfloat16)
    else:
        every = np.arange(256, dtype=np.uint8)[: 1 << dtype.bits].view(dtype.numpy)
    finite = np.unique(every.astype(np.float32))
    finite = finite[np.isfinite(finite)]
    middle = finite[1:].astype(np.float64) / 2 + finite[:-1].astype(np.float64) / 2
    near = [np.nextafter(middle.astype(np.float32), np.float32(e)) for e in (-np.inf, np.inf)]
    wide = np.float32([1e9, -1e9, 465, 463, 60000, 61440, 6.5, 7, 3.4e38, np.inf, -np.inf, np.nan])
    return np.concatenate([finite, middle.astype(np.float32), *near, wide])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.value)
def test_cast_and_back(dtype: DType, saturate: int) -> None:
    """Rounded as onnx.reference rounds at an opset that has the type."""
    x = ties(dtype)
    g = OnnxBuilder("cast")
    there = g.Cast(g.input("x", DType.FLOAT32, x.shape), to=ELEMENT_CODES[dtype], saturate=saturate)
    graph = g.build([g.Cast(there, to=1)])
    with np.errstate(all="ignore"):
        outputs = dict(results(to_proto(lower_to(graph, 24)), [x]))["onnx.reference"]
    expected = np.asarray(outputs[0])
    if dtype is DType.FLOAT4E2M1:  # has no infinity and is never NaN
        expected, x = expected[:-1], x[:-1]
        graph.inputs[0].shape = x.shape
    for opset in (7, BORN[dtype] - 1):
        np.testing.assert_array_equal(run_graph(graph, opset, x), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.value)
def test_integers_keep_their_low_bits(dtype: DType) -> None:
    x = np.arange(-40, 300, 7).astype(np.int32)
    g = OnnxBuilder("cast")
    there = g.Cast(g.input("x", DType.INT32, x.shape), to=ELEMENT_CODES[dtype])
    graph = g.build([g.Cast(there, to=1)])
    count = 1 << dtype.bits
    half = count // 2 if dtype.kind == "i" else 0
    for opset in (7, 20):
        np.testing.assert_array_equal(run_graph(graph, opset, x), (x + half) % count - half)


def make_product(dtype: DType, block: int, scales: DType = DType.FLOAT32) -> tuple[Graph, Any]:
    """A product with weights held in ``dtype``, by columns or in blocks of rows."""
    w = weights(dtype, (32, 8))
    scale = np.abs(weights(scales, (32 // block, 8) if block else (8,)))
    zero = weights(dtype, scale.shape) if dtype.kind in "iu" else None
    g = OnnxBuilder("product")
    x = g.input("x", DType.FLOAT32, ("N", 32, 8))
    operands = [g.const(Tensor.of(v)) if v is not None else None for v in (w, scale, zero)]
    how = {"axis": 0 if block else 1, "block_size": block}
    kind = 0 if scales is DType.FLOAT32 else 1
    graph = g.build([g.Mul(x, g.DequantizeLinear(*operands, output_dtype=kind, **how))])
    wide, by, zero = (None if v is None else v.astype(np.float32) for v in (w, scale, zero))
    by, zero = (v if v is None or not block else np.repeat(v, block, 0) for v in (by, zero))
    return graph, (wide if zero is None else wide - zero) * by


@pytest.mark.parametrize("block", [0, 8])
@pytest.mark.parametrize(
    "dtype", [d for d in BORN if d not in (DType.FLOAT8E8M0, DType.BFLOAT16)], ids=lambda d: d.value
)
def test_weights(dtype: DType, block: int) -> None:
    """Quantised weights of a language model go to opsets without their type, or without blocks."""
    graph, wide = make_product(dtype, block)
    x = RNG.standard_normal((3, 32, 8)).astype(np.float32)
    for opset in (7, 10, 13, 19, BORN[dtype] - 1):
        np.testing.assert_allclose(run_graph(graph, opset, x), x * wide, rtol=1e-6)


def test_scales_that_are_exponents() -> None:
    """As the microscaling formats have them: blocks of float4 or float8, powers of two as scales."""
    graph, wide = make_product(DType.FLOAT4E2M1, 8, DType.FLOAT8E8M0)
    x = RNG.standard_normal((3, 32, 8)).astype(np.float32)
    for opset in (7, 17, 23):
        np.testing.assert_allclose(run_graph(graph, opset, x), x * wide, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", [DType.INT4, DType.UINT4, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2], ids=lambda d: d.value
)
def test_quantised_on_the_way(dtype: DType) -> None:
    """Activations that are quantised, moved and taken back."""
    g = OnnxBuilder("through")
    x = g.input("x", DType.FLOAT32, (4, 6))
    zero = g.const(Tensor.of(np.zeros((), dtype.numpy)))
    there = g.QuantizeLinear(x, 0.25, zero)
    moved = g.Reshape(g.Transpose(there, perm=(1, 0)), [3, 8])
    graph = g.build([g.DequantizeLinear(moved, 0.25, zero)])
    data = RNG.standard_normal((4, 6)).astype(np.float32) * 3
    expected = run_graph(graph, 21, data)
    for opset in (7, 12, 18):
        np.testing.assert_array_equal(run_graph(graph, opset, data), expected)


def test_half_weights_are_widened() -> None:
    """bfloat16 weights cast to float32, as they are where a model computes in that."""
    w = weights(DType.BFLOAT16, (6, 5))
    g = OnnxBuilder("product")
    x = g.input("x", DType.FLOAT32, ("N", 6))
    graph = g.build([g.MatMul(x, g.Cast(g.const(Tensor.of(w)), to=1))])
    data = RNG.standard_normal((2, 6)).astype(np.float32)
    got = run_graph(graph, 12, data)
    np.testing.assert_allclose(got, data @ w.astype(np.float32), rtol=1e-5, atol=1e-5)


def branch(g: OnnxBuilder, name: str, value: Value) -> Graph:
    inner = g.child(name)
    return inner.build([inner.Identity(value)])


def test_through_branches() -> None:
    """What a branch gives stands for the type it would have."""
    g = OnnxBuilder("choose")
    flag = g.input("flag", DType.BOOL, ())
    held = [g.const(Tensor.of(weights(DType.INT4, (4,)))) for _ in range(2)]
    then, other = (branch(g, f"b{i}", v) for i, v in enumerate(held))
    graph = g.build([g.Cast(g.If(flag, then_branch=then, else_branch=other), to=1)])
    for i, flag_ in enumerate((True, False)):
        got = run_graph(graph, 11, np.array(flag_))
        np.testing.assert_array_equal(got, held[i].array().astype(np.float32))


def test_refused() -> None:
    """Arithmetic that rounds after each operator, and outputs of a type there is not."""
    g = OnnxBuilder("sum")
    x = g.Cast(g.input("x", DType.FLOAT32, (2,)), to=ELEMENT_CODES[DType.BFLOAT16])
    summed = g.build([g.Cast(g.Add(x, x), to=1)])
    with pytest.raises(Unconvertible, match="opset 13 is the lowest with such elements"):
        lower_to(summed, 12)
    assert lower_to(summed, 13).nodes
    g = OnnxBuilder("given")
    x = g.Cast(g.input("x", DType.FLOAT32, (2,)), to=ELEMENT_CODES[DType.BFLOAT16])
    with pytest.raises(Unconvertible, match="no bfloat16 elements; opset 13 is the lowest"):
        lower_to(g.build([x]), 12)


def test_an_exponent_of_an_emulated_type_leaves_the_result_as_it_is():
    """The result of Pow has the type of the base."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 15]> g (float[3] x) => (float[3] z) '
        "<uint32[3] y = {1, 2, 3}> { z = Pow(x, y) }"
    )
    graph = lower_to_target(load(model), Target("toy", emulated=frozenset({DType.UINT32})))
    assert [(n.op, n.outputs[0].dtype) for n in graph.nodes][-1] == ("Pow", DType.FLOAT32)
