"""Quantized tensors and integer products at older opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import quantization
from testing.onnx_live import model_of, run_model
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, Single

RNG = np.random.default_rng(17)


@pytest.mark.parametrize(("version", "op"), rules_of(quantization))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize(
    ("dtype", "opset", "targets"),
    [("uint8", 19, (13, 17)), ("int8", 21, (13, 17)), ("int16", 21, (21,)), ("uint16", 23, (21,))],
)
def test_integers_saturate_whatever_the_attribute_says(
    dtype: str, opset: int, targets: tuple[int, ...]
) -> None:  # fmt: skip
    x = (RNG.standard_normal((2, 3)) * 1e6).astype(np.float32)
    operands = (x, np.float32([0.5, 2, 1]), np.array([1, 2, 3], dtype))
    case = Single("QuantizeLinear", operands, {"axis": 1, "saturate": 0}, (1, 2), opset=opset)
    case.check(targets, [STATIC])


@pytest.mark.parametrize("channels", [2, 30, 300, 2000])
def test_sums_of_an_integer_convolution_are_exact_in_float32(channels):
    """ONNX Runtime has no convolution of float64."""
    rng = np.random.default_rng(0)
    model = model_of(f"""g (uint8[1,{channels},4,4] x) => (int32[1,2,4,4] y)
        <uint8 e = {{255}}, int8 z = {{-128}}> {{
        y = ConvInteger<pads = [1, 1, 1, 1]>(x, w, e, z) }}""")
    w = rng.choice(np.array([-128, 3, 126, 127], np.int8), (2, channels, 3, 3))
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    done = to_proto(from_ir(raise_to_ir(decode(model)), 9))
    for x in (np.zeros((1, channels, 4, 4), np.uint8), rng.integers(0, 256, (1, channels, 4, 4))):
        feeds = {"x": x.astype(np.uint8)}
        np.testing.assert_array_equal(run_model(done, feeds)[0], run_model(model, feeds)[0])


def test_codes_of_an_element_type_to_come_are_refused() -> None:
    x = np.float32([1, 2])
    case = Single("QuantizeLinear", (x, np.float32(1)), {"output_dtype": 22}, (1,))
    ir = raise_to_ir(decode(case.model(STATIC)))
    assert lower_to(ir, 21).nodes
    with pytest.raises(Unconvertible, match="opset 21 is the lowest"):
        lower_to(ir, 20)
