"""Profiles refuse what their runtimes and compilers lack, by the user's layer, with advice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.errors import Unconvertible, UsageError
from serde.formats.tflite.consumers import CONSUMERS
from serde.formats.tflite.from_ir import from_ir
from serde.formats.tflite.io.schema import enums
from serde.formats.tflite.limits import OPERATORS
from testing.onnx_live import DIGITS, ir_of

WEIGHTS = ", ".join(str(n % 7 - 3) for n in range(108))
QDQ = """g (float[1,3,8,8] x) => (float[1,4,6,6] y)
    <float s = {0.05}, int8 z = {0}, int8[4,3,3,3] w = {WEIGHTS}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
    k = DequantizeLinear(w, s, z) c = Conv(d, k) r = Relu(c)
    o = QuantizeLinear(r, s, z) y = DequantizeLinear(o, s, z)
}""".replace("WEIGHTS", WEIGHTS)
TRANSPOSED = (
    QDQ.replace("c = Conv(d, k) r = Relu(c)", "r = ConvTranspose(d, k)")
    .replace("[4,3,3,3]", "[3,4,3,3]")
    .replace("[1,4,6,6]", "[1,4,10,10]")
)  # fmt: skip
TAKEN = {
    "edgetpu": [QDQ, TRANSPOSED],
    "tflite-micro": [QDQ, TRANSPOSED, "g (float[2,3] x) => (float[2,3] y) { y = Gelu(x) }",
                     """g (float[4,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[4,1,2,4] y)
                     { y = RNN<hidden_size=4>(x, w, r) }"""],
    "litert": [QDQ, "g (float[N,3] x) => (float[N,3] y) { y = Gelu(x) }"],
}  # fmt: skip
REFUSED = {
    ("edgetpu", "g (float[2,3] x) => (float[2,3] y) { y = Tanh(x) }"):
        r"TANH ×1 \('y'\): the Edge TPU computes with int8 only, and 'x' is of float32. Quantize",
    ("edgetpu", QDQ.replace("[1,3,8,8]", "[N,3,8,8]").replace("[1,4,6,6]", "[N,4,6,6]")):
        "the Edge TPU takes no sizes by name",
    ("edgetpu", QDQ.replace("[1,3,8,8]", "[2,3,8,8]").replace("[1,4,6,6]", "[2,4,6,6]")):
        "sizes above 1 along the last three axes only",
    ("edgetpu", QDQ.replace("r = Relu(c)", "e = QuantizeLinear(c, s, z) f = DequantizeLinear(e, s, z)"
                            " r = Elu(f)")): r"ELU ×1 \('r'\): the Edge TPU has no ELU",
    ("edgetpu", QDQ.replace("Conv(d", "Conv<dilations=[1,2]>(d").replace("6,6]", "6,4]")):
        "no CONV_2D with two dilations. Use the same",
    ("tflite-micro", "g (float[2,3] x) => (float[4,3] y) <int64[2] r = {2, 1}> { y = Tile(x, r) }"):
        r"TILE ×1 \('y'\): TFLite Micro has no TILE",
    ("tflite-micro", "g (int64[2,3] x) => (int64[2,3] y) { y = Add(x, x) }"):
        "no ADD of int64",
    ("tflite-micro", "g (float[2,3] x) => (bool[2,3] y) { y = Cast<to=9>(x) }"): "no CAST of bool",
    ("tflite-micro", "g (float[N,3] x) => (float[N,3] y) { y = Neg(x) }"): "no sizes by name",
}  # fmt: skip


@pytest.mark.parametrize("profile", TAKEN)
def test_what_a_profile_has_is_written(profile: str) -> None:
    for body in TAKEN[profile]:
        written = from_ir(ir_of(body), profile=profile)
        assert written.operators() <= OPERATORS.get(profile, written.operators()) | {"DEQUANTIZE"}


@pytest.mark.parametrize(("profile", "body"), REFUSED)
def test_what_a_profile_lacks_is_refused(profile: str, body: str) -> None:
    with pytest.raises(Unconvertible, match=REFUSED[profile, body]):
        from_ir(ir_of(body), profile=profile)


@pytest.mark.parametrize("profile", OPERATORS)
def test_the_operators_of_a_profile_are_those_of_the_schema(profile: str) -> None:
    assert OPERATORS[profile] <= enums()["BuiltinOperator"].keys()
    assert profile in CONSUMERS


def test_weights_of_float16_are_none_of_tflite_micro(tmp_path: Path) -> None:
    """Its DEQUANTIZE takes integers only."""
    weight = onnx.numpy_helper.from_array(np.ones((100, 64), np.float32), "w")
    graph = "g (float[1,100] x) => (float[1,64] y) { y = MatMul(x, w) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 21]> {graph}')
    model.graph.initializer.append(weight)
    with pytest.raises(Unconvertible, match=r"no weights of float16. Leave out"):
        serde.convert(model, tmp_path / "m.tflite", profile="tflite-micro", weights="fp16")
    assert serde.convert(model, tmp_path / "m.tflite", weights="fp16").ok


def test_a_profile_is_of_one_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is for files of TensorFlow Lite: write one"):
        serde.convert(DIGITS, tmp_path / "m.onnx", profile="edgetpu", verify=False)
    with pytest.raises(UsageError, match="is for files of ONNX: write one"):
        serde.convert(DIGITS, tmp_path / "m.tflite", profile="openvino", verify=False,
                      inputs={"data": (1, 1, 8, 8)})  # fmt: skip


def test_a_profile_is_a_target_of_check() -> None:
    found = serde.check(DIGITS, to="edgetpu", inputs={"data": (1, 1, 8, 8)})
    assert not found.ok and "Quantize every layer" in str(found.problems[0].reason)
