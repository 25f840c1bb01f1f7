"""A small network in the making."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

Array = np.ndarray[Any, Any]
Draw = np.random.Generator
CODES = {np.dtype(t): helper.np_dtype_to_tensor_dtype(np.dtype(t))
         for t in ("float32", "int64", "int32", "bool")}  # fmt: skip


@dataclass
class Network:
    """A network in the making; ``apply`` adds a node and returns the name of its result."""

    rng: Draw
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    feeds: dict[str, Array] = field(default_factory=dict)

    def apply(self, op: str, *inputs: Any, count: int = 1, **attrs: Any) -> Any:
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, names, outputs, **attrs))
        return outputs[0] if count == 1 else outputs

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def feed(self, array: Array) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return name

    def floats(self, *shape: int, scale: float = 1.0) -> str:
        return self.feed((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def weights(self, *shape: int) -> Array:
        fan = int(np.prod(shape[:-1])) if len(shape) == 2 else int(np.prod(shape[1:]))
        return (self.rng.standard_normal(shape) / np.sqrt(max(fan, 1))).astype(np.float32)

    def counts(self, *shape: int, most: int = 1 << 24) -> str:
        """Integers of all sizes up to ``most``, as floats."""
        exponents = self.rng.uniform(0, np.log2(most), shape)
        kind = self.rng.choice([np.int64, np.int32])
        return self.apply("Cast", self.feed((2.0**exponents).astype(kind)), to=1)

    def positions(self, *shape: int) -> str:
        kind = self.rng.choice([np.int64, np.int32])
        return self.feed(self.rng.integers(0, 8192, shape).astype(kind))

    def choose(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def model(self, *outputs: str) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(n, CODES[a.dtype], a.shape)
                  for n, a in self.feeds.items()]  # fmt: skip
        ends = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        tensors = [from_array(a, n) for n, a in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, ends, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)
