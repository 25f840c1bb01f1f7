"""A network of ONNX that is built node by node for any number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
OPSET = 17
ELEMENTS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


class Network:
    """The nodes, weights and inputs so far; weights depend on the seed alone, not on the batch.

    ``feeds`` has one sample of each input more than once: what is drawn for ``batch`` samples.
    """

    def __init__(self, seed: int, batch: int, opset: int = OPSET) -> None:
        self.draws = np.random.default_rng(seed)
        self.seed, self.batch, self.opset = seed, batch, opset
        self.nodes: list[onnx.NodeProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, Array] = {}
        self.batch_axes: dict[str, int] = {}  # of inputs and outputs

    def input(self, name: str, shape: Shape, axis: int = 0, draw: str = "normal") -> str:
        """An input of one sample's ``shape`` beside the batch, which lies on ``axis``."""
        generator = np.random.default_rng((self.seed, len(self.inputs), 7))
        samples = [draw_sample(generator, draw, shape) for _ in range(self.batch)]
        array = np.stack(samples, axis)
        self.feeds[name], self.batch_axes[name] = array, axis
        element = ELEMENTS[array.dtype.kind]
        self.inputs.append(helper.make_tensor_value_info(name, element, array.shape))
        return name

    def const(self, value: Any, dtype: str = "float32") -> str:
        """A constant."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        """A constant list of integers."""
        return self.const(values, "int64")

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """A drawn weight, of the scale that keeps the size of numbers."""
        drawn = self.draws.standard_normal(shape)
        return self.const(drawn * (scale or max(np.prod(shape[1:]), 1) ** -0.5))

    def samples(self, *shape: int, axis: int = 0) -> str:
        """A drawn constant of one sample, once for each sample along ``axis``."""
        drawn = np.expand_dims(self.draws.standard_normal(shape), axis)
        return self.const(np.repeat(drawn, self.batch, axis))

    def op(self, operator: str, *operands: str, **attributes: Any) -> str:
        """The one result of a node."""
        return self.ops(operator, 1, *operands, **attributes)[0]

    def ops(self, operator: str, count: int, *operands: str, **attributes: Any) -> list[str]:
        """The results of a node of several."""
        results = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        node = helper.make_node(operator, operands, results, f"n{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        return results

    def output(self, value: str, axis: int = 0, element: int = TensorProto.FLOAT) -> None:
        """Make a value an output, its samples along ``axis``."""
        self.nodes.append(helper.make_node("Identity", [value], [f"out{len(self.outputs)}"]))
        self.batch_axes[f"out{len(self.outputs)}"] = axis
        self.outputs.append(helper.make_tensor_value_info(f"out{len(self.outputs)}", element, None))

    def model(self) -> onnx.ModelProto:
        """The model, with inferred shapes."""
        graph = helper.make_graph(self.nodes, "network", self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        if any(n.domain == "com.microsoft" for n in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        opsets += [helper.make_opsetid(d, 1) for d in sorted({f.domain for f in self.functions})]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=8, functions=self.functions
        )
        inferred = onnx.shape_inference.infer_shapes(model)
        inferred.graph.ClearField("value_info")
        return inferred

    # Shorter ways to common nodes.

    def reshape(self, x: str, *shape: int) -> str:
        """A Reshape to a constant shape."""
        return self.op("Reshape", x, self.ints(*shape))

    def transpose(self, x: str, *perm: int) -> str:
        """A Transpose."""
        return self.op("Transpose", x, perm=perm)

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """A Slice along one axis."""
        bounds = (self.ints(start), self.ints(end), self.ints(axis), self.ints(step))
        return self.op("Slice", x, *bounds)

    def linear(self, x: str, inward: int, outward: int) -> str:
        """A product with weights, and a bias."""
        product = self.op("MatMul", x, self.weight(inward, outward, scale=inward**-0.5))
        return self.op("Add", product, self.weight(outward, scale=0.1))


def draw_sample(generator: np.random.Generator, kind: str, shape: Sequence[int]) -> Array:
    """One sample of an input; ``kind`` may end in a number: the largest position, say."""
    word, _, number = kind.partition(":")
    limit = int(number or 0)
    if word == "positions":  # that end at the largest
        return np.arange(limit - int(np.prod(shape)), limit).reshape(shape)
    if word == "integers":
        return generator.integers(0, limit, shape)
    scale = {"normal": 1.0, "quiet": 1e-4, "loud": 1e4, "uniform": 1.0}[word]
    drawn = generator.random(shape) if word == "uniform" else generator.standard_normal(shape)
    return (scale * drawn).astype(np.float32)
