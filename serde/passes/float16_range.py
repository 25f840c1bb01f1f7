"""Which nodes of a model need float32, where the others compute in float16.

float16 has 11 bits, ends at 65504 and loses digits below 6e-5. It has not every integer above 2048,
so that an index, a place or an angle loses its last digits, and sums of many numbers or of squares
leave its range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.body_links import list_nodes
from serde.passes.float16_nodes import (
    SCALED_DOWN,
    find_factor,
    find_floats,
    has_tiny_factor,
    is_accumulating,
    is_inverse,
    is_long_mean,
    is_root,
    is_small_factor,
    is_square,
    is_training,
)
from serde.passes.number_sizes import Sizes
from serde.spec.number_traits import (
    ADDING_UP,
    COUNTING,
    GROWING,
    KEEPS,
    LEAVING_FLOAT16,
    MATRIX_PRODUCTS,
    MEANS,
    PERIODIC,
    PLACES,
    ROOTS,
    SATURATING,
    SCALING,
    SELECTING,
    SUMS,
    is_elementwise,
)
from serde.spec.traits import COMPARISONS, MOVES

SMALLEST = 2.0**-24  # the smallest number of float16 that is not 0
MASKING = SELECTING | SUMS  # take any large number
EXACT = frozenset({"BitCast", "Equal"})  # operators to which the last bit matters
SORTING = frozenset({"ArgMax", "ArgMin", "TopK"})
FEW = 4096  # elements of a constant that is looked at
SMALL_ANGLE = 8.0  # below it float16 has angles to 0.004
BRINGING_BACK = ROOTS | ADDING_UP | MEANS | {"Div"}
REDUCING = MEANS | ADDING_UP | {"ReduceMax", "ReduceMin"}


@dataclass
class Float32Parts:
    """What stays in float32: nodes, by identity, and inputs that are places, lengths or angles.

    ``beyond`` are results that may be larger than float16 has, and are clipped to it.
    """

    nodes: set[Node] = field(default_factory=set)
    inputs: set[Value] = field(default_factory=set)
    beyond: set[Value] = field(default_factory=set)


def find_float32_parts(graph: Graph, keep: Collection[str] = LEAVING_FLOAT16) -> Float32Parts:
    """What of ``graph`` and its bodies has to stay in float32, the operators of ``keep`` among it.

    * Every reader of a count, a place or a number that may be beyond the range; so on from its
      result, until something brings it back.
    * What angles of ``Sin``, ``Cos`` and ``Tan``, numbers that become integers or places, and those
      looked for by ``Equal`` are computed from, back to their origin.
    * Sums, squares and products, and exponentials, up to the root, logarithm or quotient that
      brings them back.
    * What is added to sums of squares, as distances are, and operators that sort these.
    * Means of many numbers, and normalizations.
    * Factors, and parameters of normalizations, that float16 lacks.
    """
    return _Finder(graph, keep).run()


class _Finder:
    """The parts found so far; ``places`` are exact numbers, ``sums`` ones that may be large."""

    def __init__(self, graph: Graph, keep: Collection[str]) -> None:
        self.keep, self.inputs = keep, set(graph.inputs)
        self.nodes = list(list_nodes(graph))
        self.makers: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for y in node.outputs:
                self.makers.setdefault(y, []).append(node)
        self.parts = Float32Parts()
        self.places: set[Value] = set()
        self.sums: set[Value] = set()
        self.squares: set[Value] = set()  # sums of them
        self.factors: set[tuple[Value, bool]] = set()  # whose products are kept
        self.saturated = find_saturated(self.nodes, graph.outputs)
        self.sizes = Sizes(graph, self.nodes, self.saturated)
        self.divided = find_divided(self.nodes, graph.outputs)
        through = MATRIX_PRODUCTS | REDUCING
        self.rooted = find_divided(self.nodes, graph.outputs, ROOTS, through)

    def run(self) -> Float32Parts:
        for node in self.nodes:
            is_compared = node.op in COMPARISONS and any(
                v in self.places or self.sizes[v].is_exact for v in find_floats(node)
            )
            for value in find_floats(node) if is_compared else find_places(node):
                self.keep_origin(node, value)
            if node.op in ("Div", "Mul") and not node.domain:
                self.find_divided_product(node)
        for value, makers in self.makers.items():
            for node in makers if len(makers) > 1 else ():
                self.keep_sums(node.inputs[0], value)
        before = None
        while before != (len(self.places), len(self.sums)):
            before = len(self.places), len(self.sums)
            for node in self.nodes:
                self.follow(node)
        return self.parts

    def find_divided_product(self, node: Node) -> None:
        """See whether a quotient has products of matrices that may be large.

        Of data as numerator or divisor; of any as the numerator of a number that float16 lacks.
        """
        divisor = node.inputs[1] if node.op == "Div" else None
        is_large = divisor is not None and self.is_too_large(divisor)
        if has_tiny_factor(node) or is_large:
            for value in find_floats(node):
                self.keep_products(value)
        elif divisor is not None and divisor.tensor is None and not self.sizes[divisor].is_known:
            for value in find_floats(node):
                self.keep_products(value, of_data=True)

    def find_distance(self, node: Node, floats: Collection[Value]) -> None:
        """Keep the products that are taken from sums of squares: their digits cancel."""
        is_sum = node.op == "ReduceSumSquare"
        is_sum |= node.op == "ReduceSum" and any(
            is_square(m) for v in floats for m in self.makers.get(v, ())
        )
        is_passed = is_elementwise(node.op) and not self.squares.isdisjoint(floats)
        if is_passed and node.op in SUMS:
            for value in floats:
                if value not in self.squares:
                    self.keep_products(value)
        if is_sum or is_passed:
            self.squares.update(node.outputs)

    def keep_products(self, value: Value, of_data: bool = False) -> None:
        """Keep products of matrices that elementwise operators alone make ``value`` of."""
        waiting = [value]
        while waiting:
            if (value := waiting.pop(), of_data) in self.factors:
                continue
            self.factors.add((value, of_data))
            makers = self.makers.get(value, [])
            while len(makers) == 1 and is_elementwise(makers[0].op) and not makers[0].domain:
                floats = [v for v in find_floats(makers[0]) if v.tensor is None]
                makers = self.makers.get(floats[0], []) if len(floats) == 1 else []
            for maker in makers:
                floats = [v for v in find_floats(maker) if v.tensor is None]
                if maker.op in MATRIX_PRODUCTS and len(floats) > of_data and not maker.domain:
                    self.keep_node(maker)
                    self.sums.update(maker.outputs)
                    waiting += floats

    def keep_sums(self, value: Value | None, start: Value) -> None:
        """Keep what a turn of a loop adds to a state: float16 would lose all but the first turns.

        ``value`` is the state after a turn, ``start`` the one before.
        """
        readers: dict[Value, list[Node]] = {}
        waiting = [] if value is None or value is start else [value]
        while waiting:
            for node in self.makers.get(waiting.pop(), ()):
                is_adding = not node.domain and node.op in SUMS | {"Identity"}
                for operand in find_floats(node) if is_adding else ():
                    if operand not in readers and operand is not start:
                        waiting.append(operand)
                    readers.setdefault(operand, []).append(node)
        waiting = [start]
        while waiting:
            for node in readers.pop(waiting.pop(), ()):
                self.keep_node(node)
                waiting += node.outputs

    def follow(self, node: Node) -> None:
        """See whether a node has to stay, by what it reads."""
        if node.domain:
            return
        floats = [v for v in find_floats(node) if v.tensor is None]
        self.find_distance(node, floats)
        is_placing = is_elementwise(node.op) and floats and self.places.issuperset(floats)
        if node.op in COUNTING or is_placing:
            self.keep_node(node)
            self.places.update(node.outputs)
        if self.is_summing(node, floats):
            self.keep_node(node)
            self.sums.update(node.outputs)
        elif (
            node.op in self.keep or node.op in PERIODIC
            or is_accumulating(node) or is_training(node) or is_long_mean(node)
            or self.loses_constant(node)
            or any(self.needs_float32(node, v) for v in floats)
            or any(self.is_beyond(y) for y in node.outputs)
        ):  # fmt: skip
            self.keep_node(node)

    def keep_node(self, node: Node) -> None:
        """Keep a node in float32."""
        self.parts.nodes.add(node)
        self.parts.beyond.update(
            y for y in node.outputs if y in self.sums or self.sizes[y].is_large or (
                node.op not in MASKING and any(map(self.is_too_large, find_floats(node)))
            )
        )  # fmt: skip

    def is_beyond(self, value: Value) -> bool:
        """Whether a result may be beyond the range, where that matters."""
        size = self.sizes[value]
        is_mask = size.is_mask and value in self.saturated
        return value.dtype is DType.FLOAT32 and size.is_large and not is_mask

    def is_too_large(self, value: Value) -> bool:
        """Whether a constant of few elements has a finite number beyond float16."""
        tensor = value.tensor
        return tensor is not None and tensor.size <= FEW and self.sizes[value].is_large

    def needs_float32(self, node: Node, value: Value) -> bool:
        """Whether an operand has to be read in float32."""
        size = self.sizes[value]
        is_place = value in self.places or size.is_exact or size.is_large
        if is_place and size.is_mask and node.op in MASKING:
            return not self.saturated.issuperset(node.outputs)
        is_root = node.op in ROOTS or node.op == "Div"
        is_sorted = node.op in SORTING and value in self.squares
        return is_place or is_sorted or (is_root and value in self.sums)

    def is_summing(self, node: Node, floats: Collection[Value]) -> bool:
        """Whether the results of a node may be large, or are computed of such numbers alone."""
        if node.op in GROWING or self.is_large_product(node, floats):
            return True
        if node.op in ("Div", "Reciprocal") and self.is_beyond(node.inputs[-1]):  # type: ignore[arg-type]
            return True
        is_passing = is_elementwise(node.op) or node.op in REDUCING or is_inverse(node)
        is_product = node.op in MATRIX_PRODUCTS and len(floats) == 1
        is_passing |= is_product and node.outputs[0] in self.rooted
        return is_passing and bool(floats) and all(
            v in self.sums or v in self.places for v in floats
        )  # fmt: skip

    def is_large_product(self, node: Node, floats: Collection[Value]) -> bool:
        """Whether a power, product or fraction of numbers without a bound is brought back later."""
        y = node.outputs[0]
        is_divided, is_known = y in self.divided, any(self.sizes[v].is_known for v in floats)
        if node.op == "Pow":
            is_power = len(floats) == 1 and not is_root(node)
            return is_power and (is_divided or y in self.rooted)
        if node.op == "Mul" and len(floats) == 2 and len(set(floats)) == 1:
            return is_divided or y in self.rooted
        if len(floats) == 1 and is_small_factor(node):
            return is_divided and not is_known
        return node.op == "Mul" and len(floats) == 2 and is_divided and not is_known

    def loses_constant(self, node: Node) -> bool:
        """Whether a constant that a result depends on would be another in float16."""
        if node.op == "Pad" or (node.op in MASKING and self.saturated.issuperset(node.outputs)):
            return False
        return any(map(self.is_too_large, find_floats(node))) or has_tiny_factor(node)

    def keep_origin(self, node: Node, value: Value) -> None:
        """Keep the arithmetic that a number comes from, up to other operators.

        Of angles and of numbers that become integers, products of matrices too.
        """
        self.keep_node(node)
        is_angle = node.op in PERIODIC
        passes = PASSED_TO_PLACES if node.op in PLACES else PASSED_BY
        stack = [value]
        while stack:
            value = stack.pop()
            size = self.sizes[value]
            is_small = is_angle and size.is_known and size.bound <= SMALL_ANGLE
            if value.tensor is not None or value in self.places or is_small:
                continue
            if value in self.inputs:
                self.places.add(value)
                self.parts.inputs.add(value)
            for maker in self.makers.get(value, ()):
                if not maker.domain and maker.op in passes:
                    self.keep_node(maker)
                    self.places.add(value)
                    stack += find_floats(maker)
                elif node.op in ("Cast", "CastLike"):
                    self.keep_node(maker)


PASSED_TO_PLACES = MOVES.keys() | SUMS | SCALING | KEEPS
PASSED_BY = PASSED_TO_PLACES | MATRIX_PRODUCTS | REDUCING | {"CumSum", "Pow", "Sqrt"}


def find_places(node: Node) -> Collection[Value]:
    """The operands of a node that have to be exact: they become integers, places or angles."""
    floats = find_floats(node)
    if node.domain or not floats:
        return ()
    at = PLACES.get(node.op)
    if at is not None and at < len(node.inputs):
        return [v for v in floats if v is node.inputs[at]]
    y = node.outputs[0]
    is_cast = node.op in ("Cast", "CastLike") and y.dtype is not None and y.dtype.kind in "iu"
    return floats if is_cast or node.op in EXACT or node.op in PERIODIC else ()


def find_saturated(nodes: Collection[Node], outputs: Iterable[Value]) -> set[Value]:
    """Values that only operators read to which a number beyond 65504 is as 65504."""
    readers: dict[Value, list[Node]] = {}
    for node in nodes:
        for value in node.inputs:
            if value is not None:
                readers.setdefault(value, []).append(node)
    saturated: set[Value] = set()
    ends = set(outputs)
    for node in reversed(list(nodes)):
        for y in node.outputs:
            used = readers.get(y, ())
            if y not in ends and used and all(
                not n.domain and (
                    n.op in SATURATING
                    or (passes_masks(n) and saturated.issuperset(n.outputs))
                )
                for n in used
            ):  # fmt: skip
                saturated.add(y)
    return saturated


def passes_masks(node: Node) -> bool:
    """Whether a number beyond the range stays so, or next to it."""
    if node.op in SCALING:
        return (find_factor(node) or 0) >= SCALED_DOWN
    return node.op in MASKING or node.op in MOVES


def find_divided(
    nodes: Collection[Node], outputs: Iterable[Value],
    ends: Collection[str] = BRINGING_BACK, through: Collection[str] = (),
) -> set[Value]:  # fmt: skip
    """Values that an operator of ``ends``, as a mean, a root or a divisor, brings back.

    Between are elementwise operators, and those of ``through``. Outputs are among them: whoever
    reads them may do so.
    """
    divided = set(outputs)
    for node in reversed(list(nodes)):
        if node.domain:
            continue
        floats = [v for v in find_floats(node) if v.tensor is None]
        is_end = node.op in ends and (node.op != "Pow" or is_root(node))
        is_end |= "Div" in ends and len(floats) == 1 and is_small_factor(node)
        is_alone = len(floats) == 1 or node.op in ("Add", "Sub", "Concat")
        is_passing = is_alone and (is_elementwise(node.op) or node.op in through)
        if is_end or (is_passing and node.outputs[0] in divided):
            divided.update(floats)
    return divided
