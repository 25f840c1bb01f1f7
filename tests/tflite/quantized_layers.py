"""Models of one quantized layer, and what LiteRT computes of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.formats.tflite.from_ir import from_ir
from testing.onnx_live import PLAIN, run_at
from tests.tflite.litert_live import run_both

KINDS = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16}
# Name: operator, shapes of what is computed and of constants, attributes, what it becomes.
LAYERS = {
    "conv": ("Conv", [(1, 3, 6, 5)], [(4, 3, 3, 3), (4,)], {"pads": [1, 1, 1, 1]}, "CONV_2D"),
    "conv without bias": ("Conv", [(1, 3, 6, 5)], [(4, 3, 3, 3)], {"strides": [2, 2]}, "CONV_2D"),
    "conv padded unevenly": (
        "Conv", [(1, 3, 6, 5)], [(4, 3, 3, 3), (4,)], {"pads": [0, 2, 1, 0]}, "CONV_2D",
    ),
    "depthwise": (
        "Conv", [(1, 4, 6, 5)], [(4, 1, 3, 3), (4,)], {"group": 4}, "DEPTHWISE_CONV_2D",
    ),
    "grouped": ("Conv", [(1, 4, 6, 5)], [(6, 2, 3, 3), (6,)], {"group": 2}, "CONV_2D"),
    "conv of one axis": ("Conv", [(1, 3, 9)], [(4, 3, 3), (4,)], {}, "CONV_2D"),
    "transposed by channel": (
        "ConvTranspose", [(1, 6, 4, 4)], [(6, 1, 4, 4), (6,)],
        {"group": 6, "strides": [2, 2], "pads": [1, 1, 1, 1]}, "DEPTHWISE_CONV_2D",
    ),
    "transposed by groups": (
        "ConvTranspose", [(1, 4, 4, 4)], [(4, 3, 3, 3), (6,)],
        {"group": 2, "strides": [2, 2], "dilations": [1, 2]}, "CONV_2D",
    ),
    "transposed": (
        "ConvTranspose", [(1, 3, 4, 4)], [(3, 5, 2, 2), (5,)], {"strides": [2, 2]},
        "TRANSPOSE_CONV",
    ),
    "transposed to twice the size": (
        "ConvTranspose", [(1, 3, 4, 4)], [(3, 5, 3, 3), (5,)],
        {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}, "TRANSPOSE_CONV",
    ),
    "transposed as SAME": (
        "ConvTranspose", [(1, 3, 4, 4)], [(3, 5, 4, 4), (5,)],
        {"strides": [2, 2], "pads": [1] * 4}, "TRANSPOSE_CONV",
    ),
    "gemm": ("Gemm", [(2, 6)], [(5, 6), (5,)], {"transB": 1}, "FULLY_CONNECTED"),
    "matmul of weights": ("MatMul", [(1, 3, 6)], [(6, 5)], {}, "FULLY_CONNECTED"),
    "matmul": ("MatMul", [(2, 3, 6), (2, 6, 4)], [], {}, "BATCH_MATMUL"),
    "add": ("Add", [(1, 3, 4, 4), (1, 3, 4, 4)], [], {}, "ADD"),
    "add of a row": ("Add", [(2, 3, 4), (4,)], [], {}, "ADD"),
    "sub": ("Sub", [(2, 3), (2, 3)], [], {}, "SUB"),
    "mul": ("Mul", [(2, 3), (2, 3)], [], {}, "MUL"),
    "concat": ("Concat", [(2, 3), (2, 5)], [], {"axis": 1}, "CONCATENATION"),
    "max": ("Max", [(2, 3), (2, 3)], [], {}, "MAXIMUM"),
    "max pool": (
        "MaxPool", [(1, 2, 6, 6)], [], {"kernel_shape": [3, 3], "pads": [1, 0, 0, 1]},
        "MAX_POOL_2D",
    ),
    "global average": ("GlobalAveragePool", [(1, 3, 5, 5)], [], {}, "MEAN"),
    "relu": ("Relu", [(2, 7)], [], {}, "RELU"),
    "leaky relu": ("LeakyRelu", [(2, 7)], [], {"alpha": 0.3}, "LEAKY_RELU"),
    "hard swish": ("HardSwish", [(2, 7)], [], {}, "HARD_SWISH"),
    "hard sigmoid": ("HardSigmoid", [(2, 70)], [], {"alpha": 1 / 6, "beta": 0.5}, "ADD"),
    "elu": ("Elu", [(2, 7)], [], {}, "ELU"),
    "gelu": ("Gelu", [(2, 7)], [], {}, "GELU"),
    "exp": ("Exp", [(2, 7)], [], {}, "EXP"),
    "softmax": ("Softmax", [(2, 7)], [], {"axis": 1}, "SOFTMAX"),
    "sigmoid": ("Sigmoid", [(2, 7)], [], {}, "LOGISTIC"),
    "tanh": ("Tanh", [(2, 7)], [], {}, "TANH"),
    "transpose": ("Transpose", [(2, 3, 4)], [], {"perm": [2, 0, 1]}, "TRANSPOSE"),
}  # fmt: skip
OF_16_BITS = (
    "conv", "depthwise", "gemm", "add", "mul", "matmul of weights", "concat", "max pool",
    "global average", "softmax", "sigmoid", "hard sigmoid",
)  # fmt: skip
IN_FLOATS = {  # what has no kernel for integers, or none of these scales
    "sqrt": ("Sqrt", [(2, 7)], [], {}, "SQRT"),
    "divide": ("Div", [(2, 3), (2, 3)], [], {}, "DIV"),
    "pool to much finer steps": (
        "AveragePool", [(1, 2, 8, 8)], [], {"kernel_shape": [7, 7]}, "AVERAGE_POOL_2D",
    ),
}  # fmt: skip
# What has a kernel whose steps are larger than those of the result: 1.25 steps off at most.
OF_OTHER_SCALES = {
    "pool": ("AveragePool", [(1, 2, 6, 6)], [], {"kernel_shape": [2, 1]}, "AVERAGE_POOL_2D"),
    "hyperbolic tangent": ("Tanh", [(2, 70)], [], {}, "TANH"),
}  # fmt: skip


def step_of(array: np.ndarray, kind: str) -> tuple[np.float32, int]:
    """A scale and a zero point for numbers, with 0 among those that are exact."""
    bounds = np.iinfo(KINDS[kind])
    if kind == "int16":
        return np.float32(np.abs(array).max() / bounds.max), 0
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    scale = np.float32((high - low) / 255)
    return scale, int(np.clip(round(bounds.min - low / scale), bounds.min, bounds.max))


class Writer:
    """Grows a model of one quantized layer."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add_constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op: str, inputs: list[str], **attrs) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attrs))
        return f"v{len(self.nodes) - 1}"

    def scales(self, scale, zero, kind) -> list[str]:
        return [
            self.add_constant(np.asarray(scale, np.float32)),
            self.add_constant(np.asarray(zero, kind)),
        ]


def layer_model(row, kind: str, by_channel: bool, seed: int = 0):
    """A model of one layer of quantized operands, its inputs, and the scale of its result.

    Weights are int8, but for those of uint8 with a zero point beside uint8 and one scale of all.
    """
    op, shapes, weights, attrs, _ = row
    rng = np.random.default_rng(seed)
    feeds = {f"x{n}": rng.standard_normal(s).astype(np.float32) for n, s in enumerate(shapes)}
    if op in ("Sqrt", "Div"):
        feeds = {name: np.abs(x) + 0.5 for name, x in feeds.items()}
    plain = Writer()
    arrays = [rng.standard_normal(s).astype(np.float32) for s in weights]
    names = [*feeds, *(plain.add_constant(a) for a in arrays)]
    plain.node(op, names, **attrs)
    (real,) = run_at(PLAIN, model_of(plain, feeds, "v0", TensorProto.FLOAT), feeds)
    if op in ("Softmax", "Sigmoid"):
        real = np.asarray([0, 1])  # the range that kernels have one scale for
    w = Writer()
    operands, units = [], []
    for name, x in feeds.items():
        scale, zero = step_of(x, kind)
        q = w.node("QuantizeLinear", [name, *w.scales(scale, zero, KINDS[kind])])
        operands.append(w.node("DequantizeLinear", [q, *w.scales(scale, zero, KINDS[kind])]))
        units.append(scale)
    if arrays:
        axis = {"ConvTranspose": 1, "MatMul": 1}.get(op, 0)
        others = tuple(a for a in range(arrays[0].ndim) if a != axis)
        scale = np.abs(arrays[0]).max(others if by_channel else None) / 127
        zero, dtype = np.zeros(np.shape(scale), np.int8), np.int8
        if kind == "uint8" and not by_channel:
            scale, zero = step_of(arrays[0] + 0.3, kind)
            dtype = np.uint8
        along = [-1 if a == axis and by_channel else 1 for a in range(arrays[0].ndim)]
        steps = np.rint(arrays[0] / scale.reshape(along)) + np.reshape(zero, along)
        bounds = np.iinfo(dtype)
        q = np.clip(steps, bounds.min, bounds.max).astype(dtype)
        operands.append(w.node("DequantizeLinear", [w.add_constant(q), *w.scales(scale, zero, dtype)],
                               axis=axis))  # fmt: skip
        for bias in arrays[1:]:
            unit = np.resize(units[0] * scale, bias.shape).astype(np.float32)
            q = np.rint(bias / unit).astype(np.int32)
            zeros = np.zeros(bias.shape, np.int32)
            operands.append(w.node("DequantizeLinear", [w.add_constant(q), *w.scales(unit, zeros, np.int32)],
                                   axis=0))  # fmt: skip
    y = w.node(op, operands, **attrs)
    scale, zero = step_of(real, kind)
    q = w.node("QuantizeLinear", [y, *w.scales(scale, zero, KINDS[kind])])
    out = w.node("DequantizeLinear", [q, *w.scales(scale, zero, KINDS[kind])])
    return model_of(w, feeds, out, TensorProto.FLOAT), feeds, float(scale)


def model_of(w: Writer, feeds, output: str, dtype: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info(output, dtype, None)]
    graph = helper.make_graph(w.nodes, "g", inputs, outputs, w.constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def compare(worker, model: onnx.ModelProto, feeds, folder: Path, step: float) -> Counter:
    """Compare with ONNX Runtime; the operators, each with the type of its result."""
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    graph = serde.load(folder / "m.onnx")
    serde.save(graph, folder / "m.tflite")
    (expected,) = run_at(PLAIN, model, feeds)
    for (got,) in run_both(worker, folder / "m.tflite", [*feeds.values()]):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1.01 * step)
    return Counter((n.op, n.outputs[0].type.name.lower()) for n in from_ir(graph).nodes)
