"""Kernels take integers of the types that they are listed with, and of scales that fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.tflite.from_ir import from_ir
from serde.formats.tflite.passes import quantize
from serde.ir.graph import DType
from testing.onnx_live import PLAIN, ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.litert_live import run_both, why_not
from tests.tflite.quantized_layers import LAYERS, compare, layer_model

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
WITHOUT_UINT8 = {"BATCH_MATMUL", "ELU", "EXP"}


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_of_uint8_where_weights_have_zero_points(
    name, worker, tmp_path: Path, monkeypatch
) -> None:
    operator, has_weights = LAYERS[name][4], bool(LAYERS[name][2])
    if not has_weights:  # as beside a layer that has
        monkeypatch.setattr(quantize, "choose_byte", lambda graph: DType.UINT8)
    model, feeds, step = layer_model(LAYERS[name], "uint8", not has_weights)
    counts = compare(worker, model, feeds, tmp_path, step)
    kind = "int8" if operator in WITHOUT_UINT8 else "uint8"
    assert counts[operator, kind] == 1 and not counts[operator, "float32"]


WEIGHTS = """g (float[2,3] x) => (float[2,4] y) <float s = {0.05}, uint8 o = {120}, ROWS> {
    q = QuantizeLinear(x, s, o) a = DequantizeLinear(q, s, o)
    b = DequantizeLinear(w, t, p) c = MatMul(a, b) d = QuantizeLinear(c, u, o)
    e = DequantizeLinear(d, u, o) f = DequantizeLinear<axis = 1>(v, r, z) h = MatMul(e, f)
    i = QuantizeLinear(h, u, o) y = DequantizeLinear(i, u, o) }"""


@pytest.mark.parametrize(("rows", "profile", "kinds"), [
    ("t = {0.1}, uint8 p = {128}", None, {"INT8"}),
    ("t = {0.1}, uint8 p = {90}", None, {"UINT8", "INT8"}),
    ("t = {0.1}, uint8 p = {90}", "tflite-micro", {"INT8", "FLOAT32"}),
])  # fmt: skip
def test_most_weights_choose_the_type(rows: str, profile: str | None, kinds: set[str]) -> None:
    """Here one layer has a zero point, twice, and another a scale for each channel."""
    own = f"float {rows}, uint8[3,4] w = {{1,2,3,4,5,6,7,8,9,10,11,12}}"
    other = "float u = {0.2}, int8[4,4] v = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, " \
            "float[4] r = {0.1,0.2,0.3,0.4}, int8[4] z = {0,0,0,0}"  # fmt: skip
    body = WEIGHTS.replace("ROWS", f"{own}, {other}")
    twice = body.replace(
        "y = DequantizeLinear(i, u, o)",
        "j = DequantizeLinear(i, u, o) k = Transpose(b) l = MatMul(j, k) m = QuantizeLinear(l, u, o)"
        " y = DequantizeLinear(m, u, o)",
    ).replace("float[2,4] y", "float[2,3] y")
    graph = ir_of(twice)
    layers = [n for n in from_ir(graph, profile=profile).nodes if n.op == "FULLY_CONNECTED"]
    assert {n.outputs[0].type.name for n in layers} == kinds


RAW = {  # what reads integers as such: the result of two tensors, or one
    "joined": "z = Concat<axis = 1>(a, b)",
    "joined, of one scale": "z = Concat<axis = 1>(a, a)",
    "the larger": "z = Max(a, b)",
    "mirrored": 'z = Pad<mode = "reflect">(a, pads)',
    "padded": "z = Pad(a, pads)",
    "compared": "c = Equal(a, b) z = Cast<to = KIND>(c)",
    "a place": "c = ArgMax<axis = 1, keepdims = 1>(a) z = Cast<to = KIND>(c)",
    "chosen": "c = Cast<to = 9>(a) z = Where(c, a, b)",
    "split": "c, z = Split<axis = 1, num_outputs = 2>(a)",
}


@needs_litert
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("name", RAW)
def test_integers_that_are_read_as_such(name: str, kind: str, worker, tmp_path: Path) -> None:
    """Kernels of quantized tensors would compute with the numbers that they stand for."""
    body = RAW[name].replace("KIND", {"int8": "3", "uint8": "2"}[kind])
    graph = ir_of(f"""g (float[2,4] x) => ({kind}[?,?] z)
        <float s = {{0.05}}, float t = {{0.1}}, {kind} o = {{3}}, {kind} p = {{7}},
         int64[4] pads = {{0,1,0,2}}> {{
        a = QuantizeLinear(x, s, o) d = DequantizeLinear(a, s, o) e = Add(d, d)
        b = QuantizeLinear(e, t, p) {body} }}""")
    x = np.random.default_rng(5).uniform(0, 2, (2, 4)).astype(np.float32)
    (expected,) = run_graph(graph, {"x": x}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    assert "QUANTIZE" in from_ir(graph).operators()
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_array_equal(got, expected)


@needs_litert
@pytest.mark.parametrize("lowest", [-128, -100])  # what stands for zero
@pytest.mark.parametrize(("scale", "step"), [(0.05, 0.03), (2e-4, 1.2), (30, 4e-4)])
def test_roots_that_divide_are_of_integers_where_none_is_below_zero(
    scale: float, step: float, lowest: int, worker, tmp_path: Path
) -> None:
    graph = ir_of(f"""g (int8[256] q) => (int8[256] y)
        <float s = {{{scale}}}, int8 o = {{{lowest}}}, float t = {{{step}}}, int8 p = {{-128}},
         float one = {{1.0}}> {{
        x = DequantizeLinear(q, s, o) r = Sqrt(x) d = Div(one, r) y = QuantizeLinear(d, t, p) }}""")
    q = np.arange(-128, 128, dtype=np.int8)
    (expected,) = run_graph(graph, {"q": q}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    is_integer = from_ir(graph).operators() == {"RSQRT"}
    assert is_integer is (lowest == -128)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [q]):
        is_known = q >= lowest  # others have no root
        distance = np.abs(got.astype(int) - expected)[is_known]
        assert distance.max() <= is_integer
