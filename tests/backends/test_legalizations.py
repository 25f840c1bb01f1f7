"""Operators that a backend lacks, expressed by others: the same numbers, and no way without end."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest

from serde.backends.expressions import express_lacking
from serde.backends.legalizations import EXPRESSIONS
from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to_target
from serde.legalize.target import Target
from serde.pipeline import load
from testing.onnx_live import run_model

OPSET = 20
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 4, 3, 4), np.float32) * 3
MATRICES = {"x": X[0, 0], "w": X[1, 0].T.copy()}
# A body for each operator, and the inputs.
BODIES = {
    "Abs": "y = Abs(x)",
    "BatchNormalization": "y = BatchNormalization(x, s, s, s, s)",
    "Clip": "y = Clip(x, l, h)",
    "DepthToSpace": "y = DepthToSpace<blocksize = 2>(x)",
    "Div": "y = Div(x, d)",
    "Dropout": "y = Dropout(x)",
    "Flatten": "y = Flatten(x)",
    "Gather": "y = Gather<axis = 1>(x, o)",
    "Gemm": "y = Gemm<alpha = 0.5>(x, w)",
    "GlobalAveragePool": "y = GlobalAveragePool(x)",
    "GlobalMaxPool": "y = GlobalMaxPool(x)",
    "HardSigmoid": "y = HardSigmoid<alpha = 0.3>(x)",
    "LRN": "y = LRN<size = 3>(x)",
    "LeakyRelu": "y = LeakyRelu<alpha = 0.1>(x)",
    "LogSoftmax": "y = LogSoftmax(x)",
    "MatMul": "y = MatMul(x, w)",
    "Max": "y = Max(x, z)",
    "Mean": "y = Mean(x, d)",
    "Min": "y = Min(x, d)",
    "Neg": "y = Neg(x)",
    "PRelu": "y = PRelu(x, p)",
    "Pow": "y = Pow(x, c)",
    "Reciprocal": "y = Reciprocal(x)",
    "ReduceMean": "y = ReduceMean(x, a)",
    "Relu": "y = Relu(x)",
    "Resize": "y = Resize<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , t)",
    "Selu": "y = Selu(x)",
    "Sigmoid": "y = Sigmoid(x)",
    "Softmax": "y = Softmax(x)",
    "Softplus": "y = Softplus(x)",
    "Softsign": "y = Softsign(x)",
    "SpaceToDepth": "y = SpaceToDepth<blocksize = 2>(x)",
    "Split": "y, q = Split<axis = 1, num_outputs = 2>(x)",
    "Squeeze": "u = Identity(x) y = Squeeze(x, n)",
    "Sub": "y = Sub(x, d)",
    "Sum": "y = Sum(x, d, x)",
    "Unsqueeze": "y = Unsqueeze(x, n)",
    **{op: f"y = {op}(x, a)" for op in
       ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceMin", "ReduceSumSquare")},
}  # fmt: skip
CONSTANTS = (
    "<float l = {-1}, float h = {1.5}, float d = {7}, float z = {0}, float c = {3}, "
    "int64[2] a = {2, 3}, int64 o = {2}, int64[1] n = {1}, float[4] t = {1, 1, 2, 3}, float[4] s = {1, 2, 3, 4}, "
    "float[4,1,1] p = {0.1, 0.2, 0.3, 0.4}>"
)


# Constants of expressions that hold for some only.
OTHER_CONSTANTS = {("Pow", "Sqrt"): ("c", 0.5), ("Div", "Mul"): ("d", -8)}


def make_feeds(op):
    if op in ("Gemm", "MatMul"):
        return MATRICES
    x = np.abs(X) + 0.1 if op in ("ReduceLogSum", "Reciprocal") else X
    x = X[..., :2, :] if op == "SpaceToDepth" else x
    return {"x": X[:, :1].copy() if op == "Squeeze" else np.ascontiguousarray(x)}


def make_model(op, body=None):
    feeds = make_feeds(op)
    shown = ", ".join(f"float[{','.join(map(str, v.shape))}] {n}" for n, v in feeds.items())
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": {OPSET}]> g ({shown}) => (float y) {CONSTANTS} '
        f"{{ {body or BODIES[op]} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    used = {name for node in model.graph.node for name in node.input}
    kept = [t for t in model.graph.initializer if t.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model, feeds


def lower(model, supported):
    target = Target("t", OPSET, {op: {} for op in supported},
                    legalizations=express_lacking(supported, EXPRESSIONS))  # fmt: skip
    return lower_to_target(load(decode(model), format="onnx"), target)


@pytest.mark.parametrize("at", range(len(EXPRESSIONS)))
def test_an_expression_computes_the_same(at):
    op, needs = EXPRESSIONS[at].op, EXPRESSIONS[at].needs
    model, feeds = make_model(op)
    if (op, *needs) in OTHER_CONSTANTS:
        name, number = OTHER_CONSTANTS[(op, *needs)]
        constant = next(t for t in model.graph.initializer if t.name == name)
        constant.CopyFrom(onnx.numpy_helper.from_array(np.array(number, np.float32), name))
        feeds = {"x": np.abs(X)}
    graph = lower(model, {*needs, "Identity", "Gather", "Mul", "Add"} - {op})
    assert op not in {n.op for n in graph.nodes}
    expected, outputs = run_model(model, feeds), run_model(to_proto(graph), feeds)
    np.testing.assert_allclose(outputs[0], expected[0], 1e-5, 1e-6)


def test_a_rounded_quotient_is_what_it_was():
    model, _ = make_model("Div", "q = Div(x, d) y = Floor(q)")
    for divisor in (3, 7, 41, 255):
        d = next(t for t in model.graph.initializer if t.name == "d")
        d.CopyFrom(onnx.numpy_helper.from_array(np.array(divisor, "f"), "d"))
        x = np.resize(np.arange(4096, dtype=np.float32), X.shape)
        for start in range(0, 4096, X.size):
            feeds = {"x": x + start}
            graph = lower(model, {"Mul", "Add", "Sub", "Floor", "Clip"})
            assert (run_model(model, feeds)[0] == run_model(to_proto(graph), feeds)[0]).all()


# What an operator is made of where one way does not hold, and another needs what is expressed
# itself: the body, and the operators of the backend.
IN_TURN = {
    "Div": ("y = Div(x, d)", {"Mul", "Add", "Max", "Min"}),  # by 7: Sub, Clip
    "Mean": ("y = Mean(x, d, d)", {"Mul", "Add", "Max", "Min"}),  # Sum, Div by 3
    # Max of 0 alone is expressed by Relu: ways that need others are no ways.
    "Abs": ("y = Abs(x)", {"Mul", "Add", "Relu"}),
    "Clip": ("y = Clip(x, l, h)", {"Mul", "Add", "Relu"}),
    "HardSigmoid": ("y = HardSigmoid<alpha = 0.3>(x)", {"Mul", "Add", "Relu"}),
    "HardSwish": ("y = HardSwish(x)", {"Mul", "Add", "Relu"}),
}


@pytest.mark.parametrize("op", IN_TURN)
def test_a_way_is_taken_whose_operators_are_expressed_in_turn(op):
    body, supported = IN_TURN[op]
    model, feeds = make_model(op, body)
    graph = lower(model, supported)
    assert {n.op for n in graph.nodes} == supported
    outputs = (run_model(m, feeds)[0] for m in (model, to_proto(graph)))
    np.testing.assert_allclose(*outputs, 1e-6, 1e-6)


def test_no_expression_leads_back_to_itself():
    rng = random.Random(0)
    operators = sorted({op for e in EXPRESSIONS for op in (e.op, *e.needs)})
    graphs = {op: load(decode(make_model(op)[0]), format="onnx") for op in BODIES}
    for _ in range(40):
        supported = set(rng.sample(operators, rng.randint(1, len(operators) // 2)))
        for op, graph in graphs.items():
            try:
                target = Target("t", OPSET, {op: {} for op in supported},
                                legalizations=express_lacking(supported, EXPRESSIONS))  # fmt: skip
                lower_to_target(graph, target)
            except SerdeError as error:
                assert "does not end" not in str(error), (op, supported)


@pytest.mark.parametrize("bounds", ["l, h", "z, h", "l", "z", ", h", "h, l"])
def test_elements_cut_by_relu_are_those_of_clip(bounds):
    model, _ = make_model("Clip", f"y = Clip(x, {bounds})")
    graph = lower(model, {"Relu", "Add", "Mul"})
    assert {n.op for n in graph.nodes} <= {"Relu", "Add", "Mul"}
    x = X.copy()
    x[0, 0, 0] = [3e38, -3e38, 1e30, -1e30]
    if len(bounds) == 4:  # where one is open ONNX Runtime makes infinities finite
        x[0, 0, 0, :2] = [np.inf, -np.inf]
    x[0, 0, 1] = [-1, 1.5, 0, 1e-6]
    expected, outputs = (run_model(m, {"x": x})[0] for m in (model, to_proto(graph)))
    np.testing.assert_allclose(outputs, expected, 2e-7, 4e-7)


def test_bounds_that_would_swallow_small_numbers_are_not_cut_by_relu():
    model, _ = make_model("Clip", "y = Clip(x, b)")
    b = onnx.numpy_helper.from_array(np.array(-1e6, np.float32), "b")
    model.graph.initializer.append(b)
    with pytest.raises(SerdeError, match="t has no Max"):
        lower(model, {"Relu", "Add", "Mul"})


def test_quotients_of_infinities_are_infinite():
    model, _ = make_model("Div")
    graph = lower(model, {"Mul", "Add", "Sub", "Clip"})
    x = X.copy()
    x[0, 0, 0] = [np.inf, -np.inf, np.finfo(np.float32).max, np.nan]
    expected, outputs = (run_model(m, {"x": x})[0] for m in (model, to_proto(graph)))
    np.testing.assert_allclose(outputs, expected, 3e-7)


@pytest.mark.parametrize("body", ["y = Max(x, w)", "y = Pow(x, w)"])
def test_constants_of_more_axes_broadcast(body):
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": {OPSET}]> g (float[2] x) => (float[1,2] y) '
        f"<float[1,1] w = {{{0 if 'Max' in body else 2}}}> {{ {body} }}"
    )
    with pytest.raises(SerdeError, match="t has no (Max|Pow)"):
        lower(model, {"Relu", "Mul"})


def test_repeated_pixels_are_a_transposed_convolution():
    model, feeds = make_model("Resize")
    graph = lower(model, {"ConvTranspose"})
    assert [n.op for n in graph.nodes] == ["ConvTranspose"]
    feeds["x"][0, 0, 0] = [np.inf, -np.inf, 0, 1]
    expected, outputs = (run_model(m, feeds)[0] for m in (model, to_proto(graph)))
    np.testing.assert_array_equal(outputs, expected)


def test_what_is_listed_stays():
    model, _ = make_model("Div")
    assert [n.op for n in lower(model, {"Div", "Mul", "Add"}).nodes] == ["Div"]


REPEATED = {  # types, sizes, factors, and how pixels are found
    "an image": ("float[2,3,4,5]", "1,1,2,2", "asymmetric", "floor"),
    "integers": ("uint8[2,3,4,5]", "1,1,3,2", "half_pixel", "round_prefer_ceil"),
    "a batch by name": ("float[N,3,4,5]", "1,1,2,4", "asymmetric", "floor"),
    "a sequence": ("float16[2,3,7]", "1,1,4", "half_pixel", "round_prefer_floor"),
    "a volume": ("float[1,2,2,3,4]", "1,1,2,2,2", "asymmetric", "floor"),
    "batch and channels": ("float[2,3,2,2]", "2,3,1,2", "asymmetric", "floor"),
    "a batch by name that is repeated": ("float[N,3]", "2,2", "asymmetric", "floor"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_elements_are_joined_copies(name):
    """Where a list has nothing else for them: YOLO's and PaddleOCR's nearest Resize."""
    kind, factors, coordinates, rounding = REPEATED[name]
    dtype, sizes = kind.rstrip("]").split("[")
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": {OPSET}]> g ({kind} x) => ({dtype} y) '
        f'<float[{factors.count(",") + 1}] t = {{{factors}}}> {{ y = Resize<mode = "nearest", '
        f'coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}">(x, , t) }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    graph = lower(model, {"Concat", "Reshape"})
    assert {n.op for n in graph.nodes} == {"Concat", "Reshape"}
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(
        model.graph.input[0].type.tensor_type.elem_type
    )
    shape = [int(size.replace("N", "3")) for size in sizes.split(",")]
    x = RNG.uniform(0, 200, shape).astype(numpy_type)
    expected, outputs = (run_model(m, {"x": x})[0] for m in (model, to_proto(graph)))
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("factors", ["1,1,1.5,1.5", "1,1,0.5,0.5"])
def test_what_repeats_no_elements_needs_other_operators(factors):
    model, _ = make_model("Resize")
    t = next(t for t in model.graph.initializer if t.name == "t")
    t.CopyFrom(onnx.numpy_helper.from_array(np.float32(factors.split(",")), "t"))
    with pytest.raises(SerdeError, match="t has no Gather"):
        lower(model, {"Concat", "Reshape"})
