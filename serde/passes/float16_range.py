"""Which nodes of a model need float32, where the others compute in float16.

float16 has 11 bits and ends at 65504. It has not every integer above 2048, so that an index or a
place loses its last digits, and sums of many numbers or of squares leave its range.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.links import Links

LARGEST, SMALLEST = 65504.0, 2.0**-24  # finite numbers of float16 that are not 0
SMALLEST_NORMAL = 2.0**-14  # below it digits are lost
# Operators whose sums or squares leave the range of float16, or that count or place by floats.
KEPT = frozenset(
    "AffineGrid CumSum DeformConv DequantizeLinear DynamicQuantizeLinear GridSample LRN "
    "LpNormalization LpPool MeanVarianceNormalization NonMaxSuppression QuantizeLinear Range "
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSum ReduceSumSquare "
    "RoiAlign".split()
)
COUNTING = frozenset({"CumSum", "Range"})  # whose results are places
LARGE = frozenset(
    {"Exp", "ReduceL1", "ReduceLogSumExp", "ReduceProd", "ReduceSum", "ReduceSumSquare"}
)
# The operand that places are read from, by operator.
PLACES = {"DeformConv": 2, "GridSample": 1, "NonMaxSuppression": 0, "OneHot": 0, "RoiAlign": 1}
COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
SCALING = frozenset({"Div", "Mod", "Mul"})
MOVING = frozenset(
    "Concat Expand Flatten Gather GatherElements GatherND Identity Pad Reshape ScatterElements "
    "ScatterND Slice Split Squeeze Tile Transpose Unsqueeze Where".split()
)
ARITHMETIC = SCALING | frozenset("Abs Add Ceil Clip Floor Max Min Neg Round Sub Sum".split())
REDUCING = frozenset("AveragePool GlobalAveragePool Mean ReduceMax ReduceMean ReduceMin".split())
ROOTS = frozenset({"Log", "Pow", "Reciprocal", "Sqrt"})  # which make large numbers small
MASKING = frozenset({"Add", "Clip", "Max", "Min", "Pad", "Sub", "Where"})  # take any large number
FEW = 4096  # elements of a constant that is looked at


@dataclass
class Float32Parts:
    """What stays in float32: nodes, by identity, and inputs that are indices, places or lengths.

    ``beyond`` are results that may be larger than float16 has, by a constant: a mask of -1e9.
    """

    nodes: set[Node] = field(default_factory=set)
    inputs: set[Value] = field(default_factory=set)
    beyond: set[Value] = field(default_factory=set)


def find_float32_parts(graph: Graph, keep: Collection[str] = KEPT) -> Float32Parts:
    """What of ``graph`` has to stay in float32, the operators of ``keep`` among it.

    * Numbers that become integers or places, or are looked for by ``Equal``, and the arithmetic
      before them; that with integers of more than 8 bits, and comparisons with these.
    * Sums, squares that are added up, and exponentials, up to the root, logarithm or quotient that
      brings them back.
    * Factors, and parameters of normalizations, that float16 lacks.
    """
    return _Finder(graph, keep).run()


class _Finder:
    """The parts found so far; ``places`` are exact numbers, ``sums`` large ones."""

    def __init__(self, graph: Graph, keep: Collection[str]) -> None:
        self.graph, self.keep, self.links = graph, keep, Links(graph)
        self.parts = Float32Parts()
        self.places: set[Value] = set()
        self.sums: set[Value] = set()
        floats = (v for v in graph.constants() if v.dtype is DType.FLOAT32)
        self.too_large = set(filter(is_too_large, floats))

    def run(self) -> Float32Parts:
        for node in self.graph.nodes:
            self.follow(node)
        for node in self.graph.nodes:
            for value in self.find_places(node):
                self.add(node)
                self.keep_origin(value)
        for node in self.graph.nodes:  # with the places found
            self.follow(node)
        return self.parts

    def follow(self, node: Node) -> None:
        """See whether a node has to stay, by what it reads."""
        floats = [v for v in find_floats(node) if v.tensor is None]
        is_placing = is_flowing(node) and floats and self.places.issuperset(floats)
        if node.domain:
            return
        if node.op in COUNTING or is_count(node) or is_placing:
            self.add(node)
            self.places.update(node.outputs)
        elif self.is_summing(node, floats):
            self.add(node)
            self.sums.update(node.outputs)
        elif node.op in self.keep or self.is_mixed(node, floats) or self.loses_constant(node):
            self.add(node)

    def is_summing(self, node: Node, floats: Collection[Value]) -> bool:
        """Whether the results of a node are large, or computed of large ones alone."""
        if node.op in LARGE or self.is_added_square(node):
            return True
        is_passing = is_flowing(node) or node.op in REDUCING
        return is_passing and self.is_large(floats)

    def is_mixed(self, node: Node, floats: Collection[Value]) -> bool:
        """Whether a node makes other numbers of large ones or places."""
        if node.op in SCALING | COMPARISONS:
            return not self.places.isdisjoint(floats)
        return node.op in ROOTS and self.is_large(floats)

    def add(self, node: Node) -> None:
        """Keep a node in float32."""
        self.parts.nodes.add(node)
        is_beyond = node.op not in MASKING and not self.too_large.isdisjoint(node.inputs)
        if is_beyond or not self.parts.beyond.isdisjoint(node.inputs):
            self.parts.beyond.update(node.outputs)

    def loses_constant(self, node: Node) -> bool:
        """Whether a constant that a result is proportional to would be another in float16."""
        if node.op in MASKING:
            return False
        return not self.too_large.isdisjoint(node.inputs) or has_tiny_factor(node)

    def is_large(self, values: Collection[Value]) -> bool:
        """Whether there are values, and all may be large."""
        return bool(values) and all(v in self.sums or v in self.places for v in values)

    def is_added_square(self, node: Node) -> bool:
        """Whether a node computes squares that are added up."""
        is_square = node.op == "Mul" and node.inputs[0] is node.inputs[1]
        if not is_square and node.op != "Pow":
            return False
        readers = self.links.readers.get(node.outputs[0], ())
        return any(n.op in REDUCING or n.op == "ReduceSum" for n in readers)

    def find_places(self, node: Node) -> Collection[Value]:
        """The operands of a node that have to be exact, since they become integers or places."""
        floats = find_floats(node)
        if node.domain or not floats:
            return ()
        at = PLACES.get(node.op)
        if at is not None and at < len(node.inputs):
            return [v for v in floats if v is node.inputs[at]]
        is_compared = node.op in COMPARISONS and not self.places.isdisjoint(floats)
        is_cast = node.op in ("Cast", "CastLike") and node.outputs[0].type.kind in "iu"
        return floats if is_compared or is_cast or node.op == "Equal" else ()

    def keep_origin(self, value: Value) -> None:
        """Keep the arithmetic that a number comes from, up to other operators."""
        stack = [value]
        while stack:
            value = stack.pop()
            if value.tensor is not None or value in self.places:
                continue
            node = self.links.makers.get(value)
            if node is None:
                self.places.add(value)
                self.parts.inputs.add(value)
            elif not node.domain and is_flowing(node):
                self.add(node)
                self.places.update(node.outputs)
                stack += find_floats(node)


def is_flowing(node: Node) -> bool:
    """Whether a node moves numbers, or computes with them one by one."""
    return node.op in MOVING or node.op in ARITHMETIC


def find_floats(node: Node) -> list[Value]:
    """The operands of float32."""
    return [v for v in node.inputs if v is not None and v.dtype is DType.FLOAT32]


def is_count(node: Node) -> bool:
    """Whether a node makes floats of integers that float16 may lack."""
    if node.op != "Cast" or node.outputs[0].dtype is not DType.FLOAT32:
        return False
    source = node.inputs[0]
    return source is not None and source.type.kind in "iu" and source.type.bits > 8


def is_too_large(constant: Value) -> bool:
    """Whether a constant of few elements has a finite number beyond float16."""
    assert constant.tensor is not None
    if constant.tensor.size > FEW:
        return False
    numbers = constant.array()
    return bool((np.abs(numbers[np.isfinite(numbers)]) > LARGEST).any())


def has_tiny_factor(node: Node) -> bool:
    """Whether the one constant of a product or quotient is a number that float16 has few digits
    of.
    """
    constants = [v for v in find_floats(node) if v.tensor is not None]
    if node.op not in SCALING or len(constants) != 1 or constants[0].tensor.size != 1:  # type: ignore[union-attr]
        return False
    return bool(0 < abs(constants[0].array().item()) < SMALLEST_NORMAL)
