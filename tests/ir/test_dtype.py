"""Element types: their names, sizes and kinds."""

from random import Random

import ml_dtypes
import numpy as np
import onnx
import pytest

import serde
from serde.errors import ConversionError, UsageError
from serde.ir.dtype import BYTES, DType
from testing.onnx_live import model_of


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.value)
def test_each_type_is_found_by_its_name_and_by_numpys(dtype):
    assert DType.of(dtype.value) is dtype
    assert DType.of(dtype.numpy) is dtype


@pytest.mark.parametrize(
    "name, bits, kind",
    [("float16", 16, "f"), ("bfloat16", 16, "f"), ("int4", 4, "i"), ("uint2", 2, "u"),
     ("bool", 8, "b"), ("complex64", 64, "c"), ("object", 0, "S"), ("float4_e2m1fn", 4, "f")],
)  # fmt: skip
def test_sizes_and_kinds(name, bits, kind):
    dtype = DType.of(name)
    assert (dtype.bits, dtype.kind) == (bits, kind)


def test_byte_order_and_width_of_strings_do_not_matter():
    assert DType.of(">f4") is DType.FLOAT32
    assert DType.of("<U7") is DType.STRING
    assert DType.of(np.dtype(ml_dtypes.bfloat16)) is DType.BFLOAT16


def test_strings_are_called_so_wherever_a_type_is_shown(tmp_path):
    """NumPy holds them as objects; users give either name."""
    assert DType.of("string") is DType("string") is DType.of("object") is DType.STRING
    assert {d: d.title for d in DType if d.title != d.value} == {DType.STRING: "string"}
    model = model_of("g (string[N,2] x) => (string[N,2] y) { y = Identity(x) }", 17)
    onnx.save(model, tmp_path / "m.onnx")
    graph = serde.load(tmp_path / "m.onnx", inputs={"x": ((1, 2), "string")})
    report = serde.convert(graph, tmp_path / "n.onnx", verify=True)
    assert report.inputs[0]["dtype"] == report.verification.outputs[0].dtype == "string"
    assert repr(graph.inputs[0]) == "<Value x: string[1,2]>" and "string[1,2]" in str(graph)
    with pytest.raises(UsageError, match="'x' is string, and not float32"):
        serde.run(tmp_path / "m.onnx", {"x": np.zeros((1, 2), "f")})


def test_what_is_no_type_is_refused():
    with pytest.raises(ConversionError, match="float7"):
        DType.of("float7")


@pytest.mark.parametrize("seed", range(20))
def test_no_text_is_parsed_as_more_than_a_name(seed):
    pieces = ["f4", "(1,)", "(", ")", ",", "[", "}", "<", ":", "1" * 4400, "e", " ", "U", "²", "\0"]
    for text in ("".join(choices) for choices in _draw(seed, pieces)):
        try:
            DType.of(text)
        except ConversionError as error:
            assert len(str(error)) < 400


def _draw(seed, pieces):
    random = Random(seed)
    return [random.choices(pieces, k=random.randint(1, 4)) for _ in range(200)]


def test_bytes_are_the_integers_of_eight_bits():
    assert {d for d in DType if d.kind in "iu" and d.bits == 8} == BYTES
