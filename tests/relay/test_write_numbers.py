"""Operators in live TVM against ONNX Runtime, a family in one model so that TVM compiles once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from serde.formats.onnx.reader import decode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.relay.tvm_live import run

RNG = np.random.default_rng(11)


@dataclass
class Call:
    """One node: its operands that are fed, those that are held, and its attributes."""

    op: str
    fed: list[np.ndarray]
    held: list[np.ndarray | None] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


def call(op: str, *fed: Any, held: Any = (), outputs: int = 1, **attrs: Any) -> Call:
    arrays = [None if v is None else np.asarray(v) for v in held]
    return Call(op, [np.asarray(v) for v in fed], arrays, attrs, outputs)


def f32(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def ints(dtype: str, *shape: int, low: int = -9) -> np.ndarray:
    return RNG.integers(low, 10, shape).astype(dtype)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


INF = float("inf")
DIVISOR = np.array([-3, 3, 2, -2, 7, 5], "int32")
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609.0], "float32")
TIES = np.array([[1, 3, 3, 2], [5, 5, 1, 5]], "float32")
U8, I8 = np.uint8, np.int8
FAMILIES = {
    "integers": [
        call("Div", ints("int32", 4, 6), held=[DIVISOR]),
        call("Mod", ints("int32", 4, 6), held=[DIVISOR]),
        call("Mod", ints("int32", 4, 6), held=[DIVISOR], fmod=1),
        call("Mod", f32(4, 6) * 9, held=[DIVISOR.astype("float32")], fmod=1),
        call("Sub", U8([1, 2]), U8([3, 250])),
        call("Neg", ints("int8", 5)),
        call("Pow", ints("int32", 5), held=[np.array(3, "int32")]),
        call("Pow", f32(5), held=[np.array(2, "int64")]),
        call("Clip", ints("int32", 7), held=[np.int32(-3), np.int32(4)]),
        call("Clip", f32(9), held=[None, np.float32(0.2)]),
        call("Max", ints("int64", 2, 3), ints("int64", 3), ints("int64", 1, 1)),
        call("BitShift", ints("uint8", 6, low=0), held=[U8([0, 1, 2, 7, 3, 1])], direction="LEFT"),
        call("Cast", np.array([-2.7, 2.7, 0.0, -0.3], "float32"), to=6),
        call("Cast", np.array([-2.7, 0.0, 0.3], "float32"), to=9),
        call("ReduceProd", ints("int32", 2, 3), held=[i64(1)]),
    ],
    "choices": [
        call("Round", HALVES),
        call("ArgMax", TIES, axis=1, select_last_index=0),
        call("ArgMax", TIES, axis=1, select_last_index=1),
        call("ArgMin", -TIES, axis=1, keepdims=0),
        call("TopK", TIES, held=[i64(3)], axis=1, outputs=2),
        call("TopK", ints("int32", 3, 5), held=[i64(2)], axis=0, largest=0, outputs=2),
        call("ReduceMax", np.array([[-INF, -INF], [1, INF]], "float32"), held=[i64(1)]),
        call("ReduceMin", np.array([[INF, INF], [1, -INF]], "float32"), held=[i64(1)]),
        call("Gather", f32(4, 3), held=[i64(-1, 0, -4)], axis=0),
        call("Gather", f32(4, 3), i64(-1, 2), axis=1),
        call("GatherElements", f32(3, 3), i64(-1, 0, 2).reshape(1, 3), axis=0),
        call("GatherND", f32(2, 3, 4), held=[np.array([[0, -1], [1, 2]], "int64")]),
        call("ScatterElements", f32(3, 3), held=[i64(-1, 0, 1)[None], f32(1, 3)], axis=0),
        call("ScatterND", f32(4, 2), held=[np.array([[-1], [0]], "int64"), f32(2, 2)]),
        call("CumSum", ints("int32", 2, 4), held=[np.array(-1, "int64")], exclusive=1, reverse=1),
        call("OneHot", i64(0, -1, 7), held=[np.array(4, "int64"), np.float32([2, 5])], axis=0),
        call("Where", RNG.random((2, 1)) > 0.5, f32(3), f32(1, 1)),
        call("Slice", f32(5, 4), held=[i64(-1, 3), i64(-9, 0), i64(0, 1), i64(-2, -1)]),
        call("Slice", f32(2), held=[i64(-9), i64(-9), i64(0), i64(-1)]),
        call("Pad", f32(1, 3), held=[i64(0, 2, 0, -4)]),
        call("Trilu", f32(3, 4), held=[np.array(-1, "int64")], upper=0),
        call("Hardmax", TIES, axis=1),
    ],
    "windows": [
        call("AveragePool", f32(1, 2, 7, 6), kernel_shape=[3, 2], strides=[2, 2],
             pads=[1, 0, 1, 1], ceil_mode=1),
        call("AveragePool", f32(1, 2, 7, 6), kernel_shape=[3, 3], strides=[2, 2],
             pads=[1, 1, 1, 1], count_include_pad=1),
        call("AveragePool", f32(1, 2, 9), kernel_shape=[3], strides=[2], pads=[1, 1]),
        call("MaxPool", f32(1, 2, 8, 8), kernel_shape=[2, 3], dilations=[2, 1], strides=[2, 3],
             pads=[1, 1, 0, 0], ceil_mode=1),
        call("MaxPool", f32(1, 2, 5, 6, 7), kernel_shape=[2, 3, 2], strides=[1, 2, 2]),
        call("MaxPool", ints("float32", 2, 3, 5, 6), kernel_shape=[3, 2], strides=[2, 2],
             pads=[1, 0, 1, 1], outputs=2),
        call("MaxPool", ints("float32", 1, 2, 5, 6), kernel_shape=[2, 3], strides=[2, 2],
             ceil_mode=1, storage_order=1, outputs=2),
        call("MaxPool", ints("float32", 1, 2, 9), kernel_shape=[3], dilations=[2], pads=[1, 1],
             outputs=2),
        call("MaxPool", np.zeros((1, 2, 5), "uint8"), kernel_shape=[3], pads=[2, 2], outputs=2),
        call("MaxUnpool", f32(1, 1, 2, 2), i64(0, 7, 13, 24).reshape(1, 1, 2, 2),
             held=[i64(1, 1, 5, 5)], kernel_shape=[2, 2], strides=[2, 2]),
        call("MaxUnpool", f32(1, 2, 3), i64(5, 0, 2, 13, 9, 7).reshape(1, 2, 3),
             held=[i64(1, 2, 7)], kernel_shape=[2], strides=[2], pads=[0, 1]),
        call("ConvTranspose", f32(1, 2, 3, 3), held=[f32(2, 2, 3, 3), f32(2)],
             output_shape=[10, 8], strides=[3, 2]),
        call("LpPool", f32(1, 2, 6, 6), kernel_shape=[2, 2], strides=[2, 2], p=2),
        call("Conv", f32(1, 4, 9), held=[f32(6, 2, 3), f32(6)], group=2, pads=[1, 2]),
        call("Conv", f32(1, 4, 7, 8), held=[f32(4, 1, 3, 3), f32(4)], group=4, dilations=[2, 1],
             pads=[2, 1, 1, 0], strides=[1, 2]),
        call("Conv", f32(1, 2, 5, 5, 5), held=[f32(3, 2, 2, 3, 2)], pads=[0, 1, 0, 1, 1, 0]),
        call("ConvTranspose", f32(1, 4, 4, 5), held=[f32(4, 3, 3, 3), f32(6)], group=2,
             strides=[2, 2], pads=[1, 1, 0, 1], output_padding=[1, 0]),
        call("ConvTranspose", f32(1, 2, 4, 4), held=[f32(2, 3, 2, 2)], dilations=[2, 3]),
        call("ConvTranspose", f32(1, 2, 6), held=[f32(2, 3, 3)], strides=[2]),
    ],
    "layers": [
        call("BatchNormalization", f32(3, 4), held=[f32(4), f32(4), f32(4), abs(f32(4))]),
        call("BatchNormalization", f32(2, 4, 5), held=[f32(4), f32(4), f32(4), abs(f32(4))]),
        call("InstanceNormalization", f32(2, 3, 4, 5), held=[f32(3), f32(3)]),
        call("LayerNormalization", f32(2, 3, 4), held=[f32(4), f32(4)], axis=-1),
        call("LayerNormalization", f32(2, 3, 4), held=[f32(3, 4)], axis=1),
        call("LRN", f32(1, 6, 3, 3), size=3, alpha=0.2, beta=0.6, bias=1.5),
        call("PRelu", f32(2, 3, 4), held=[f32(3, 1)]),
        call("PRelu", f32(2, 3, 4), held=[f32(4)]),
        call("Softplus", f32(6) * 60),
        call("Gemm", f32(3, 2), held=[f32(4, 3), f32(4)], transA=1, transB=1, alpha=0.5, beta=2.0),
        call("MatMul", f32(2, 1, 3, 4), f32(5, 4, 2)),
        call("MatMul", f32(4), f32(3, 4, 2)),
        call("Einsum", f32(2, 3, 4), f32(4, 3), equation="bij,ji->bi"),
        call("ReduceLogSumExp", f32(2, 3) * 90, held=[i64(1)]),
        call("Resize", f32(1, 2, 4, 5), held=[None, None, i64(1, 2, 7, 3)], mode="linear"),
        call("Resize", f32(1, 2, 4, 5), held=[None, None, i64(1, 2, 8, 7)], mode="cubic"),
        call("Resize", f32(1, 2, 4, 5), held=[None, np.float32([1, 1, 1.7, 2])], mode="nearest"),
        call("DepthToSpace", f32(1, 8, 2, 3), blocksize=2, mode="CRD"),
    ],
    "quantized": [
        call("QuantizeLinear", np.float32([-2.5, -1.5, 0.5, 1.5, 700]), held=[np.float32(1), U8(3)]),
        call("QuantizeLinear", f32(2, 3) * 9, held=[np.float32([1, 2, 3]), I8([0, 1, 2])], axis=1),
        call("DequantizeLinear", ints("uint8", 2, 3, low=0), held=[np.float32([1, 2]), U8([1, 3])],
             axis=0),
        call("MatMulInteger", ints("uint8", 2, 3, low=0), held=[ints("int8", 3, 4), U8(4), I8(1)]),
        call("MatMulInteger", ints("int8", 2, 1, 3, 5), ints("uint8", 3, 5, 4, low=0),
             held=[I8(-4), U8(131)]),
        call("MatMulInteger", ints("uint8", 3, 5, low=0), ints("int8", 5), U8(3)),
        call("MatMulInteger", ints("uint8", 3, 5, low=0), held=[ints("int8", 5, 2), None, I8([1, 2])]),
        call("ConvInteger", ints("uint8", 1, 4, 6, 5, low=0), held=[ints("int8", 6, 2, 3, 2), U8(7)],
             group=2, pads=[1, 0, 2, 1], strides=[2, 1]),
        call("ConvInteger", ints("uint8", 1, 3, 6, low=0), held=[ints("uint8", 3, 1, 2, low=0), U8(9)],
             group=3, dilations=[2], pads=[1, 1]),
        call("DequantizeLinear", ints("int8", 2, 3), held=[np.float32([0.1, 2, 3])], axis=-1),
        call("DequantizeLinear", ints("int8", 2, 3), np.float32([0.1]), I8([3])),
        call("DequantizeLinear", ints("int32", 2, 3), held=[np.float32(0.1)]),
        call("DequantizeLinear", ints("int16", 2, 6), held=[np.float32([[1, 2], [3, 4]]),
             np.int16([[1, -2], [0, 3]])], axis=1, block_size=3),
        call("DynamicQuantizeLinear", f32(3, 4), outputs=3),
        call("QLinearConv", ints("uint8", 1, 2, 5, 5, low=0),
             held=[np.float32(0.1), U8(3), ints("int8", 3, 2, 3, 3), np.float32([0.2, 0.1, 0.3]),
                   I8([0, 0, 0]), np.float32(0.4), U8(7), ints("int32", 3)]),
        call("QLinearMatMul", ints("uint8", 2, 3, low=0),
             held=[np.float32(0.1), U8(3), ints("uint8", 3, 4, low=0), np.float32(0.2), U8(5),
                   np.float32(0.3), U8(9)]),
    ],
    "recurrent": [
        call("LSTM", f32(4, 2, 3), held=[f32(2, 20, 3), f32(2, 20, 5), f32(2, 40)], hidden_size=5,
             direction="bidirectional", outputs=3),
        call("GRU", f32(4, 2, 3), held=[f32(1, 15, 3), f32(1, 15, 5), f32(1, 30)], hidden_size=5,
             linear_before_reset=1, outputs=2),
        call("GRU", f32(4, 2, 3), held=[f32(1, 15, 3), f32(1, 15, 5), f32(1, 30),
             np.array([4, 2], "int32")], hidden_size=5, direction="reverse", outputs=2),
        call("RNN", f32(4, 2, 3), held=[f32(1, 5, 3), f32(1, 5, 5)], hidden_size=5, clip=0.7,
             activations=["Relu"], outputs=2),
        *(  # a sequence without elements; its last state is 0, not the initial one
            call(op, f32(2, 3, 2), held=[f32(1, n * 3, 2), f32(1, n * 3, 3), None,
                 np.array([2, 0, 1], "int32"), *[f32(1, 3, 3)] * (2 if op == "LSTM" else 1)],
                 hidden_size=3, outputs=3 if op == "LSTM" else 2)
            for op, n in (("GRU", 3), ("LSTM", 4), ("RNN", 1))
        ),
    ],
}  # fmt: skip


def model_of(calls: list[Call], known: bool = True) -> tuple[Any, dict[str, np.ndarray]]:
    """One model of all the calls, and what it is fed; sizes of that are told or not."""
    nodes, inputs, outputs, held, feeds = [], [], [], [], {}
    for at, one in enumerate(calls):
        names = []
        for k, array in enumerate(one.fed):
            names.append(f"x{at}_{k}")
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            sizes = array.shape if known else [None] * array.ndim
            inputs.append(helper.make_tensor_value_info(names[-1], kind, sizes))
            feeds[names[-1]] = array
        for k, array in enumerate(one.held):
            names.append("" if array is None else f"w{at}_{k}")
            held += [] if array is None else [numpy_helper.from_array(array, names[-1])]
        results = [f"y{at}_{k}" for k in range(one.outputs)]
        nodes.append(helper.make_node(one.op, names, results, **one.attrs))
        outputs += [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    opset = helper.make_opsetid("", 21)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10), feeds


OPEN = [
    call("MatMul", f32(3, 4), f32(4, 5)),
    call("MatMul", f32(3, 1), f32(1, 5)),
    call("MatMul", f32(2, 3, 4), f32(2, 4, 5)),
    call("MatMul", f32(3, 4), held=[f32(4, 5)]),
    call("Einsum", f32(3), f32(4), equation="i,j->ij"),
    call("Conv", f32(1, 4, 7, 8), held=[f32(6, 2, 3, 3), f32(6)], group=2, pads=[1, 0, 1, 0]),
    call("Conv", f32(1, 4, 7, 8), held=[f32(8, 1, 3, 2), f32(8)], group=4, pads=[1, 0, 1, 1],
         strides=[2, 1], dilations=[1, 2]),
    call("Conv", f32(1, 4, 9), held=[f32(6, 4, 3)], pads=[1, 0]),
    call("ConvTranspose", f32(1, 4, 4, 5), held=[f32(4, 3, 3, 3)], strides=[2, 2],
         pads=[1, 0, 0, 1], output_padding=[1, 0]),
    call("ConvTranspose", f32(1, 4, 4, 5), held=[f32(4, 3, 3, 3), f32(6)], strides=[2, 2], group=2),
    call("DequantizeLinear", ints("int8", 2, 3), held=[np.float32(0.1), I8(4)]),
    call("MatMulInteger", ints("uint8", 2, 3, low=0), held=[ints("int8", 3, 4), U8(4)]),
    call("QLinearConv", ints("uint8", 1, 2, 5, 5, low=0),
         held=[np.float32(0.1), U8(3), ints("int8", 3, 2, 3, 3), np.float32([0.2, 0.1, 0.3]),
               I8([0, 0, 0]), np.float32(0.4), U8(7), ints("int32", 3)]),
]  # fmt: skip


def f16(*shape: int, low: float = 1.0) -> np.ndarray:
    """Halves from ``low`` to 2, whose sums of many TVM's float16 does not hold."""
    return RNG.uniform(low, 2, shape).astype("float16")


ROW = (2, 70_000)  # more than the largest float16, 65,504
STATIC_ONLY = {"LRN"}  # operators that Relay has with a known number of channels only
HALF_SUMS = [
    *(
        call(op, f16(*ROW, low=low), held=[i64(1)])
        for op, low in (
            ("ReduceMean", 1), ("ReduceSum", -2), ("ReduceL1", -0.1), ("ReduceL2", 1),
            ("ReduceSumSquare", -2), ("ReduceLogSum", 1), ("ReduceLogSumExp", 1),
        )
    ),
    call("Softmax", f16(2, 9000), axis=1),
    call("LogSoftmax", f16(2, 9000), axis=1),
    call("LpNormalization", f16(*ROW), axis=1, p=2),
    call("CumSum", f16(2, 5000), held=[i64(1)]),
    call("GlobalAveragePool", f16(1, 2, 300, 300)),
    call("AveragePool", f16(1, 2, 300, 300), kernel_shape=[270, 290]),
    call("InstanceNormalization", f16(1, 2, 300, 300), held=[f16(2), f16(2)]),
    call("MeanVarianceNormalization", f16(1, 2, 300, 300)),
    call("LRN", f16(1, 9, 3, 3), size=9),
    call("MatMul", f16(2, 9000), held=[f16(9000, 3, low=-2)]),
    call("Gemm", f16(2, 9000), held=[f16(3, 9000, low=-2), f16(3)], transB=1),
    call("Conv", f16(1, 900, 4, 4), held=[f16(2, 900, 3, 3, low=-2), f16(2)]),
    call("ConvTranspose", f16(1, 900, 4, 4), held=[f16(900, 2, 3, 3, low=-2), f16(2)]),
    call("Einsum", f16(2, 9000), held=[f16(3, 9000, low=-2)], equation="ij,kj->ik"),
]  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
def test_sums_of_halves_are_float32(known):
    """ONNX Runtime rounds to float16 once."""
    calls = HALF_SUMS if known else [c for c in HALF_SUMS if c.op not in STATIC_ONLY]
    compare(calls, *model_of(calls, known), tolerance=2e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers(family):
    compare(FAMILIES[family], *model_of(FAMILIES[family]))


def test_products_of_bytes_stay_so():
    """In operators of their own, where sizes are known."""
    graph = from_ir(tidy(raise_to_ir(decode(model_of(FAMILIES["quantized"])[0]))))
    counts = Counter(n.op for n in graph.nodes if n.op.startswith("qnn."))
    assert counts == {"qnn.conv2d": 3, "qnn.dense": 3, "qnn.batch_matmul": 1, "qnn.dequantize": 3}


def test_numbers_where_all_sizes_are_open():
    compare(OPEN, *model_of(OPEN, known=False))


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("noop", [0, 1])
def test_axes_that_are_computed_or_none(op, keepdims, noop):
    form = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    axes = [i64(), i64(1), i64(-1, 0)]
    x = f32(2, 3, 4)
    fed = [call(op, x, a, **form) for a in axes if a.size or op == "ReduceSum"]
    calls = [*fed, *(call(op, x, held=[a], **form) for a in axes[1:])]
    compare(calls, *model_of(calls))


def compare(calls, model, feeds, tolerance=2e-5):
    """What TVM makes of the model against what ONNX Runtime does."""
    graph = from_ir(tidy(raise_to_ir(decode(model))))
    module, weights = to_module(graph)
    inputs = {v.name: feeds[v.name] for v in graph.inputs}
    outputs = run("json", to_json(module), inputs | {n: t.load() for n, t in weights.items()})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])  # fmt: skip
    names = [o.name for o in session.get_outputs()]
    for name, got, expected in zip(names, outputs, session.run(None, feeds), strict=True):
        op = calls[int(name[1:].partition("_")[0])].op
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), f"{name} of {op}"
        np.testing.assert_allclose(
            got, expected, rtol=tolerance, atol=tolerance, err_msg=f"{name} of {op}"
        )
