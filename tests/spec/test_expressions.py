"""Expressions several formats need: the same numbers with static and with named sizes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType
from serde.passes import tidy
from serde.spec.expressions import lowest_value
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run

F32, I64, F16, BF16 = DType.FLOAT32, DType.INT64, DType.FLOAT16, DType.BFLOAT16
ARRAY = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LIKE = np.zeros((1, 2, 3), np.float32)
CASES = {
    "sizes_of": (lambda g, x, y: g.shape_from(g.sizes_of(x)),
                 lambda x, y: np.array(x.shape)),
    "times": (lambda g, x, y: g.shape_from([g.multiply_sizes(g.sizes_of(x))]),
              lambda x, y: np.array([x.size])),
    "reshape": (lambda g, x, y: g.reshape(x, [g.size_of(x, 2), -1]),
                lambda x, y: x.reshape(4, -1)),
    "slice_axis": (lambda g, x, y: g.slice_axis(x, 1, 1, 3), lambda x, y: x[:, 1:3]),
    "slice_like": (lambda g, x, y: g.slice_like(x, y), lambda x, y: x[:1, :2, :3]),
    "slice_like of axes": (lambda g, x, y: g.slice_like(x, y, axes=(-1,)),
                           lambda x, y: x[:, :, :3]),
    "on_axis": (lambda g, x, y: g.apply_on_axis(x, 1, 2, lambda v: g.CumSum(v, 2)),
                lambda x, y: x.cumsum(1)),
    "on_axis in place": (lambda g, x, y: g.apply_on_axis(x, 1, 1, lambda v: g.CumSum(v, 1)),
                         lambda x, y: x.cumsum(1)),
    "full_like": (lambda g, x, y: g.full_like(x, 3), lambda x, y: np.full_like(x, 3)),
    "full_like of a type": (lambda g, x, y: g.full_like(x, 2, I64),
                            lambda x, y: np.full(x.shape, 2, np.int64)),
    "is_true": (lambda g, x, y: g.is_true(x), lambda x, y: x != 0),
    "cast_like": (lambda g, x, y: g.cast_like(g.is_true(x), x),
                  lambda x, y: (x != 0).astype(np.float32)),
    "scalar": (lambda g, x, y: g.Add(x, g.scalar(0.5, x)),
               lambda x, y: x + np.float32(0.5)),
}  # fmt: skip


@pytest.mark.parametrize(("make", "reference"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("static", [True, False], ids=["static", "named"])
def test_an_idiom_computes_what_numpy_does(make, reference, static):
    g = OnnxBuilder("g")
    x = g.input("x", F32, (2, 3, 4) if static else ("N", "C", "W"))
    y = g.input("y", F32, (1, 2, 3) if static else ("A", "B", "D"))
    graph = tidy(g.build([g.emit_identity(make(g, x, y))]))
    (got,) = run(graph, {"x": ARRAY, "y": LIKE})
    expected = reference(ARRAY, LIKE)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype
    if static:  # what is known needs no shape arithmetic
        assert not {"Shape", "Gather", "Concat"} & {n.op for n in graph.nodes}


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(F32, np.finfo(np.float32).min), (F16, -65504.0), (BF16, -3.3895313892515355e38),
     (I64, -(2**63)), (DType.UINT8, 0)],
)  # fmt: skip
def test_the_lowest_number_of_a_type(dtype, number):
    assert lowest_value(OnnxBuilder("g").input("x", dtype)) == number


def test_truth_values_have_no_lowest():
    with pytest.raises(ConversionError, match="bool has no lowest number"):
        lowest_value(OnnxBuilder("g").input("x", DType.BOOL))
