"""The JSON form: TVM's releases, wrong tables, and that reading is bounded."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from serde.errors import ConversionError, MalformedFile
from serde.formats.relay import ast
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.ndarray import to_base64
from serde.formats.relay.text.parser import parse_text
from serde.ir.graph import DType, Tensor
from testing.cpu_limit import limit_cpu
from testing.relay.compare import difference
from tests.relay.written import downgrade, node, string, table

DATA = Path(__file__).with_name("data")
FLOAT = node("relay.TensorType", dtype="float32", shape=0, span=0)
EMPTY = node("relay.Tuple", fields=0)
MANY = 10_000


def blob(array):
    return "".join(to_base64(Tensor.of(array)))


ONE = blob(np.float32(1))


@pytest.mark.parametrize("release", [(0, 6), (0, 7), (0, 8), (0, 9), (0, 15), (0, 19)])
@pytest.mark.parametrize(
    "name",
    ["adt-own", "fn-polymorphic", "dyn-batch-conv", "cf-while-const", "op-conv2d-full-attrs"],
)
def test_releases(name, release):
    text = (DATA / f"{name}.json").read_text()
    old = parse_json(downgrade(text, release), name)
    assert old.tvm.startswith(f"0.{release[1]}")
    assert difference(parse_json(text), old) is None


def call(op, *attrs, tvm):
    """A module that calls ``op`` with attributes given as a node, and what that refers to."""
    return table(
        node("relay.Call", op=2, args=0, attrs=3, type_args=0, span=0, _checked_type_=0),
        {"type_key": "Op", "repr_str": op}, *attrs, tvm=tvm,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tvm", "op", "attrs", "expected"),
    [
        # a text in place, before it became an object
        ("0.8.0", "take", [node("relay.attrs.TakeAttrs", axis=0, mode="wrap")],
         {"mode": "wrap"}),
        ("0.9.0", "take", [node("relay.attrs.TakeAttrs", axis=0, mode=4),
                           string("wrap")], {"mode": "wrap"}),
        # a number in place, before it became an object
        ("0.6.0", "topk", [node("relay.attrs.TopkAttrs", k=1, axis=-1, ret_type="both",
                                is_ascend=0, dtype="int32")], {"k": 1, "dtype": "int32"}),
        ("0.7.0", "topk", [node("relay.attrs.TopkAttrs", k=4, axis=-1, ret_type="both",
                                is_ascend=1, dtype="int32"),
                           node("IntImm", dtype="int32", value=7)],
         {"k": 7, "is_ascend": True, "dtype": "int32"}),
        # attributes that are operands since, and types that are no more
        ("0.7.0", "nn.pad", [node("relay.attrs.PadAttrs", pad_width=4, pad_value=1.5,
                                  pad_mode="edge"), node("Array")],
         {"pad_width": (), "pad_mode": "edge", "pad_value": 1.5}),
        ("0.6.0", "qnn.quantize", [node("relay.attrs.QuantizeAttrs", output_zero_point=3,
                                        output_scale=0.5, out_dtype="uint8")],
         {"out_dtype": "uint8", "output_zero_point": 3, "output_scale": 0.5}),
        ("0.7.0", "image.resize", [node("relay.attrs.ResizeAttrs", size=4, layout="NCHW",
                                        method="bilinear", out_dtype="",
                                        coordinate_transformation_mode="half_pixel"),
                                   node("Array")],
         {"size": (), "layout": "NCHW", "method": "bilinear", "out_dtype": "",
          "coordinate_transformation_mode": "half_pixel"}),
        ("0.11.0", "scatter", [node("relay.attrs.ScatterAttrs", axis=4),
                               node("IntImm", dtype="int32", value=2)], {"axis": 2}),
        # the default then is written out where it is another today
        ("0.11.0", "nn.conv2d_transpose", [node("relay.attrs.Conv2DTransposeAttrs",
                                                kernel_layout="OIHW")],
         {"kernel_layout": "OIHW"}),
        ("0.18.0", "split", [node("relay.attrs.SplitAttrs", indices_or_sections=4, axis=1),
                             {"type_key": "runtime.BoxInt", "repr_str": "3"}],
         {"indices_or_sections": 3, "axis": 1}),
        # a type nobody declared: a number behind the node's own is another node
        ("0.17.0", "my.op", [node("my.attrs.A", a=4, b=2, c="x"), string("text")],
         {"a": "text", "b": "2", "c": "x"}),
    ],
)  # fmt: skip
def test_attributes_of_releases(tvm, op, attrs, expected):
    module = parse_json(call(op, *attrs, tvm=tvm))
    assert dict(module.functions["main"].body.attrs.values) == expected


def test_single_expressions_become_main():
    text = table(
        node("relay.Tuple", fields=2), node("Array", [3, 5]),
        node("relay.Var", vid=4, type_annotation=7), node("relay.Id", name_hint=6),
        node("relay.Var", vid=8, type_annotation=0), string("b"), FLOAT,
        node("relay.Id", name_hint="a"),
    )  # fmt: skip
    main = parse_json(text).functions["main"]
    assert [p.name for p in main.params] == ["b", "a"]
    assert main.params[0].annotation == ast.TensorType((), "float32")
    assert main.params[0] is main.body.fields[0]


def test_texts_that_are_not_printable():
    raw = base64.b64encode(struct.pack("<Q", 3) + "ü\n".encode()).decode()
    text = table(
        node("relay.Var", vid=2, type_annotation=0), node("relay.Id", name_hint=3),
        {"type_key": "runtime.String", "repr_b64": raw},
    )  # fmt: skip
    assert parse_json(text).functions["main"].body.name == "ü\n"


def test_constants_are_decoded_when_asked_for():
    damaged = ONE[:-4] + "!!!="
    text = table(node("relay.Constant", data=0), blobs=[damaged])
    constant = parse_json(text).functions["main"].body
    assert constant.tensor.dtype is DType.FLOAT32
    with pytest.raises(ConversionError, match="foreign characters"):
        constant.tensor.load()


def blob_of(dtype=(2, 32, 1), shape=(), nbytes=4, data=b"\0" * 4, magic=0xDD5E40F096B4A13F):
    head = struct.pack("<QQiiiBBH", magic, 0, 1, 0, len(shape), *dtype)
    return base64.b64encode(
        head + struct.pack(f"<{len(shape) + 1}q", *shape, nbytes) + data
    ).decode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (blob_of(magic=1), "no tensor begins here"),
        (blob_of(dtype=(2, 24, 1)), "elements of code 2, 24 bits"),
        (blob_of(dtype=(2, 32, 4)), "4 lanes"),
        (blob_of(shape=(2,)), "takes 8 bytes, not 4"),
        (blob_of(shape=(-1, -4)), "impossible shape"),
        (blob_of(shape=(1 << 40, 1 << 40), nbytes=1 << 40), "impossible shape"),
        (blob_of(shape=(1 << 40,), nbytes=1 << 42), "takes 4398046511104 bytes, not 4"),
        (blob_of(data=b"\0" * 5), "takes 4 bytes, not 5"),
        (blob_of()[:-4], "takes 4 bytes, not"),
        (blob_of()[:40], "cut off within its header"),
        (blob_of()[:-3], "cut off"),
        ("", "cut off"),
        ("ä" * 40, "not base64"),
        (5, "not base64 text"),
    ],
)
def test_blob_is_refused(text, reason):
    with pytest.raises(MalformedFile, match=rf"b64ndarrays\[0\]: .*{reason}"):
        parse_json(table(node("relay.Constant", data=0), blobs=[text]))


NO_SIZES = [
    ("IntImm", "bool", "3", "a dimension is no integer"),
    ("FloatImm", "float64", "3.5", "a dimension is no integer"),
    ("FloatImm", "float64", "nan", "a dimension is no integer"),
    ("FloatImm", "float32", "3.5", "its shape is a float"),
    ("IntImm", "int64", "-3", "a dimension of -3 elements"),
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1, column 2: not JSON"),
        ("[" * 100_000, "nested deeper"),
        ("1" * 5000, "not JSON"),
        (b"\xff", "not UTF-8"),
        ("[]", "no list of nodes"),
        ('{"nodes": []}', "the first node is not null"),
        ('{"nodes": [{"type_key": "x"}]}', "the first node is not null"),
        ('{"nodes": [{"type_key": ""}, 3]}', "node 1: a node without a type_key"),
        ('{"nodes": [{"type_key": ""}, {"type_key": "a", "attrs": {"b": 1}}]}', "its attrs are"),
        ('{"nodes": [{"type_key": ""}], "b64ndarrays": 3}', "b64ndarrays is not a list"),
        (table(root=7), "the root is no node"),
        (table(), "the root is no node"),
        (table(node("Array")), "not a Relay module: the root is Array"),
        (table(FLOAT), "not a Relay module: the root is relay.TensorType"),
        (table(node("relay.Tuple", fields=9)), r"node 1 \(relay.Tuple\): fields is no node: '9'"),
        (table(node("relay.Tuple", fields=-1)), "fields is no node: '-1'"),
        (table(node("relay.Tuple", fields=1)), "it is a part of itself"),
        (table(node("relay.Tuple", fields=2), node("Array", [1])), "it is a part of itself"),
        (table(node("relay.Tuple", fields=2), node("Array", [3]), FLOAT), "fields is a TensorType"),
        (table(node("relay.Tuple", fields=2), FLOAT), "its fields is a TensorType"),
        (table(node("relay.Tuple", fields=2), node("Array", ["a"])), "an item is no node"),
        (table(node("relay.TupleGetItem", tuple_value=0, index=0)), "its tuple_value is missing"),
        (table(node("relay.TupleGetItem", tuple_value=2, index=-1), EMPTY), "no field -1"),
        (table(node("relay.TupleGetItem", tuple_value=2, index="x"), EMPTY), "index is no integer"),
        (table(node("relay.Constant", data=0)), "its tensor is number 0 of 0"),
        (table(node("relay.Constant", data="9" * 40)), "data is no integer"),
        (table(node("relay.Call", op=2), FLOAT), "its op is a TensorType"),
        (table(node("relay.Var", vid=0)), "its vid is missing"),
        (table(node("IRModule", functions=2), node("Map", [3, 4]), string("f"),
               node("tir.PrimFunc")), "compiled to loops already"),
        (table(node("IRModule", functions=2), node("Map", [3, 4]), node("GlobalVar", name_hint="f"),
               node("relax.expr.Function")), "@f is a function of Relax"),
        (table(node("IRModule", functions=2), node("Map", [3]), string("f")), "do not pair up"),
        (table({"type_key": "runtime.String", "repr_b64": "AAAA"}), "holds no text"),
        (table(node("relay.Var", vid=2, type_annotation=3), node("relay.Id", name_hint="x"),
               node("relay.TensorType", dtype="flt", shape=0)), "there is no element type 'flt'"),
        (table(node("relay.Call", op=2, attrs=3), {"type_key": "Op", "repr_str": "sum"},
               node("relay.attrs.ReduceAttrs", axis=1)), "part of itself"),
        (table(node("relay.Call", op=2, attrs=3), {"type_key": "Op", "repr_str": "sum"},
               node("relay.attrs.ReduceAttrs", axis=4), node("relay.Tuple", fields=0)),
         "attribute axis is a Tuple"),
        *((table(node("relay.TensorType", dtype="float32", shape=2), node("Array", [3]),
                 node(key, dtype=dtype, value=value)), reason)
          for key, dtype, value, reason in NO_SIZES),
    ],
)  # fmt: skip
def test_table_is_refused(text, reason):
    with pytest.raises(MalformedFile, match=reason):
        parse_json(text)


def double(depth):
    """A type that holds itself twice, ``depth`` times: its tree has 2**depth leaves."""
    arrays = [
        entry
        for i in range(depth)
        for entry in (node("TupleType", fields=2 * i + 4), node("Array", [2 * i + 5, 2 * i + 5]))
    ]
    return table(
        node("relay.Var", vid=2, type_annotation=3), node("relay.Id", name_hint="x"), *arrays, FLOAT
    )


@pytest.mark.parametrize(
    ("text", "reason"), [(double(25), "more than 1000000 parts"), (double(90), "parts|deep")]
)
def test_what_is_walked_by_recursion_is_bounded(text, reason):
    with limit_cpu(5), pytest.raises(MalformedFile, match=reason):
        parse_json(text)


def test_types_nest_to_a_depth():
    chain = [node("relay.RefType", value=i + 4) for i in range(300)]
    head = node("relay.Var", vid=2, type_annotation=3), node("relay.Id", name_hint="x")
    with pytest.raises(MalformedFile, match="nest more than 200 deep"):
        parse_json(table(*head, *chain, FLOAT))


def test_a_deep_chain():
    """Through the JSON and back, and to the text."""
    x = ast.Var("x")
    expr: ast.Expr = x
    for _ in range(MANY):
        expr = ast.Let(ast.Var("y"), ast.Call(ast.Op("tanh"), (x,)), expr)
    module = ast.Module({"main": ast.Function((x,), expr)})
    assert difference(module, parse_json(to_json(module))) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "def @main(%x) { nn.dense(%x, %x) }",
            "call of nn.dense .*DenseAttrs: the required attribute units is missing",
        ),
        ("def @main(%x) { nn.relu(%x, a=1) }", "the type of the attributes a is unknown"),
        ("def @main(%x) { nn.softmax(%x, axes=1) }", "SoftmaxAttrs of TVM 0.17 has no axes"),
    ],
)
def test_is_not_written(text, reason):
    with pytest.raises(ConversionError, match=reason):
        to_json(parse_text(text))


def test_written_numbers_are_exact():
    values = {"epsilon": 0.1 + 0.2, "axis": -3}
    attrs = ast.Attrs("relay.attrs.LayerNormAttrs", values)
    x = ast.Var("x")
    module = ast.Module(
        {"main": ast.Function((x,), ast.Call(ast.Op("nn.layer_norm"), (x,), attrs))}
    )
    again = parse_json(to_json(module)).functions["main"].body.attrs.values
    assert dict(again) == values


def test_every_element_type():
    names = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
    arrays = [np.arange(6).reshape(2, 3).astype(t) for t in names]
    fields = tuple(ast.Constant(Tensor.of(a)) for a in (*arrays, np.zeros((0, 2), np.int8)))
    module = ast.Module({"main": ast.Function((), ast.Tuple(fields))})
    again = parse_json(to_json(module)).functions["main"].body.fields
    for field, constant in zip(fields, again, strict=True):
        np.testing.assert_array_equal(field.tensor.load(), constant.tensor.load())
        assert field.tensor.dtype is constant.tensor.dtype


def test_the_root_is_the_first_node():
    data = json.loads(to_json(parse_text("def @main(%x) { %x }")))
    assert data["root"] == 1 and data["nodes"][1]["type_key"] == "IRModule"
