"""Flatbuffers, written and read back, with offsets that lead nowhere."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import onnx
import pytest

import serde
from serde.errors import ConversionError, MalformedFile
from serde.formats.tflite.io.read_flatbuffer import read_model
from serde.formats.tflite.io.schema import enums, tables, unions
from serde.formats.tflite.io.write_flatbuffer import Layout, union_number
from serde.io.atomic_write import Sources
from serde.ir.graph import FileSlice, Tensor
from testing.onnx_live import model_of

DEPRECATED = {
    ("ResizeBilinearOptions", "new_height"),
    ("ResizeBilinearOptions", "new_width"),
    ("SignatureDef", "deprecated_tag"),
}
WEIGHTS = np.arange(6, dtype=np.float32)


def model(tensor):
    code = enums()["BuiltinOperator"]["CONV_2D"]
    options = {"stride_w": 2, "dilation_w_factor": 1}
    operator = {
        "inputs": (0, -1),
        "outputs": (1,),
        "builtin_options_type": union_number("BuiltinOptions", "Conv2DOptions"),
        "builtin_options": ("Conv2DOptions", options),
    }
    tensors = [{"name": "ä", "shape": (2, 3), "has_rank": True}, {"name": "y", "buffer": 1}]
    graph = {"tensors": tensors, "operators": [operator], "inputs": (0,), "outputs": (1,)}
    return {
        "version": 3,
        "operator_codes": [{"deprecated_builtin_code": code, "builtin_code": code}],
        "subgraphs": [graph],
        "buffers": [{}, {"data": tensor}],
    }


def write(tensor):
    out = io.BytesIO()
    with Sources() as sources:
        layout = Layout(b"TFL3", "Model", model(tensor))
        assert layout.write(out, sources) == layout.end
    return out.getvalue()


def test_what_is_written_is_read():
    data = write(Tensor.of(WEIGHTS))
    found = read_model(data, "m")
    (graph,), (_, buffer) = found["subgraphs"], found["buffers"]
    assert graph["tensors"][0] | {"name": "ä", "shape": (2, 3)} == graph["tensors"][0]
    kind, options = graph["operators"][0]["builtin_options"]
    assert (kind, options["stride_w"], options["dilation_w_factor"]) == ("Conv2DOptions", 2, 1)
    start, size = buffer["data"]
    assert np.frombuffer(data[start : start + size], np.float32).tolist() == WEIGHTS.tolist()
    assert data.index(WEIGHTS.tobytes()) % 16 == 0


def test_weights_are_copied_from_their_file(tmp_path):
    (tmp_path / "w").write_bytes(b"....." + WEIGHTS.tobytes())
    where = FileSlice(str(tmp_path / "w"), 5, WEIGHTS.nbytes)
    lazy = Tensor(Tensor.of(WEIGHTS).dtype, WEIGHTS.shape, lambda: pytest.fail("read"), where)
    assert write(lazy) == write(Tensor.of(WEIGHTS))


def test_other_readers_read_it(monkeypatch):
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    found = schema.Model.GetRootAs(write(Tensor.of(WEIGHTS)), 0)
    assert found.Version() == 3 and found.Buffers(1).DataAsNumpy().tobytes() == WEIGHTS.tobytes()
    operator = found.Subgraphs(0).Operators(0)
    assert operator.InputsAsNumpy().tolist() == [0, -1]


def test_the_table_is_that_of_the_runtime():
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    unknown = set()
    for name, fields in tables().items():
        known = {n.lower() for n in dir(getattr(schema, name))}
        unknown |= {(name, f.name) for f in fields if f.name.replace("_", "") not in known}
    assert unknown <= DEPRECATED, unknown
    for name, members in enums().items():
        if hasattr(schema, name):
            ours = {k: v for k, v in members.items() if hasattr(getattr(schema, name), k)}
            assert ours == {k: getattr(getattr(schema, name), k) for k in ours}
    for name in unions():
        for member in unions()[name]:
            assert getattr(getattr(schema, name), member) == union_number(name, member)


def test_damaged_files_are_refused():
    data, drawn = write(Tensor.of(WEIGHTS)), random.Random(1)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(drawn.randrange(1, 4)):
            damaged[drawn.randrange(8, len(data))] = drawn.choice((0, 1, 4, 127, 255))
        try:
            read_model(bytes(damaged), "m")
        except MalformedFile:
            refused += 1
    assert refused > 500
    for end in range(8, len(data), 7):
        with pytest.raises(MalformedFile):
            read_model(data[:end], "m")


def test_offsets_in_a_circle_and_tables_named_twice_are_refused():
    data = bytearray(write(Tensor.of(WEIGHTS)))
    data[:4] = struct.pack("<I", 0)
    with pytest.raises(MalformedFile, match="leads to itself"):
        read_model(bytes(data), "m")
    out = io.BytesIO()
    names = [{"name": "t", "shape": tuple(range(4096))}, *[{}] * 1000]
    with Sources() as sources:
        Layout(b"TFL3", "Model", {"subgraphs": [{"tensors": names}]}).write(out, sources)
    crowded = bytearray(out.getvalue())
    read_model(bytes(crowded), "m")
    graph = follow(crowded, follow(crowded, field(crowded, follow(crowded, 0), 2)) + 4)
    tensors = follow(crowded, field(crowded, graph, 0))
    first = follow(crowded, tensors + 4)
    for at in range(tensors + 4, tensors + 4 + 4 * len(names), 4):
        struct.pack_into("<I", crowded, at, first - at)
    with pytest.raises(MalformedFile, match="tables overlap"):
        read_model(bytes(crowded), "m")


def follow(data, at):
    return at + struct.unpack_from("<I", data, at)[0]


def field(data, table, number):
    vtable = table - struct.unpack_from("<i", data, table)[0]
    return table + struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]


@pytest.mark.parametrize("change", ["a shape", "an attribute"])
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**63])
def test_numbers_beyond_their_fields_are_refused(change, number):
    table = model(Tensor.of(WEIGHTS))
    graph = table["subgraphs"][0]
    if change == "a shape":
        graph["tensors"][0]["shape"] = (2, number)
    else:
        graph["operators"][0]["builtin_options"][1]["stride_w"] = number
    with pytest.raises(ConversionError, match=f"beyond .*{number}.*--static"):
        Layout(b"TFL3", "Model", table).write(io.BytesIO(), Sources())


@pytest.mark.parametrize("nodes", ["y = Relu(x)", "y = Shape(x)", "y = Identity(x)",
                                   "s = Shape(x) z = Relu(x) y = Reshape(z, s)"])  # fmt: skip
@pytest.mark.parametrize("to", ["a.tflite", "a.onnx"])
def test_models_of_sizes_beyond_int32_are_refused(tmp_path, nodes, to):
    kind = "int64[3]" if "Shape(x)" in nodes[:12] and "z" not in nodes else f"float[1,2,{2**31}]"
    text = f"g (float[1,2,{2**31}] x) => ({kind} y) {{ {nodes} }}"
    onnx.save(model_of(text, 17), tmp_path / "m.onnx")
    if to == "a.onnx":
        serde.convert(tmp_path / "m.onnx", tmp_path / to)
        return
    with pytest.raises(serde.SerdeError, match="beyond"):
        serde.convert(tmp_path / "m.onnx", tmp_path / to)
    assert not (tmp_path / to).exists()
