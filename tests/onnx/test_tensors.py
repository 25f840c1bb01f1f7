"""Tensors of every type: in raw bytes, in typed fields and in other files."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.errors import MalformedFile
from serde.formats.onnx.external_data_paths import refuse_location
from serde.formats.onnx.reader import read_model
from serde.formats.onnx.tensors import read_tensor
from serde.formats.onnx.writer import tensor_proto, write_model
from serde.ir.graph import DType, Graph, Tensor, Value
from serde.legalize.convert import lower_to, raise_to_ir
from serde.spec.schema import ELEMENT_CODES

NUMBERS = [d for d in DType if d is not DType.STRING]
SHAPES = [(), (1,), (3,), (2, 5), (0,), (3, 0)]


def sample(dtype, shape):
    rng = np.random.default_rng(0)
    if dtype is DType.STRING:
        return np.array(["", "ü", "x" * 300] * 40, object)[: int(np.prod(shape))].reshape(shape)
    if dtype.kind in "fc":
        real = rng.uniform(1, 4, shape) * (1 if "e8m0" in dtype.value else -1)
        return (real + 1j * real if dtype.kind == "c" else real).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype.bits < 3 else 4, shape).astype(dtype.numpy)


def typed_field(array):
    """A TensorProto that holds ``array`` in the field of its type, not as bytes."""
    dtype = DType.of(array.dtype)
    code = ELEMENT_CODES[dtype]
    if dtype is DType.STRING:
        flat = [s.encode() for s in array.ravel()]
    elif dtype.kind == "c" or (dtype.bits >= 8 and dtype.value not in EIGHT_BITS):
        flat = array.ravel()
    else:
        flat = array.ravel().astype(np.float32 if dtype.kind == "f" else np.int32)
    return helper.make_tensor("t", code, array.shape, flat)


EIGHT_BITS = {d.value for d in DType if d.value.startswith(("float8", "bfloat16"))}


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and (
        a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("shape", SHAPES)
def test_raw_bytes_and_typed_fields_hold_the_same(dtype, shape):
    array = sample(dtype, shape)
    protos = [tensor_proto("t", Tensor.of(array)), typed_field(array)]
    if dtype is not DType.STRING:
        assert protos[0].HasField("raw_data") and not protos[1].HasField("raw_data")
    for proto in protos:
        read = read_tensor(proto, "m.onnx", refuse_location)
        assert (read.dtype, read.shape) == (dtype, shape)
        assert equal(read.load(), array)


@pytest.mark.parametrize("dtype", DType)
def test_onnx_reads_what_is_written(dtype):
    array = sample(dtype, (2, 5))
    read = numpy_helper.to_array(tensor_proto("t", Tensor.of(array)))
    assert read.tolist() == array.tolist()


def test_text_that_is_not_utf8_stays_bytes():
    proto = TensorProto(
        name="t", data_type=TensorProto.STRING, dims=[2], string_data=[b"\xff", b"a"]
    )
    read = read_tensor(proto, "m", refuse_location)
    assert read.load().tolist() == [b"\xff", "a"]
    assert list(tensor_proto("t", read).string_data) == [b"\xff", b"a"]


@pytest.mark.parametrize("shape", [(2000,), (40, 50)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_large_initializers_are_written_and_read_as_they_lie(dtype, shape, tmp_path):
    """Inline and beside the model; read again they are where they lie, and nothing in memory."""
    array = sample(dtype, shape)
    for mode in ("never", "always"):
        path = str(tmp_path / f"{mode}.onnx")
        write_model(identity_of(array), path, external_data=mode)
        (value,) = read_model(path).constants()
        large = value.tensor.nbytes > 4096 or (mode == "always" and value.tensor.nbytes >= 1024)
        assert (value.tensor.where is not None) is large
        assert equal(np.asarray(value.array()), array)
        assert onnx.load(path).graph.initializer[0].data_type == ELEMENT_CODES[dtype]


def identity_of(array, opset=25, name="w"):
    """A graph whose only weight is ``array``."""
    from serde.ir.graph import Node

    tensor = Tensor.of(array)
    w = Value(name, tensor.dtype, tensor.shape, tensor)
    y = Value("y", tensor.dtype, tensor.shape)
    return Graph("g", (), (y,), (Node("Identity", (w,), (y,), {}, "", "n"),), opset=opset)


BAD = {
    "an unknown type": (
        {"data_type": 99, "dims": [1], "raw_data": b"1234"},
        "unknown element type 99",
    ),
    "no type": ({"dims": [1], "raw_data": b"1234"}, "unknown element type 0"),
    "a negative size": ({"data_type": 1, "dims": [-1], "raw_data": b"1234"}, "impossible shape"),
    "too many axes": ({"data_type": 1, "dims": [1] * 65, "raw_data": b"1234"}, "impossible shape"),
    "a product beyond memory": ({"data_type": 1, "dims": [2**40, 2**40], "raw_data": b""}, ""),
    "sizes that overflow": ({"data_type": 1, "dims": [2**62, 4, 0], "raw_data": b""}, ""),
    "too few bytes": ({"data_type": 1, "dims": [2], "raw_data": b"1234"}, "holds 4 bytes"),
    "too many bytes": ({"data_type": 1, "dims": [1], "raw_data": b"12345678"}, "holds 8 bytes"),
    "too few numbers": ({"data_type": 1, "dims": [3], "float_data": [1, 2]}, "holds 2 elements"),
    "too many numbers": ({"data_type": 7, "dims": [1], "int64_data": [1, 2]}, "holds 2 elements"),
    "numbers in the wrong field": ({"data_type": 1, "dims": [1], "int64_data": [1]}, ""),
    "half a complex number": (
        {"data_type": 14, "dims": [1], "float_data": [1]},
        "holds 1 elements",
    ),
    "too few packed numbers": (
        {"data_type": 22, "dims": [5], "int32_data": [1]},
        "holds 1 elements",
    ),
    "too few texts": ({"data_type": 8, "dims": [2], "string_data": [b"a"]}, "holds 1 strings"),
    "texts in raw bytes": ({"data_type": 8, "dims": [1], "raw_data": b"a"}, ""),
    "numbers out of range": ({"data_type": 2, "dims": [1], "int32_data": [-1]}, None),
}


@pytest.mark.parametrize(("fields", "why"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_before_it_is_made(fields, why):
    proto = TensorProto(name="t", **fields)
    if why is None:  # reads as something of the right type and shape
        assert read_tensor(proto, "m", refuse_location).load().shape == (1,)
        return
    with pytest.raises(MalformedFile, match=f"^m: tensor 't'.*{why}"):
        read_tensor(proto, "m", refuse_location)


def test_a_damaged_large_initializer_names_its_file(tmp_path):
    model = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    model.graph.name = "g"
    model.graph.initializer.add(name="w", data_type=1, dims=[5000], raw_data=bytes(16000))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(
        MalformedFile, match=r"tensor 'w' of float32\[5000\] holds 16000 bytes, not 20000"
    ):
        read_model(path)


def test_a_value_survives_raising_and_lowering():
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    graph = raise_to_ir(identity_of(array))
    lowered = lower_to(graph, 17)
    assert equal(next(iter(lowered.constants())).array(), array)
