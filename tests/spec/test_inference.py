"""Output types of nodes: what ONNX infers, and what is added to it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from serde.errors import ConversionError
from serde.ir.graph import AttrRef, DType, Node, Tensor, Value
from serde.rewrite.rules import RuleTable
from serde.spec import inference, memo, schema
from serde.spec.inference import Type, from_proto, merge, type_proto
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of

F32, I64 = DType.FLOAT32, DType.INT64


WRAPS = [(), ("sequence",), ("optional",), ("optional", "sequence"), ("sparse",), ("map:int64",),
         ("sequence", "map:object")]  # fmt: skip


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("shape", [None, (), (2, "N", None)])
def test_types_survive_the_way_through_protobuf(dtype, wrap, shape):
    assert from_proto(type_proto(dtype, shape, wrap)) == Type(dtype, shape, wrap)


def test_nothing_is_known_of_an_empty_type():
    for proto in (None, onnx.TypeProto()):
        assert from_proto(proto) == inference.UNKNOWN


def test_hostile_types_are_not_believed():
    deep = type_proto(F32, (1,))
    for _ in range(12):
        deep = onnx.helper.make_sequence_type_proto(deep)
    assert from_proto(deep).dtype is None
    assert from_proto(onnx.helper.make_tensor_type_proto(1, [1] * 65)) == Type(F32, None)
    assert from_proto(onnx.helper.make_tensor_type_proto(1, [-5, 2])) == Type(F32, (None, 2))


def test_a_question_mark_names_no_size():
    proto = onnx.helper.make_tensor_type_proto(1, ["?", "?", "N"])
    assert from_proto(proto) == Type(F32, (None, None, "N"))


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        (Type(F32, (1, "N")), Type(F32, (1, "N")), Type(F32, (1, "N"))),
        (Type(F32, (1, 2)), Type(F32, (1, 3)), Type(F32, (1, None))),
        (Type(F32, (1,)), Type(F32, (1, 2)), Type(F32, None)),
        (Type(F32, (1,)), Type(I64, (1,)), Type(None, (1,))),
        (Type(F32, (1,), ("sequence",)), Type(F32, (1,)), inference.UNKNOWN),
    ],
)
def test_two_paths_have_in_common_what_both_have(a, b, merged):
    assert merge(a, b) == merged


def types_of(body, opset=21):
    return [(v.name, v.dtype, v.shape, v.container) for v in ir_of(body, opset).outputs]


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("g (float[N,3] x) => (u) { u = Relu(x) }", [(F32, ("N", 3))]),
        ("g (float[N,3] x) => (u, v) { u, v = Split<num_outputs=2, axis=0>(x) }",
         [(F32, (None, 3)), (F32, (None, 3))]),
        ("g (float[N,3] x) => (u) { u = NonZero(x) }", [(I64, (2, None))]),
        ("g (float[N,3] x, bool c) => (u) { u = If (c) <"
         "then_branch = t () => (float[A] p) { p = Add(x, x) },"
         "else_branch = e () => (float[A] q) { q = Neg(x) }> }", [(F32, ("N", 3))]),
        ("g (float[N,3] x, bool c) => (u) { u = If (c) <"
         "then_branch = t () => (float[A] p) { p = Flatten<axis=0>(x) },"
         "else_branch = e () => (float[A] q) { q = Neg(x) }> }", [(F32, (None, None))]),
        ("g (int64 n, bool c, float[2] x) => (u, s) { u, s = Loop (n, c, x) <body = b"
         "(int64 i, bool d, float[2] y) => (bool d2, float[2] z, float[2] w) "
         "{ d2 = Identity(d)\n z = Add(y, y)\n w = Neg(y) }> }",
         [(F32, (2,)), (F32, (None, 2))]),
        ("g (float[2] s0, float[T,2] xs) => (s, ys) { s, ys = Scan (s0, xs) "
         "<num_scan_inputs = 1, body = b (float[2] s1, float[2] x) => (float[2] s2, float[2] y) "
         "{ s2 = Add(s1, x)\n y = Neg(s2) }> }",
         [(F32, (2,)), (F32, ("T", 2))]),
        ("g (float[2] s0, float[2,T] xs) => (s, ys) { s, ys = Scan (s0, xs) "
         "<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], "
         "body = b (float[2] s1, float[2] x) => (float[2] s2, float[2] y) "
         "{ s2 = Add(s1, x)\n y = Neg(s2) }> }",
         [(F32, (2,)), (F32, (2, "T"))]),
    ],
)  # fmt: skip
def test_types_of_outputs(body, outputs):
    assert [(d, s) for _, d, s, _ in types_of(body)] == outputs


def test_containers_keep_what_is_in_them():
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 2))
    sequence = g.SequenceConstruct(x, x)
    assert (sequence.dtype, sequence.shape, sequence.container) == (F32, ("N", 2), ("sequence",))
    assert g.SequenceAt(sequence, 0).container == ()
    assert g.SequenceLength(sequence).dtype is I64
    optional = g.Optional(sequence)
    assert optional.container == ("optional", "sequence")
    assert g.OptionalGetElement(optional).container == ("sequence",)
    empty = g.Optional(type=type_proto(F32, (2,)))
    assert (empty.dtype, empty.container) == (F32, ("optional",))


def test_a_repeated_layer_is_asked_about_once(monkeypatch):
    ops = []
    ask = inference._infer_with_onnx
    monkeypatch.setattr(inference, "_memo", {})
    monkeypatch.setattr(inference, "_infer_with_onnx", lambda *a: ops.append(a[0].name) or ask(*a))
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 3))
    for _ in range(5):
        x = g.Hardmax(x, axis=1)
    g.Hardmax(x, axis=0)  # other attributes
    g.Hardmax(g.input("y", F32, ("M", 3)), axis=1)  # another shape
    g.Hardmax(g.input("z", DType.FLOAT64, ("N", 3)), axis=1)  # another type
    assert ops == ["Hardmax"] * 4
    w = [g.const(np.full(5000, n, np.float32)) for n in range(2)]
    for each in w:
        g.Gather(each, g.input("i", I64, ("K",)))  # weights are told apart by type alone
    assert ops[4:] == ["Gather"]
    for count in ([2], [3]):
        g.Expand(x, g.Concat(count, [1, 1], axis=0))  # small integers by contents
    assert ops.count("Expand") == 2


def test_the_memo_is_bounded(monkeypatch):
    monkeypatch.setattr(memo, "MOST", 3)
    monkeypatch.setattr(inference, "_memo", {})
    g = OnnxBuilder("g")
    for n in range(1, 9):
        g.Relu(g.input(f"x{n}", F32, (n,)))
        assert len(inference._memo) <= 3


def test_an_operand_of_unknown_type_makes_a_result_of_unknown_type():
    g = OnnxBuilder("g")
    x, y = g.input("x"), g.input("y", F32, (2,))
    assert g.Relu(x).dtype is None
    assert g.Concat(x, y, axis=0).shape in (None, (None,))


def test_attributes_that_stand_for_others_make_types_unknown():
    operator = schema.operator("LeakyRelu")
    x = Value("x", F32, (2,))
    assert inference.infer(operator, 28, (x,), {"alpha": AttrRef("a", "FLOAT")}, 1) == (
        inference.UNKNOWN,
    )


def test_a_subgraph_of_another_domain_tells_no_type():
    body = ir_of("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    operator = schema.find("FlexAttention", 1, "ai.onnx.preview")
    q = Value("q", F32, (1, 2, 3, 4))
    node = Node("FlexAttention", (q, q, q), (Value("o"),), {"score_mod": body}, "ai.onnx.preview")
    (inferred,) = inference.infer_declared(operator, node, (q, q, q))
    assert (inferred.dtype, inferred.shape) == (F32, (1, 2, 3, 4))


def test_a_tensor_attribute_takes_part():
    g = OnnxBuilder("g")
    n = g.Shape(g.input("x", F32, ("N",)))
    value = Tensor.of(np.array([7], np.int16))
    output = g.ConstantOfShape(n, value=value)
    assert (output.dtype, output.shape) == (DType.INT16, ("N",))


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "why"),
    [
        ("MatMul", [(7, 2, 3), (4, 3, 5)], {}, "MatMul rejects its inputs"),
        ("Concat", [(2, 3), (2, 4)], {"axis": 0}, "Concat rejects its inputs"),
        ("Add", [(2, 3), (4,)], {}, "Add rejects its inputs"),
        ("Transpose", [(2, 3)], {"perm": (0, 5)}, "Transpose rejects its inputs"),
        ("Gather", [(2,), (2,)], {}, "Gather takes no float32 as 'indices'"),
        ("Softmax", [(2,)], {"axis": 3}, "Softmax rejects its inputs"),
    ],
)
def test_what_the_standard_refuses_is_refused_where_it_stands(op, shapes, attrs, why):
    table = RuleTable("toy → ir")
    table("Foo")(lambda g, *xs: g[op](*xs, **attrs))
    g = OnnxBuilder("g")
    inputs = [g.input(f"x{i}", F32, s) for i, s in enumerate(shapes)]
    with pytest.raises(ConversionError, match=why):
        g[op](*inputs, **attrs)


@pytest.mark.parametrize(
    ("op", "types", "why"),
    [
        ("ReduceLogSumExp", ["int16"],
         "takes no int16 as 'data'. It takes bfloat16, float16, float32, float64: cast it to one of these"),
        ("Add", ["int32", "float32"],
         "takes operands of one type, and 'B' is of float32, unlike another. Cast one of them"),
        ("Max", ["int32", "float32"], "takes operands of one type, and 'data_0' is of float32"),
        ("SequenceLength", ["float32"], "takes no float32 as 'input_sequence'. It takes sequence of bool"),
    ],
)  # fmt: skip
def test_types_are_refused_in_words_of_the_user(op, types, why):
    g = OnnxBuilder("g")
    inputs = [g.input(f"x{i}", DType(t), (2,)) for i, t in enumerate(types)]
    with pytest.raises(ConversionError) as caught:
        g[op](*inputs)
    assert str(caught.value).startswith(f"{op} {why}")


def test_an_if_of_branches_with_other_numbers_of_outputs_is_refused():
    body = (
        "g (float[2] x, bool c) => (u) {{ u = If (c) <"
        "then_branch = t () => (float[A] p{0}) {{ p = Add(x, x)\n r = Neg(x) }},"
        "else_branch = e () => (float[A] q) {{ q = Neg(x) }}> }}"
    )
    from serde.errors import Unconvertible

    assert types_of(body.format(""))
    with pytest.raises(Unconvertible, match="If"):
        types_of(body.format(", float[A] r"))


@pytest.mark.parametrize("opset", [12, 13, 15, 16])
@pytest.mark.parametrize("op", ["GreaterOrEqual", "LessOrEqual"])
def test_comparisons_that_onnx_infers_no_shape_of(op, opset):
    """onnx's own inference returns none before opset 16, where they are functions."""
    operator = schema.operator(op, opset)
    x, y = Value("x", DType.FLOAT32, ("N", 6)), Value("y", DType.FLOAT32, (4, "N", 1))
    (output,) = inference.infer(operator, opset, (x, y), {}, 1)
    assert (output.dtype, output.shape) == (DType.BOOL, (4, "N", 6))
