"""A model of float32 as one that computes in float16."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from serde.errors import UsageError
from serde.ir.graph import Attr, DType, Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.ir.values_read import captured_values
from serde.passes.body_links import CONTROL_FLOW
from serde.passes.cse import merge_repeats
from serde.passes.dce import drop_dead
from serde.passes.float16_range import SMALLEST, Float32Parts, find_float32_parts
from serde.passes.name_constants import name_constants_apart
from serde.passes.number_sizes import LARGEST
from serde.spec import schema
from serde.spec.number_traits import LEAVING_FLOAT16
from serde.spec.schema import ELEMENT_CODES


def to_float16(graph: Graph, keep: Collection[str] = (), ends: bool = False) -> Graph:
    """Return ``graph`` with weights and arithmetic in float16, in bodies too.

    In float32 stay what ``find_float32_parts`` tells, the operators in ``keep``, those without
    float16, and those with an operand whose element type is not known. So do inputs and outputs,
    unless ``ends`` is set; inputs that are indices, places, lengths or angles stay so.

    Raises:
        UsageError: for a name in ``keep`` that is no operator, and where ``ends`` is set for a
            model that has float16 among its inputs and outputs already.
    """
    if unknown := [op for op in keep if schema.first_version(op) is None]:
        raise UsageError(f"fp16_keep names no operator of ONNX: {', '.join(unknown)}")
    halves = [v.name for v in (*graph.inputs, *graph.outputs) if v.dtype is DType.FLOAT16]
    if ends and halves:
        raise UsageError(f"fp16_io: {', '.join(halves)} is float16 already: leave out fp16_io")
    return _Halver(graph, find_float32_parts(graph, LEAVING_FLOAT16.union(keep)), ends).run()


class _Halver:
    """The values of a graph and its bodies in float16, as far as they are there.

    A value of the graph itself is its float32. What a body takes, gives and hands from turn to turn
    stays float32. ``places`` has for each value the nodes so far of the graph or body that it is
    of: casts are put there, and serve the bodies inside.
    """

    def __init__(self, graph: Graph, kept: Float32Parts, ends: bool) -> None:
        self.graph, self.kept = graph, kept
        self.halves: dict[Value, Value] = {}
        self.places: dict[Value, list[Node]] = {}
        self.singles = set(graph.inputs)  # that exist in float32
        ends_ = {*graph.inputs, *graph.outputs} - kept.inputs if ends else set()
        self.ends = {v for v in ends_ if v.dtype is DType.FLOAT32 and not v.container}

    def run(self) -> Graph:
        nodes: list[Node] = []
        inputs = tuple(map(self.halve_input, self.graph.inputs))
        self.places.update(dict.fromkeys(self.graph.inputs, nodes))
        self.convert_nodes(self.graph, nodes)
        outputs = tuple(map(self.end, self.graph.outputs))
        if not self.halves:
            return replace(self.graph, notes=(*self.graph.notes, describe_nothing(self.graph)))
        graph = replace(self.graph, inputs=inputs, nodes=tuple(nodes), outputs=outputs)
        return name_constants_apart(merge_repeats(drop_dead(self.name_values(graph))))

    def convert_nodes(self, graph: Graph, nodes: list[Node]) -> None:
        """Append what becomes of the nodes of a graph or body to ``nodes``."""
        for node in graph.nodes:
            self.places.update(dict.fromkeys(node.outputs, nodes))
            ties = self.halved_ties(node)
            nodes.append(self.halve(node, ties) if ties else self.keep_single(node))

    def convert_body(self, body: Graph) -> Graph:
        nodes: list[Node] = []
        self.singles.update(body.inputs)
        self.places.update(dict.fromkeys(body.inputs, nodes))
        self.convert_nodes(body, nodes)
        for value in body.outputs:
            self.single(value)
        return replace(body, nodes=tuple(nodes))

    def name_values(self, graph: Graph) -> Graph:
        """Give the names of values to their float16 where that is all there is, and at the ends."""
        instead: dict[Value, Value] = {}
        for value, half in self.halves.items():
            if value.tensor is None and (value in self.ends or value not in self.singles):
                half.name = value.name
                if value in self.singles:
                    instead[value] = replace(value, name=f"{value.name}/float32")
        nodes = tuple(self.rename_results(node, instead) for node in graph.nodes)
        return replace_values(replace(graph, nodes=nodes), instead)

    def rename_results(self, node: Node, instead: Mapping[Value, Value]) -> Node:
        """A node with its results' last values; casts are called as what they compute."""
        outputs = tuple(instead.get(v, v) for v in node.outputs)
        is_new = node.op == "Cast" and not node.sources
        return replace(node, outputs=outputs, name=outputs[0].name if is_new else node.name)

    def halve_input(self, value: Value) -> Value:
        if value not in self.ends:
            return value
        self.singles.discard(value)
        return self.new_half(value)

    def end(self, value: Value) -> Value:
        """An output in the type that is asked for."""
        if value in self.ends:
            return self.half(value)
        self.single(value)
        return value

    def halved_ties(self, node: Node) -> frozenset[str]:
        """The type variables of a node that become float16; none where it stays.

        Every operand and result of such a variable is known to be float32.
        """
        if node.domain or node in self.kept.nodes or node.graphs():
            return frozenset()
        operator = schema.operator(node.op)
        last = len(operator.outputs) - 1
        operands = [(operator.input(i), v) for i, v in enumerate(node.inputs) if v is not None]
        results = [(operator.outputs[min(i, last)], v) for i, v in enumerate(node.outputs)]
        others = {f.tie for f, v in (*operands, *results)
                  if v.dtype is not DType.FLOAT32 or v.container}  # fmt: skip
        ties = {f.tie for f, _ in operands if DType.FLOAT16 in f.types} - others
        is_tied = all(f.tie in ties for f, v in results if v.dtype is DType.FLOAT32)
        return frozenset(ties) if is_tied else frozenset()

    def halve(self, node: Node, ties: Collection[str]) -> Node:
        operator = schema.operator(node.op)
        inputs = tuple(
            self.half(v) if v is not None and operator.input(i).tie in ties else v
            for i, v in enumerate(node.inputs)
        )
        outputs = tuple(self.new_half(v) if v.dtype is DType.FLOAT32 else v for v in node.outputs)
        return replace(node, inputs=inputs, outputs=outputs)

    def keep_single(self, node: Node) -> Node:
        """A node as it is, with bodies that are converted."""
        bodies: dict[str, Attr] = {}
        for name, body in node.attrs.items():
            if isinstance(body, Graph) and node.op in CONTROL_FLOW and not node.domain:
                bodies[name] = self.convert_body(body)
            elif isinstance(body, Graph):
                for captured in captured_values(body):
                    self.single(captured)
        for value in node.inputs:
            if value is not None:
                self.single(value)
        self.singles.update(node.outputs)
        return replace(node, attrs={**node.attrs, **bodies}) if bodies else node

    def new_half(self, value: Value) -> Value:
        self.halves[value] = Value(f"{value.name}/float16", DType.FLOAT16, value.shape)
        return self.halves[value]

    def half(self, value: Value) -> Value:
        """A value in float16, cast where it is not there."""
        if value not in self.halves and value.tensor is not None:
            self.halves[value] = halve_constant(value)
        elif value not in self.halves:
            source = self.clip(value) if value in self.kept.beyond else value
            self.places[value].append(cast(source, self.new_half(value)))
        return self.halves[value]

    def clip(self, value: Value) -> Value:
        """A value within the range of float16."""
        ends = (-LARGEST, LARGEST)
        bounds = [Value(f"{value.name}/{name}", DType.FLOAT32, (), Tensor.of(np.array(end, "f")))
                  for name, end in zip(("min", "max"), ends, strict=True)]  # fmt: skip
        clipped = Value(f"{value.name}/Clip", DType.FLOAT32, value.shape)
        node = Node("Clip", (value, *bounds), (clipped,), {}, "", clipped.name)
        self.places[value].append(node)
        return clipped

    def single(self, value: Value) -> None:
        """See to it that a value is there in float32."""
        if value in self.halves and value not in self.singles and value.tensor is None:
            self.places[value].append(cast(self.halves[value], value))
            self.singles.add(value)


def describe_nothing(graph: Graph) -> str:
    """Why nothing became float16."""
    floats = [n for n in graph.all_nodes() if any(v.dtype is DType.FLOAT32 for v in n.outputs)]
    if not floats:
        return "fp16: nothing became float16: no operator computes in float32"
    ops = list(dict.fromkeys(n.qualified_op for n in floats))
    shown = ", ".join(ops[:6]) + (", …" if len(ops) > 6 else "")
    return f"fp16: nothing became float16: here float32 is needed by {shown}"


def cast(x: Value, y: Value) -> Node:
    """The node that makes ``y`` of ``x`` by changing its type."""
    attrs: dict[str, Attr] = {"to": ELEMENT_CODES[y.type], "saturate": 1, "round_mode": "up"}
    return Node("Cast", (x,), (y,), attrs, "", y.name)


def halve_constant(value: Value) -> Value:
    """A constant in float16; numbers that it has not become the next that is no infinity, nor 0."""
    tensor = value.tensor
    assert tensor is not None

    def load() -> np.ndarray:
        x = tensor.load().astype(np.float32)
        near = np.where(np.isfinite(x), np.clip(x, -LARGEST, LARGEST), x)
        is_tiny = (np.abs(near) < SMALLEST) & (near != 0)
        return np.where(is_tiny, np.copysign(np.float32(SMALLEST), near), near).astype(np.float16)

    return replace(value, dtype=DType.FLOAT16, tensor=Tensor(DType.FLOAT16, tensor.shape, load))
