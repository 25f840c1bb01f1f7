"""Every element type and the numbers at its ends: as ONNX has them, or refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx.defs
import onnx.reference
import pytest
from onnx import helper, numpy_helper

from serde.errors import SerdeError
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import live_mxnet, run_symbol
from testing.node_cases import results
from testing.onnx_live import model_of, run_model

OPSET = 22
FLOATS = ("float16", "float32", "float64")
WHOLE = ("int8", "uint8", "int32", "int64")
TYPES = (*FLOATS, *WHOLE, "bool")


def numbers(dtype, shape, seed=0):
    """Numbers of a type, its ends among them."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if dtype in FLOATS:
        values = generator.standard_normal(shape).astype(dtype)
        flat = values.reshape(-1)
        ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 1.5, -2.5]
        flat[: len(ends)] = ends[: flat.size]
        return values
    info = np.iinfo(dtype)
    values = generator.integers(max(info.min, -9), 9, shape).astype(dtype)
    flat = values.reshape(-1)
    ends = [info.max, info.min, info.max - 1, 0, 1]
    flat[: len(ends)] = ends[: flat.size]
    return values


def tame(dtype, shape, seed=0):
    """Small numbers without zero."""
    values = numbers(dtype, shape, seed)
    if dtype == "bool":
        return values
    flat = np.random.default_rng(seed).integers(1, 7, values.shape)
    return (flat * (1 if dtype[0] == "u" else np.where(flat % 2, 1, -1))).astype(dtype)


def model(op, feeds, held, attrs, opset=OPSET):
    """A model of one node; ``held`` are constants, None an operand left out."""
    names = [n if v is not None else "" for n, v in (feeds | held).items()]
    info = helper.make_tensor_value_info
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attrs)], "g",
        [info(n, kind(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in held.items() if a is not None],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish IsInf IsNaN Log Mish "
    "Neg Not Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Identity "
    "Elu Gelu HardSigmoid LeakyRelu Selu Celu BitwiseNot Shape Size Trilu Transpose Flatten"
).split()
# Operators that are asked of usual numbers: MXNet's softmax, for one, passes no NaN on.
USUAL = "Softmax LogSoftmax Hardmax ThresholdedRelu Shrink".split()
BINARY = (
    "Add Sub Mul Div Max Min Pow Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Mod "
    "BitwiseAnd BitwiseOr BitwiseXor PRelu"
).split()
REDUCED = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


@cache
def cases():
    """Operator, feeds, constants and attributes, by a name."""
    table = {}
    for dtype in TYPES:
        x = numbers(dtype, (2, 3, 4))
        for op in UNARY:
            table[f"{op} {dtype}"] = (op, {"x": x}, {}, {})
        for op in USUAL:
            table[f"{op} {dtype}"] = (op, {"x": tame(dtype, (2, 3, 4))}, {}, {})
        for op in BINARY:
            divides = op in ("Div", "Mod", "Pow")
            b = (tame if divides else numbers)(dtype, (3, 1), 1)
            a = tame(dtype, (2, 3, 4)) if divides else x
            table[f"{op} {dtype}"] = (op, {"x": a, "b": b}, {}, {})
            table[f"{op} {dtype} const"] = (op, {"x": a}, {"b": b.reshape(-1)[:1]}, {})
            table[f"{op} {dtype} first"] = (
                (op, {"b": b}, {}, {}) if 0 else (op, {"b": b, "x": a}, {}, {})
            )
        for kind in REDUCED:
            op = f"Reduce{kind}"
            of = tame(dtype, (2, 3, 4)) if kind == "SumSquare" else x  # ORT's do not wrap around
            table[f"{op} {dtype}"] = (op, {"x": of}, {"axes": np.int64([1])}, {"keepdims": 0})
            table[f"{op} {dtype} all"] = (op, {"x": tame(dtype, (2, 3))}, {}, {"keepdims": 0})
        for other in TYPES:
            value = numbers(dtype, (2, 3, 4)) if dtype == "bool" or other in FLOATS else (
                tame(dtype, (2, 3, 4)))  # fmt: skip
            to = int(helper.np_dtype_to_tensor_dtype(np.dtype(other)))
            table[f"Cast {dtype} {other}"] = ("Cast", {"x": value}, {}, {"to": to})
        bounds = np.sort(tame(dtype, (2,), 3))
        table[f"Clip {dtype}"] = ("Clip", {"x": x}, dict(zip(("l", "h"), bounds, strict=True)), {})
        table[f"Clip {dtype} low"] = ("Clip", {"x": x}, {"l": bounds[0]}, {})
        index = np.int64([[0, -1], [2, 1]])
        table[f"Gather {dtype}"] = ("Gather", {"x": x}, {"i": index}, {"axis": 1})
        table[f"Gather {dtype} fed"] = ("Gather", {"x": x, "i": index}, {}, {"axis": 1})
        table[f"GatherElements {dtype}"] = (
            "GatherElements",
            {"x": x, "i": np.int64([[[0, 1, 1, -1]]] * 2)},
            {},
            {"axis": 1},
        )
        table[f"GatherND {dtype}"] = (
            "GatherND",
            {"x": x, "i": np.int64([[0, 1], [-1, 2]])},
            {},
            {},
        )
        table[f"ScatterND {dtype}"] = (
            "ScatterND",
            {"x": x, "i": np.int64([[0, 1], [-1, 2]]), "u": numbers(dtype, (2, 4), 5)},
            {},
            {},
        )
        table[f"ScatterElements {dtype}"] = (
            "ScatterElements",
            {"x": x, "i": np.int64([[[0, 2, 1, -1]]]), "u": numbers(dtype, (1, 1, 4), 5)},
            {},
            {"axis": 1},
        )
        table[f"Where {dtype}"] = (
            "Where",
            {"c": numbers("bool", (2, 1, 4)), "x": x, "b": numbers(dtype, (3, 1), 1)},
            {},
            {},
        )
        table[f"Concat {dtype}"] = ("Concat", {"x": x, "b": x[:, :1]}, {}, {"axis": 1})
        table[f"Pad {dtype}"] = ("Pad", {"x": x}, {"p": np.int64([1, 0, 0, 0, -1, 2])}, {})
        table[f"Pad {dtype} edge"] = (
            "Pad",
            {"x": x},
            {"p": np.int64([0, 0, 1, 0, 1, 2])},
            {"mode": "edge"},
        )
        table[f"Slice {dtype}"] = (
            "Slice",
            {"x": x},
            {"s": np.int64([-1]), "e": np.int64([-9]), "a": np.int64([2]), "t": np.int64([-2])},
            {},
        )
        table[f"Tile {dtype}"] = ("Tile", {"x": x}, {"r": np.int64([2, 1, 3])}, {})
        table[f"Expand {dtype}"] = ("Expand", {"x": x[:, :1]}, {"s": np.int64([5, 2, 3, 1])}, {})
        table[f"CumSum {dtype}"] = (
            "CumSum",
            {"x": tame(dtype, (2, 3))},
            {"a": np.int64(1)},
            {"exclusive": 1, "reverse": 1},
        )
        table[f"ArgMax {dtype}"] = ("ArgMax", {"x": tame(dtype, (2, 5))}, {}, {"axis": 1})
        table[f"ArgMin {dtype}"] = (
            "ArgMin",
            {"x": tame(dtype, (2, 5))},
            {},
            {"axis": 1, "select_last_index": 1},
        )
        table[f"OneHot {dtype}"] = (
            "OneHot",
            {"x": np.int64([0, 3, -1, 9])},
            {"d": np.int64(4), "v": tame(dtype, (2,))},
            {},
        )
        table[f"MatMul {dtype}"] = (
            "MatMul",
            {"x": tame(dtype, (2, 3, 4)), "b": tame(dtype, (4, 2))},
            {},
            {},
        )
        table[f"MatMul {dtype} vector"] = (
            "MatMul",
            {"x": tame(dtype, (4,)), "b": tame(dtype, (5, 4, 2))},
            {},
            {},
        )
        table[f"Gemm {dtype}"] = (
            "Gemm",
            {"x": tame(dtype, (3, 4)), "b": tame(dtype, (2, 4)), "c": tame(dtype, (3, 1))},
            {},
            {"transB": 1},
        )
        table[f"Mean {dtype}"] = ("Mean", {"x": x, "b": numbers(dtype, (3, 1), 1)}, {}, {})
        table[f"MaxPool {dtype}"] = (
            "MaxPool",
            {"x": tame(dtype, (1, 2, 5))},
            {},
            {"kernel_shape": [2], "pads": [1, 0]},
        )
        table[f"Resize {dtype}"] = (
            "Resize",
            {"x": tame(dtype, (1, 2, 2, 3))},
            {"roi": None, "s": np.float32([1, 1, 2, 2])},
            {"mode": "nearest"},
        )
        table[f"Split {dtype}"] = ("Split", {"x": x}, {"s": np.int64([1, 2])}, {"axis": 1})
    return table


OPERATORS = sorted({name.split()[0] for name in cases()})
CLOSE = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}


def is_valid(op, feeds):
    """Whether the standard has the operator for the types of its operands."""
    schema = onnx.defs.get_schema(op, OPSET)
    types = [type_of(a) for a in feeds.values()]
    last = len(schema.inputs) - 1
    return all(t in schema.inputs[min(i, last)].types for i, t in enumerate(types))


def type_of(array):
    name = {"float32": "float", "float64": "double"}.get(str(array.dtype), str(array.dtype))
    return f"tensor({name})"


def outcome(kind, feeds, held, attrs):
    """``right`` or ``refused``; raises where the numbers are others, or MXNet cannot run them."""
    net = model(kind, feeds, held, attrs)
    if kind == "Split":
        net.graph.node[0].output.append("z")
    runs = [v for _, v in results(net, list(feeds.values())) if not isinstance(v, Exception)]
    if not runs:
        return "unknown"
    try:
        text, arrays = encode_live(from_ir(raise_to_ir(decode(net))))
    except SerdeError:
        return "refused"
    read = set(live_mxnet().sym.load_json(text).list_inputs())
    inputs = {n: np.atleast_1d(a) for n, a in feeds.items() if n in read}
    got = run_symbol(text, {n.partition(":")[2]: t.load() for n, t in arrays.items()}, inputs)
    differing = [how for expected in runs if (how := difference(got, expected))]
    if len(differing) == len(runs):  # runtimes differ where numbers overflow, and at infinity
        raise AssertionError(differing[0])
    return "right"


def difference(got, expected):
    """How the outputs differ; None if they are the same."""
    try:
        for a, b in zip(got, map(np.asarray, expected), strict=True):
            assert (a.shape, a.dtype) == (b.shape or (1,), b.dtype)
            close = CLOSE.get(str(b.dtype), 0)
            np.testing.assert_allclose(a, b.reshape(a.shape), rtol=close, atol=close)
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("op", OPERATORS)
def test_every_type_is_right_or_refused(op):
    live_mxnet()
    outcomes, wrong = set(), []
    for name, (kind, feeds, held, attrs) in cases().items():
        if kind != op or not is_valid(kind, feeds):
            continue
        try:
            outcomes.add(outcome(kind, feeds, held, attrs))
        except Exception as error:  # MXNet's own, too
            wrong.append(f"{name}: {' '.join(str(error).split())[:200]}")
    assert wrong == []
    assert "right" in outcomes


def test_regions_of_images():
    image = np.random.default_rng(0).standard_normal((1, 2, 9, 9), np.float32)
    regions = {"r": np.float32([[0, 0, 0, 6, 6], [0, 1, 2, 8, 7]])}
    attrs = {"pooled_shape": [3, 2], "spatial_scale": 0.7}
    net = model("MaxRoiPool", {"x": image}, regions, attrs, opset=21)
    text, arrays = encode_live(from_ir(raise_to_ir(decode(net))))
    params = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    assert difference(run_symbol(text, params, {"x": image}), run_model(net, {"x": image})) is None


def test_samples_are_drawn_by_their_chances():
    net = model(
        "Multinomial", {"x": np.log(np.float32([[1, 9], [1, 1e-9]]))}, {},
        {"sample_size": 2000, "dtype": 7},
    )  # fmt: skip
    text, _ = encode_live(from_ir(raise_to_ir(decode(net))))
    (drawn,) = run_symbol(text, {}, {"x": np.log(np.float32([[1, 9], [1, 1e-9]]))})
    assert drawn.shape == (2, 2000) and drawn.dtype == np.int64
    assert 0.85 < drawn[0].mean() < 0.95 and drawn[1].max() == 0


INSIDE = """
g (int64[8] x, int64[8] y) => (int64[8] z, int64[8] moved, bool[8] less)
{{
  a = Cast <to = {code}> (x)
  b = Cast <to = {code}> (y)
  c = {op} (a, b)
  z = Cast <to = 7> (c)
  seven = Constant <value = {kind}[1] {{ 7 }}> ()
  more = Concat <axis = 0> (seven, a)
  from = Constant <value_ints = [1]> ()
  to = Constant <value_ints = [9]> ()
  same = Slice (more, from, to)
  moved = Cast <to = 7> (same)
  less = Less (a, b)
}}"""


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "BitwiseXor", "Div", "Max"])
@pytest.mark.parametrize("kind", ["int16", "uint16", "uint32"])
def test_integers_mxnet_lacks_inside_a_model(kind, op):
    """They wrap around as they would."""
    body = INSIDE.format(
        op=op, kind=kind, code=int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    )
    info = np.iinfo(kind)
    ends = [info.max, info.min, info.max - 1, info.max, 300, 5, 77, info.max // 2]
    feeds = {"x": np.array(ends), "y": np.array([3, 1, info.max, info.max, 299, 70, 7, 3])}
    net = model_of(body)
    text, arrays = encode_live(from_ir(raise_to_ir(decode(net))))
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    expected = onnx.reference.ReferenceEvaluator(net).run(None, feeds)
    for a, b in zip(run_symbol(text, held, feeds), expected, strict=True):
        np.testing.assert_array_equal(a, b)
