"""Values of nodes whose inputs are known: the fast table, the lazy ones, and what stays."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from serde.errors import ConversionError
from serde.ir.graph import IR_OPSET, DType, Tensor, Value
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from serde.spec import folding, inference, schema
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import BITWISE, BROADCASTS, DATA_DEPENDENT, ELEMENTWISE, REDUCES
from testing.onnx_live import decode_text, ir_of, model_of, run_model

F32, I64 = DType.FLOAT32, DType.INT64
rng = np.random.default_rng(0)


def numbers(*shape, kind=np.int64, low=-9):
    return rng.integers(low, 10, shape).astype(kind)


def floats(*shape, kind=np.float32):
    return rng.standard_normal(shape).astype(kind)


def ints(*values):
    return np.array(values, np.int64)


KINDS = (np.int64, np.int32, np.uint8, np.float32, np.float64, np.float16)
PAIRS = [
    (numbers(2, 3, kind=k, low=0), numbers(3, kind=k, low=1)) for k in KINDS
] + [(numbers(2, 3), numbers(2, 1, low=1)), (ints(-7, 7, -7, 7), ints(2, 2, -2, -2)),
    (ints(-(2**63), 2**63 - 1), ints(2**32, -3))]  # fmt: skip
CASES = {  # operator: (operands, attributes)
    **{op: [(p, {}) for p in PAIRS] for op in "Add Sub Mul Div Equal Less Greater".split()},
    "Where": [((floats(2, 3) > 0, floats(2, 3), floats(3)), {}),
              ((np.array(True), numbers(2), numbers(2)), {})],
    "Neg": [((x,), {}) for x in (numbers(3), floats(2, 2), np.array(3), numbers(2, kind=np.int8))],
    "Abs": [((x,), {}) for x in (numbers(3), floats(2, 2), np.array(-3),
                                 numbers(2, kind=np.uint8))],
    "Gather": [((numbers(3, 4), i), {"axis": a})
               for i in (np.array(1), ints(0, 2), ints(-1, -3), np.array([[0], [1]], np.int32))
               for a in (0, 1)],
    "GatherElements": [((numbers(2, 3), ints([0, -1, 2], [1, 1, 1])), {"axis": 1}),
                       ((numbers(2, 3), ints([0, -1, -2])), {"axis": 0})],
    "GatherND": [((numbers(3, 4, 5), ints(*i)), {"batch_dims": b}) for b, i in (
        (0, ([0, 1], [2, -1])), (0, ([0], [-3])), (0, (2, 3, 4)), (0, ([[0, 1, -2]], [[2, 3, 4]])),
        (1, ([0, 1], [1, -2], [3, 4])), (1, ([[0], [1]], [[2], [-3]], [[0], [0]])),
        (2, (*[[[0], [4], [-5], [1]]] * 3,)))],
    "ScatterND": [((numbers(3, 4), i, u), {}) for i, u in (
        (ints([0], [-1]), numbers(2, 4)), (ints([0, 1], [2, -1]), numbers(2)),
        (ints([[1, 0], [0, 2]]), numbers(1, 2)), (np.zeros((0, 1), np.int64), numbers(0, 4)))],
    "Concat": [((numbers(2, 3), numbers(2, 3)), {"axis": a}) for a in (0, 1, -1)]
    + [((floats(0, 2), floats(1, 2)), {"axis": 0})],
    "Slice": [((numbers(4, 5), *map(ints, b)), {}) for b in (
        (1, 3), (-3, -1), (1, 99))] + [
        ((numbers(4, 5), ints(0, 4), ints(3, -9), ints(0, 1), ints(2, -1)), {}),
        ((numbers(4, 5), ints(1), ints(2), ints(1)), {}),
        ((numbers(4, 5), ints(1), ints(2**63 - 1), ints(-1), ints(1)), {}),
        ((numbers(4), np.array([3], np.int32), np.array([-(2**31)], np.int32),
          np.array([0], np.int32), np.array([-1], np.int32)), {})],
    "Reshape": [((numbers(2, 6), ints(*s)), {}) for s in ((3, 4), (-1,), (0, 3, -1), (1, 0, 2))]
    + [((floats(0, 3), ints(3, 0)), {"allowzero": 1}), ((numbers(1), ints()), {})],
    "Cast": [((x,), {"to": t})
             for x in (numbers(3), floats(3), floats(3, kind=np.float16), np.array([0, 2]),
                       np.array([True, False]), np.array([np.nan, np.inf, 0], np.float32))
             for t in (1, 7, 6, 9, 10, 11, 2, 3, 16)
             if not (x.dtype.kind == "f" and t in (7, 6, 2, 3) and not np.isfinite(x).all())
             and not (t == 2 and (x < 0).any())],
    "Squeeze": [((numbers(1, 3, 1), *a), {}) for a in ((), (ints(0),), (ints(0, 2),), (ints(-1),))],
    "Unsqueeze": [((numbers(2, 3), ints(*a)), {}) for a in ((0,), (-1,), (0, 3), (3, 0), (1, -1))],
    "Transpose": [((numbers(2, 3, 4),), a) for a in ({}, {"perm": [1, 2, 0]}, {"perm": [0, 2, 1]})],
    "Expand": [((numbers(3, 1), ints(*s)), {}) for s in ((2, 1, 6), (3, 1), (1,), (3, 4))],
    "Range": [(tuple(np.array(v, k) for v in r), {}) for k in (np.int64, np.float32, np.int32)
              for r in ((0, 5, 1), (5, 0, -2), (2, 2, 1), (1, 8, 3))]
    + [(tuple(np.array(v, np.float32) for v in (0, 1, 0.25)), {})],
    "OneHot": [((i, np.array(3), v), {"axis": a})
               for i in (ints(0, -1, 2), np.array([[1.0, -3.0]], np.float32))
               for v in (np.float32([0.5, -2]), numbers(2)) for a in (-1, 0)],
    "ReduceProd": [((numbers(2, 3),), {"keepdims": k}) for k in (0, 1)]
    + [((numbers(2, 3), ints(1)), {}), ((numbers(3),), {"noop_with_empty_axes": 1})],
}  # fmt: skip
ROWS = [(op, *case) for op, cases in CASES.items() for case in cases]


def make_constant(array):
    return Value("c", DType.of(array.dtype), array.shape, Tensor.of(array))


def reference(op, operands, attrs):
    names = [f"i{n}" for n in range(len(operands))]
    node = helper.make_node(op, names, ["o"], **attrs)
    evaluator = ReferenceEvaluator(node, opsets={"": IR_OPSET})
    return np.asarray(evaluator.run(None, dict(zip(names, operands, strict=True)))[0])


@pytest.mark.parametrize(("op", "operands", "attrs"), ROWS)
def test_the_fast_table_computes_what_the_reference_does(op, operands, attrs):
    with np.errstate(all="ignore"):
        expected = reference(op, operands, attrs)
    (got,) = folding.evaluate(op, IR_OPSET, tuple(map(make_constant, operands)), attrs, 1)
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    same = expected.dtype.kind in "iub"  # numpy compares no NaN of bfloat16
    np.testing.assert_array_equal(*(a if same else a.astype(float) for a in (got, expected)))


def test_every_fast_operator_has_cases():
    assert folding.FAST.keys() == CASES.keys()
    assert {*folding.FAST, *folding.LAZY} <= folding.COMPUTED <= set(schema.names())


@pytest.mark.parametrize(("start", "end"), [(-10, -(2**63)), (-10, -4), (9, -2), (1, -(2**63))])
def test_a_slice_backwards_from_beyond_the_front_begins_at_the_front(start, end):
    """The standard clamps starts; onnx.reference leaves that to Python, which does not."""
    body = f"""g (int64[3] x) => (int64[] y)
    <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, int64[1] b = {{-1}}>
    {{ y = Slice(x, s, e, a, b) }}"""
    model = model_of(body)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (expected,) = run_model(model, {"x": ints(1, 2, 3)})
    g = OnnxBuilder("g")
    got = g.Slice(g.const([1, 2, 3]), [start], [end], [0], [-1])
    assert got.array().tolist() == expected.tolist() and got.shape == expected.shape


def test_one_hot_chooses():
    """onnx.reference multiplies infinities by 0, and counts places out of range round."""
    body = "g (float[4] i, float d, float[2] v) => (float[4,4] y) { y = OneHot(i, d, v) }"
    index = np.array([1, 5, -1, -0.4], np.float32)
    operands = index, np.array(4, np.float32), np.array([0, np.inf], np.float32)
    (expected,) = run_model(model_of(body), dict(zip("idv", operands, strict=True)))
    g = OnnxBuilder("g")
    np.testing.assert_array_equal(g.OneHot(*map(g.const, operands)).array(), expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_gathered_by_fewer_indices_than_the_other_axes_have(axis):
    """onnx.reference refuses these."""
    x, index = floats(3, 4), ints([0, -1], [2, 1])
    text = f"g (float[3,4] x, int64[2,2] i) => (float[2,2] y) {{ y = GatherElements<axis={axis}>"
    (expected,) = run_model(model_of(f"{text}(x, i) }}"), {"x": x, "i": index})
    g = OnnxBuilder("g")
    value = g.GatherElements(g.const(x), g.const(index), axis=axis)
    np.testing.assert_array_equal(value.array(), expected)


def test_integers_divided_by_zero_are_refused():
    g = OnnxBuilder("g")
    with pytest.raises(ConversionError, match="divides integers by zero"):
        g.Div(g.const([1, 2]), [0])


def test_what_overflows_or_is_no_number_warns_nobody():
    g = OnnxBuilder("g")
    one = g.const(np.array([1, 0, -1], np.float32))
    np.testing.assert_array_equal(g.Div(one, 0.0).array(), [np.inf, np.nan, -np.inf])
    assert g.Cast(g.const(np.array([1e9], np.float32)), to=10).array() == [np.inf]
    assert g.Log(one).array()[1] == -np.inf


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        ((folding.LIMIT, 1), 0), ((folding.LIMIT + 1, 1), 1), (folding.CHANNELS, 0),
        (folding.CHANNELS + 1, 1),
    ],
    ids=["at", "above", "channels", "more"],
)  # fmt: skip
def test_arithmetic_is_folded_up_to_the_limit(shape, nodes):
    g = OnnxBuilder("g")
    g.Softmax(g.const(np.zeros(shape, np.float32)), axis=0)
    assert len(g.nodes) == nodes


def counting(array):
    """A tensor that counts how often it is loaded."""
    loads = []

    def load():
        loads.append(1)
        return array

    return Tensor(DType.of(array.dtype), array.shape, load), loads


def test_a_weight_is_arranged_when_it_is_written_not_before():
    weight, loads = counting(floats(80, 60))
    g = OnnxBuilder("g")
    value = g.Reshape(g.Transpose(g.const(weight, name="w"), perm=(1, 0)), [-1])
    assert (value.shape, value.dtype, g.nodes, loads) == ((4800,), F32, [], [])
    np.testing.assert_array_equal(value.array(), weight.load().T.ravel())


LAZY = {  # operands behind the weight, and attributes, of operators computed when written
    **dict.fromkeys(ELEMENTWISE, ((), {})),
    **dict.fromkeys(BROADCASTS | {"Einsum"}, ((0.5,), {})),
    **dict.fromkeys(REDUCES, (([1],), {})),
    **dict.fromkeys(BITWISE | {"BitShift"}, (None, {})),
    **dict.fromkeys(["And", "Or", "Xor", "Where", "MatMul", "Gemm"], (None, {})),
    "BatchNormalization": ([floats(60) ** 2] * 4, {}), "BitShift": (None, {"direction": "LEFT"}),
    "Cast": ((), {"to": 10}), "Clip": ((0.1, 0.5), {}),
    "Concat": (None, {"axis": 0}), "DepthToSpace": ((), {"blocksize": 2}),
    "Einsum": ((floats(60),), {"equation": "ij,j->i"}), "Expand": (([80, 60],), {}),
    "Flatten": ((), {"axis": 0}), "Gather": (([1, 0],), {}),
    "GatherElements": ((np.array([[5, -1]] * 80),), {"axis": 1}),
    "GatherND": ((np.array([[5], [-1]]),), {}), "Identity": ((), {}),
    "LayerNormalization": ([floats(60)] * 2, {}), "Mod": ((0.5,), {"fmod": 1}),
    "Reshape": (([60, 80],), {}), "ReverseSequence": (([50] * 60,), {}),
    "Slice": (([0], [60]), {}), "SpaceToDepth": ((), {"blocksize": 2}),
    "Split": (([30, 50],), {"axis": 0}), "Squeeze": ((), {}), "Tile": (([1, 1],), {}),
    "Transpose": ((), {"perm": (1, 0)}), "Unsqueeze": (([0],), {}),
}  # fmt: skip
OF_BOOLEANS = frozenset({"And", "Not", "Or", "Where", "Xor"})
OF_INTEGERS = BITWISE | {"BitShift", "BitwiseNot"}
SHAPES = {"DepthToSpace": (1, 16, 20, 15), "SpaceToDepth": (1, 4, 40, 30), "Squeeze": (1, 80, 60)}
DOMAINS = {"Acos": (0, 1), "Asin": (0, 1), "Atanh": (0, 0.9), "Acosh": (1, 9)}


def make_operands(op: str) -> tuple[Any, list[Any]]:
    """A weight, and the other operands."""
    operands, _ = LAZY[op]
    weight = np.abs(floats(*SHAPES.get(op, (80, 60))))
    if op in DOMAINS:
        weight = np.clip(weight, *DOMAINS[op]).astype(np.float32)
    if op in OF_INTEGERS:
        weight = (weight * 9).astype(np.uint32)
    if op in OF_BOOLEANS:
        weight = weight > 0.5
    same, products, flags = (weight,), (np.abs(floats(60, 3)),), (floats(80, 60) > 1,)
    others = {
        "Concat": same, "Gemm": products, "MatMul": products,
        "Where": [floats(80, 60)] * 2, "And": flags, "Or": flags, "Xor": flags,
        **dict.fromkeys(BITWISE | {"BitShift"}, (np.uint32([3]),)),
    }  # fmt: skip
    return weight, [*others.get(op, operands or ())]


@pytest.mark.parametrize("op", sorted(folding.LAZY - DATA_DEPENDENT))
def test_lazy_values_are_what_the_reference_computes(op):
    array, others = make_operands(op)
    attrs = LAZY[op][1]
    weight, loads = counting(array)
    g = OnnxBuilder("g")
    w = g.const(weight)
    operands = [g.const(a) if isinstance(a, np.ndarray) else a for a in others]
    outputs = g[op](w, *operands, outputs=2 if op == "Split" else 1, **attrs)
    assert g.nodes == [] and not loads
    first = outputs[0] if op == "Split" else outputs
    arrays = [array, *others]
    kinds = [a if isinstance(a, np.ndarray) else np.asarray(a, np.int64 if isinstance(a, list)
             else np.float32) for a in arrays]  # fmt: skip
    with np.errstate(all="ignore"):
        feeds = dict(zip("abcdefg", kinds, strict=False))
        node = helper.make_node(op, [*feeds], ["o", "p"][: 1 + (op == "Split")], **attrs)
        ends = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                for n, a in feeds.items()]  # fmt: skip
        graph = helper.make_graph([node], "g", ends, [onnx.ValueInfoProto(name="o")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", IR_OPSET)])
        expected = ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(first.array(), expected, rtol=1e-6)
    assert (first.array().dtype, first.array().shape) == (first.dtype.numpy, first.shape)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda g, w: g.Tile(w, [2, 1]), "twice the weight"),
        (lambda g, w: g.Expand(w, [2, 80, 60]), "twice the weight"),
        (lambda g, w: g.MatMul(g.Reshape(w, [4800, 1]), g.Reshape(w, [1, 4800])), "23e6 elements"),
        (lambda g, w: g.Gather(w, [0] * 10000), "rows more than once"),
        (lambda g, w: g.Cast(w, to=11), "twice the bytes"),
        (lambda g, w: g.ConstantOfShape([80, 60]), "4800 elements of three"),
        (lambda g, w: g.Range(0, 20000, 1), "20000 elements of three"),
    ],
)
def test_nothing_is_folded_that_makes_a_model_larger(make, why):
    g = OnnxBuilder("g")
    value = make(g, g.const(floats(80, 60)))
    assert value.tensor is None and g.nodes, why


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_quantized_weights_stay_quantized(op):
    g = OnnxBuilder("g")
    kind = np.float32 if op == "QuantizeLinear" else np.int8
    g[op](g.const(np.zeros(4, kind)), g.const(np.float32(1)), g.const(np.int8(0)))
    assert [n.op for n in g.nodes] == [op]


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform"])
def test_random_operators_stay(op):
    graph = ir_of(f"g () => (float[2] y) {{ y = {op}<shape=[2]>() }}")
    assert [n.op for n in graph.nodes] == [op]


def test_no_random_operator_is_folded():
    assert all(schema.operator(op).deterministic for op in folding.COMPUTED)


def test_operators_with_bodies_stay_though_all_they_read_is_constant():
    graph = ir_of(
        "g () => (float[1] y) <int64 n = {3}, bool c = {1}, float[1] w = {2}> { y = Loop (n, c, w) <"
        "body = b (int64 i, bool d, float[1] u) => (bool e, float[1] v) { e = Identity(d)\n v = Neg(u) }"
        "> }"
    )
    assert [n.op for n in graph.nodes] == ["Loop"]


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (11, "Squeeze<axes=[0]>(w)"),
        (11, "Unsqueeze<axes=[0]>(w)"),
        (9, "Slice<starts=[0], ends=[1], axes=[1]>(w)"),
        (11, "ReduceSum<axes=[0], keepdims=0>(w)"),
        (11, "ReduceProd<axes=[1]>(w)"),
        (11, "Softmax<axis=0>(w)"),
    ],
)
def test_constants_of_old_forms_fold_to_the_same_numbers(opset, node):
    body = f"g () => (float[] y) <float[1,2] w = {{3, 4}}> {{ y = {node} }}"
    model = model_of(body, opset)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (expected,) = run_model(model, {})
    (node,) = raise_to_ir(decode_text(body, opset)).nodes
    assert node.op == "Identity"
    np.testing.assert_allclose(node.inputs[0].array(), expected, rtol=1e-6)


def test_a_squeeze_of_an_old_opset_keeps_the_axes_that_it_does_not_name():
    """As lowering emits it: onnx.reference drops every axis of size 1 at opset 11."""
    weight = OnnxBuilder("g").const(np.zeros((4, 1, 1, 1), np.float32))
    (tensor,) = folding.evaluate("Squeeze", 11, (weight,), {"axes": (1,)}, 1)
    assert tensor.shape == (4, 1, 1)


def test_a_result_of_another_shape_than_inferred_is_no_constant(monkeypatch):
    monkeypatch.setitem(folding.FAST, "Neg", lambda a, _: a[0].ravel())
    g = OnnxBuilder("g")
    assert g.Neg(g.const(np.ones((1, 2), np.float32))).tensor is None


def test_a_lazy_value_of_another_type_than_inferred_is_refused(monkeypatch):
    operand = Value("w", F32, (4800,), Tensor.of(floats(4800)))
    wrong = (inference.Type(DType.INT32, (4800,)),)
    (tensor,) = folding.fold("Neg", IR_OPSET, (operand,), {}, wrong)
    with pytest.raises(ConversionError, match=r"Neg of constants gave float32\[4800\]"):
        tensor.load()


@pytest.mark.parametrize("size", [4, 4800])
def test_a_disk_that_fails_is_told_and_the_node_not_left_as_it_is(size):
    """The result of a conversion does not depend on the moment."""
    error = OSError(errno.EIO, "Input/output error", "w.bin")

    def load():
        raise error

    with pytest.raises(OSError, match=r"w\.bin"):
        g = OnnxBuilder("g")
        g.Neg(Value("w", F32, (size,), Tensor(F32, (size,), load))).tensor.load()


def test_booleans_as_strings_are_left_to_the_runtime():
    g = OnnxBuilder("g")
    graph = tidy(g.build([g.Cast(np.array([False, True]), to=8)]))
    assert [n.op for n in graph.nodes] == ["Cast"]


def test_halves_are_summed_in_float32():
    """Squares of halves overflow where their norm does not."""
    x = np.full((1, 12), 254, np.float16)
    axes = Tensor.of(ints(1))
    operands = tuple(Value(n, t.dtype, t.shape, t) for n, t in (("x", Tensor.of(x)), ("a", axes)))
    (result,) = folding.evaluate("ReduceL2", IR_OPSET, operands, {"keepdims": 1}, 1)
    assert result.dtype == np.float16
    np.testing.assert_allclose(result, [[np.float16(254 * 12**0.5)]], rtol=1e-3)
