"""Operands of which live TVM computes something else, or fails, unless they are written otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.onnx_live import model_of, run_model
from testing.relay.tvm_live import run

INF, NAN = np.inf, np.nan


def f32(data: Any) -> np.ndarray:
    return np.asarray(data, np.float32)


def i64(data: Any) -> np.ndarray:
    return np.asarray(data, np.int64)


def ones(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


ANGLES = f32([0, np.pi, np.pi / 2, -np.pi, 3 * np.pi, 1, -2, NAN])
CASES: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    "arg_max_of_the_least": (
        "(float[2,1] x, int8[2,2] i) => (int64[2] y, int64[2] z)"
        "{ y = ArgMax<axis = 1, keepdims = 0>(x) z = ArgMax<axis = 1, keepdims = 0>(i) }",
        {"x": f32([[7], [-INF]]), "i": np.int8([[-128, -128], [-128, 3]])},
    ),
    "hardmax_of_the_least": (
        "(float[2,2] x) => (float[2,2] y) { y = Hardmax(x) }",
        {"x": f32([[-INF, -INF], [1, 2]])},
    ),
    "non_zero_nan": (
        "(float[3] x) => (int64[1,K] y) { y = NonZero(x) }", {"x": f32([0, NAN, 2])},
    ),
    "sign_of_unsigned": (
        "(uint8[3] x) => (uint8[3] y) { y = Sign(x) }", {"x": np.uint8([0, 2, 255])},
    ),
    "products_of_nothing": (
        "(float[0] x, float[2,3,0] a, float[4,1,0,2] b, float[3,1] c, float[1,0] d)"
        "=> (float y, float[4,2,3,2] z, float[3,0] w)"
        "{ y = MatMul(x, x) z = MatMul(a, b) w = Gemm(c, d) }",
        {"x": ones(0), "a": ones(2, 3, 0), "b": ones(4, 1, 0, 2), "c": ones(3, 1), "d": ones(1, 0)},
    ),
    "half_constants_in_open_sizes": (
        "(float16[N,2] x) => (float16[N,2] y) { y = Softsign(x) }",
        {"x": np.float16([[1, -2], [0.5, 7]])},
    ),
    "computed_padding_in_open_sizes": (
        "(float[N,2] x, float[1] v, int64[4] p) => (float[N,2] y, float[A,B] z)"
        "{ k = Constant<value = int64[4] {1, 0, -1, 0}>() y = Pad(x, k, v) z = Pad(x, p, v) }",
        {"x": f32([[7, 3], [NAN, 1]]), "v": f32([3]), "p": i64([1, 0, 0, 2])},
    ),
    "half_pads_in_open_sizes": (
        "(float16[N,2] x, uint8[N,2] u) => (float16[M,2] y, uint8[M,2] z)"
        "{ k = Constant<value = int64[4] {1, 0, 0, 0}>() y = Pad(x, k) z = Pad(u, k) }",
        {"x": np.float16([[1, -2]]), "u": np.uint8([[1, 255]])},
    ),
    "largest_half_over_computed_axes": (
        "(float16[2,2] x, int64[1] a) => (float16[A,B] y) { y = ReduceMax(x, a) }",
        {"x": np.float16([[1, -2], [-INF, -INF]]), "a": i64([1])},
    ),
    "slice_from_beyond_the_front": (
        "(float[N] x) => (float[K] y, float[L] z) { s = Constant<value = int64[1] {-3}>()"
        " o = Constant<value = int64[1] {0}>() e = Constant<value = int64[1] {100}>()"
        " y = Slice(x, s, e, o) z = Slice(x, o, s, o) }",
        {"x": f32([7, 8])},
    ),
    "slice_to_nothing": (
        "(int8[1] x, int32[1] e) => (int8[K] y) { s = Constant<value = int32[1] {1}>()"
        " a = Constant<value = int32[1] {0}>() y = Slice(x, s, e, a) }",
        {"x": np.int8([7]), "e": np.int32([-3])},
    ),
    "range_of_fractions": (
        "(float s, float e) => (float[K] y)"
        "{ d = Constant<value = float {0.5}>() y = Range(s, e, d) }",
        {"s": f32(0), "e": f32(2.2)},
    ),
    "range_that_leads_away": (
        "(int32 s, int32 e, int32 d) => (int32[K] y, int32[L] z)"
        "{ y = Range(s, e, d) m = Neg(d) z = Range(s, e, m) }",
        {"s": np.array(1, np.int32), "e": np.array(-8, np.int32), "d": np.array(4, np.int32)},
    ),
    "circles_in_open_sizes": (
        "(float[N] x) => (float[N] y, float[N] z) { y = Sin(x) z = Cos(x) }", {"x": ANGLES},
    ),
    "groups_of_volumes": (
        "(float[1,3,2,2,2] x, float[3,2,1,1,1] w, float[6] b) => (float[1,6,2,2,2] y)"
        "{ y = ConvTranspose<group = 3>(x, w, b) }",
        {"x": ones(1, 3, 2, 2, 2), "w": ones(3, 2, 1, 1, 1), "b": ones(6)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_in_onnx(name: str) -> None:
    body, feeds = CASES[name]
    proto = model_of(f"g {body}")
    module, weights = to_module(from_ir(tidy(raise_to_ir(decode(proto)))))
    actual = run("json", to_json(module), {**feeds, **{n: t.load() for n, t in weights.items()}})
    for got, expected in zip(actual, run_model(proto, feeds), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-3 if got.dtype == "float16" else 1e-5,
                                   atol=1e-6)  # fmt: skip
