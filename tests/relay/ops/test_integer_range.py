"""Bounds of integers by the operators before them, and the operators that products become."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from serde.formats.relay.ops.integer_range import as_uint8, find_zero_point, integer_range
from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder


def make_values():
    g = OnnxBuilder("ranges")
    x = g.input("x", DType.UINT8, (2, 3))
    return g, x


def subtract(g, x, number, dtype=DType.INT16):
    return g.Sub(g.cast(x, dtype), g.const(number, dtype))


def test_ranges_follow_casts_sums_and_movement():
    g, x = make_values()
    y = subtract(g, x, 121)
    assert integer_range(g, y) == (-121, 134)
    assert integer_range(g, g.Transpose(g.cast(y, DType.INT32), perm=(1, 0))) == (-121, 134)
    assert integer_range(g, g.Max(y, g.const(-7, DType.INT16))) == (-7, 134)
    padded = g.Pad(g.cast(subtract(g, x, -5), DType.INT32), [1, 0, 0, 0])
    assert integer_range(g, padded) == (0, 260)
    assert integer_range(g, g.Add(y, y)) == (-242, 268)


def test_ranges_end_where_sums_wrap():
    g, x = make_values()
    assert integer_range(g, subtract(g, g.cast(x, DType.INT8), 100, DType.INT8)) == (-128, 127)
    wide = g.input("wide", DType.INT16, (2, 3))
    assert integer_range(g, subtract(g, wide, 30000)) == (-(2**15), 2**15 - 1)


@pytest.mark.parametrize(
    ("number", "zero"), [(0, 0), (128, 128), (100, 100), (139, 139), (255, 255), (-5, None)]
)
def test_zero_points_of_shifted_bytes(number, zero):
    g, x = make_values()
    y = subtract(g, x, number)
    assert find_zero_point(g, y) == zero
    if zero is not None:
        assert as_uint8(g, y, zero) is x


def test_bytes_of_another_shape_are_computed_anew():
    g, x = make_values()
    y = g.Sub(g.cast(x, DType.INT16), g.const(np.full((1, 1, 1), 9, np.int16)))
    bytes_ = as_uint8(g, y, 9)
    assert (bytes_.type, bytes_.shape) == (DType.UINT8, (1, 2, 3))


def test_a_long_chain_is_followed_in_linear_time():
    g, x = make_values()
    y = g.cast(x, DType.INT64)
    for _ in range(60):
        y = g.Add(y, y)
    assert integer_range(g, y) == (-(2**63), 2**63 - 1)
    assert Counter(n.op for n in g.nodes)["Add"] == 60
