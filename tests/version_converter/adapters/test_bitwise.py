"""BitCast and BitShift at opsets without them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to
from serde.version_converter.adapters import bitwise
from testing.node_cases import results
from testing.onnx_live import ir_of
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

WIDTHS = (8, 16, 32, 64)


@pytest.mark.parametrize(("version", "op"), rules_of(bitwise))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("signs", ["iu", "ui", "ii"])
@pytest.mark.parametrize("width", WIDTHS)
def test_integers(width: int, signs: str) -> None:
    old, new = (np.dtype(f"{s}{width // 8}") for s in signs)
    most, least = np.iinfo(old).max, np.iinfo(old).min
    x = np.array([[least, most, 0], [1, most // 2 + 1, most // 2]], old)
    case = Single("BitCast", (x,), {"to": helper.np_dtype_to_tensor_dtype(new)}, tolerance=0)
    case.check((7, 18, 25), [UNKNOWN])


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [2, 4])
def test_integers_within_bytes(bits: int, signed: bool) -> None:
    """Carried in wider types where the opset has none so narrow."""
    codes = {(2, True): 26, (2, False): 25, (4, True): 22, (4, False): 21}
    half = 1 << (bits - 1)
    x = np.arange(-half, half) if signed else np.arange(2 * half)
    expected = x % (2 * half) if signed else (x + half) % (2 * half) - half
    graph = ir_of(
        f"g (float[N] x) => (float[M] y) {{ a = Cast<to = {codes[bits, signed]}>(x)"
        f" b = BitCast<to = {codes[bits, not signed]}>(a) y = Cast<to = 1>(b) }}", 26,
    )  # fmt: skip
    for opset in (7, 12, 18, 20):
        proto = to_proto(lower_to(graph, opset))
        ((_, got), *_) = results(proto, [x.astype(np.float32)])
        np.testing.assert_array_equal(got[0], expected, err_msg=f"at {opset}")


@pytest.mark.parametrize(("old", "new"), [(np.float32, np.int32), (np.uint16, np.float16)])
def test_floats_are_refused(old: type, new: type) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(new))
    with pytest.raises(Unconvertible, match="NaNs differ in bits.*opset 26 is the lowest"):
        Single("BitCast", (np.zeros(3, old),), {"to": to}).at(25, STATIC)


@pytest.mark.parametrize(("shift", "count"), [(3, 1), (30, 1), (31, 2), (40, 2)])
def test_shifts_by_constants_divide_once_where_one_power_has_room(shift: int, count: int) -> None:
    graph = ir_of(
        f"g (int32[3] x) => (int32[3] y) {{ n = Constant<value_int = {shift}>() "
        'k = Cast<to = 6>(n) y = BitShift<direction = "RIGHT">(x, k) }', 28,
    )  # fmt: skip
    proto = to_proto(lower_to(graph, 17))
    assert [n.op_type for n in proto.graph.node].count("Div") == count
    x = np.array([-(2**31), -5, 2**31 - 1], np.int32)
    ((_, got), *_) = results(proto, [x])
    np.testing.assert_array_equal(got[0], x.astype(np.int64) >> shift)
