"""A random graph: leaves and steps by name, and the ONNX model of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_CODES

Array = Any  # np.ndarray, a list of them for a sequence, or None for an empty optional
Dims = tuple[int | str, ...]
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13, 27: 14, 28: 14}
FED = frozenset(  # element types of NumPy itself, in which the runtimes take arrays
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool object".split()
)


@dataclass
class Body:
    """A subgraph: what it is given by name, its steps, its constants and what it returns."""

    inputs: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


@dataclass
class Step:
    """One node; bodies are attributes, too. An operand that is left out is an empty name."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    session: Any = field(default=None, compare=False, repr=False)

    @property
    def bodies(self) -> dict[str, Body]:
        """The subgraphs by attribute."""
        return {name: v for name, v in self.attrs.items() if isinstance(v, Body)}


@dataclass
class Program:
    """A graph with its inputs: ``dims`` has the declared shape of each, sizes by name included.

    ``data`` are sets of inputs with what the steps compute of them, all values by name.
    """

    seed: int
    opset: int
    dims: dict[str, Dims] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    data: list[dict[str, Array]] = field(default_factory=list)

    @property
    def is_symbolic(self) -> bool:
        """Whether inputs have sizes by name."""
        return any(isinstance(d, str) for dims in self.dims.values() for d in dims)

    def feeds(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs among values."""
        return {name: values[name] for name in self.dims}


def dtype_of(value: Array) -> DType:
    """The element type of an array, or of a sequence's."""
    return DType.of(value[0].dtype) if isinstance(value, list) else DType.of(value.dtype)


def code_of(value: Array) -> int:
    """ONNX's code of the element type."""
    return ELEMENT_CODES[dtype_of(value)]


def is_fed(value: Array) -> bool:
    """Whether runtimes take and return such an array in Python."""
    return isinstance(value, list) or value.dtype.name in FED


def info(name: str, value: Array, dims: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    """The declaration of a value, of any shape if ``dims`` is None."""
    if isinstance(value, list):
        kind = helper.make_tensor_type_proto(code_of(value), None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(kind))
    return helper.make_tensor_value_info(name, code_of(value), dims)


def tensor(name: str, value: Array) -> onnx.TensorProto:
    """A constant."""
    if value.dtype == object:
        texts = [str(s).encode() for s in value.ravel()]
        return helper.make_tensor(name, TensorProto.STRING, value.shape, texts)
    return numpy_helper.from_array(np.asarray(value), name)


def make_node(step: Step, values: Mapping[str, Array]) -> onnx.NodeProto:
    """The node of a step; ``values`` tell the types of what enters and leaves bodies."""
    node = helper.make_node(step.op, step.inputs, step.outputs)
    for name, value in step.attrs.items():
        if isinstance(value, Body):
            value = make_body(value, values)
        elif isinstance(value, np.ndarray):
            value = tensor("", value)
        node.attribute.append(helper.make_attribute(name, value))
    return node


def make_body(body: Body, values: Mapping[str, Array]) -> onnx.GraphProto:
    """The graph of a body."""
    return helper.make_graph(
        [make_node(s, values) for s in body.steps],
        "body",
        [info(n, values[n]) for n in body.inputs],
        [info(n, values[n]) for n in body.outputs],
        [tensor(n, a) for n, a in body.constants.items()],
    )


def make_model(program: Program, outputs: Iterable[str] | None = None) -> onnx.ModelProto:
    """The model of a program. What runtimes do not return leaves it as float32."""
    values = program.data[0]
    names = list(program.outputs if outputs is None else outputs)
    nodes = [make_node(s, values) for s in program.steps]
    infos = []
    for name in names:
        if is_fed(values[name]):
            infos.append(info(name, values[name]))
            continue
        nodes.append(helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT))
        infos.append(helper.make_tensor_value_info(f"{name}_f", TensorProto.FLOAT, None))
    inputs = [info(n, values[n], dims) for n, dims in program.dims.items()]
    constants = [tensor(n, a) for n, a in program.constants.items()]
    graph = helper.make_graph(nodes, "differential", inputs, infos, constants)
    version = IR_VERSIONS[program.opset]
    return helper.make_model(
        graph, ir_version=version, opset_imports=[helper.make_opsetid("", program.opset)]
    )


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Every step, those of bodies included."""
    for step in steps:
        yield step
        for body in step.bodies.values():
            yield from all_steps(body.steps)


def names_read(step: Step) -> set[str]:
    """The values that a step and its bodies read, without those that are the bodies' own."""
    names = {n for n in step.inputs if n}
    for body in step.bodies.values():
        own = {*body.inputs, *body.constants, *(n for s in body.steps for n in s.outputs)}
        names |= {*body.outputs, *(n for s in body.steps for n in names_read(s))} - own
    return names
