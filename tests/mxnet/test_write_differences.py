"""Operands of which live MXNet computes something else, or fails, unless written otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.mxnet_live import run_symbol
from testing.onnx_live import model_of, run_model


def write(body: str, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What MXNet computes with the symbol that a model becomes."""
    text, arrays = encode_live(from_ir(tidy(raise_to_ir(decode(model_of(f"g {body}"))))))
    return run_symbol(text, {n.partition(":")[2]: t.load() for n, t in arrays.items()}, feeds)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_powers_of_integers_beyond_float32(dtype: str) -> None:
    body = f"({dtype}[3] x, {dtype}[3] n) => ({dtype}[3] y) {{ y = Pow(x, n) }}"
    feeds = {"x": np.array([19, -7, 46340], dtype), "n": np.array([6, 9, 2], dtype)}
    (got,) = write(body, feeds)
    assert got.tolist() == [19**6, -(7**9), 46340**2]


def test_norms_of_halves_whose_powers_overflow() -> None:
    body = "({}[1,1,1,3] x) => ({}[1,1,1,2] y) {{ y = LpPool<kernel_shape = [1,2], p = 3>(x) }}"
    x = np.float16([[[[-15.6, 65.9, -32.9]]]])
    (expected,) = run_model(
        model_of("g " + body.format("float", "float"), 18), {"x": np.float32(x)}
    )
    (got,) = write(body.format("float16", "float16"), {"x": x})
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, expected, rtol=2e-3)


def test_zero_states_in_a_branch() -> None:
    """MXNet infers no batch there."""
    body = """(bool b, float[3,2,4] x) => (float[1,2,5] y) {
        y = If (b) <
            then_branch = g1 () => (float[1,2,5] p)
                <float[1,5,4] w = {W}, float[1,5,5] r = {R}>
                { all, p = RNN <hidden_size = 5> (x, w, r) },
            else_branch = g2 () => (float[1,2,5] q)
                <float[1,2,5] q0 = {Q}> { q = Identity (q0) } >
    }"""
    for name, size in (("W", 20), ("R", 25), ("Q", 10)):
        numbers = np.random.default_rng(size).normal(size=size).round(3)
        body = body.replace(f"{{{name}}}", "{" + ", ".join(map(str, numbers)) + "}")
    x = np.random.default_rng(1).normal(size=(3, 2, 4)).astype(np.float32)
    (expected,) = run_model(model_of(f"g {body}"), {"b": np.array(True), "x": x})
    (got,) = write(body, {"b": np.ones(1, np.float32), "x": x})
    np.testing.assert_allclose(got, expected, atol=1e-5)
