"""How large the numbers of a model may be, as far as its nodes tell.

Nothing is known of most floats: they are taken for numbers of ordinary size, and stay that through
layers whose weights are of ordinary size. Counts, constants and results of some operators
have a bound; products with constants, sums of known length and layers with large weights move it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import exp, prod, sqrt
from typing import NamedTuple

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.body_links import has_loops, list_nodes
from serde.spec.number_traits import (
    ADDING_UP,
    BOUNDED,
    COUNTING,
    KEEPS,
    MEANS,
    NORMALIZING,
    PRODUCTS,
    SELECTING,
    SUMS,
)
from serde.spec.traits import MOVES, list_moved

LARGEST = 65504.0  # of float16
EXACT = 2048.0  # the largest integer up to which float16 has all
ORDINARY = 32.0  # what unknown numbers are taken to reach
MOST_COUNT = 2.0**24  # integers up to here are exact in float32
STEP = 4096.0  # a constant beyond it that is added once or not at all is a mask
UNKNOWN_LENGTH = 64  # of an axis that is summed
MOST = 1e300


class Size(NamedTuple):
    """How large the elements of a value may be.

    ``bound`` is their largest magnitude, a guess unless it ``is_known``. ``is_count``: their last
    digits matter, as those of integers do. ``is_mask``: they are 0 or so large that what they are
    added to no longer matters.
    """

    bound: float
    is_known: bool = False
    is_count: bool = False
    is_mask: bool = False

    @property
    def is_large(self) -> bool:
        """Whether they may be beyond float16."""
        return self.bound > LARGEST

    @property
    def is_exact(self) -> bool:
        """Whether float16 would lose digits that matter."""
        return self.is_count and self.bound > EXACT

    def join(self, other: Size) -> Size:
        """The size of what may be either."""
        return Size(
            max(self.bound, other.bound), self.is_known and other.is_known,
            self.is_count or other.is_count, self.is_mask and other.is_mask,
        )  # fmt: skip


UNKNOWN = Size(ORDINARY)


class Sizes:
    """The sizes of the values of a graph and its bodies, found node by node.

    ``saturated`` are values of which it does not matter how far beyond the range they are.
    """

    def __init__(
        self, graph: Graph, nodes: Sequence[Node] = (), saturated: Collection[Value] = ()
    ) -> None:
        self.saturated = saturated
        self.sizes: dict[Value, Size] = {}
        nodes = nodes or list(list_nodes(graph))
        for turn in range(3 if has_loops(graph) else 1):
            for node in nodes:
                self._visit(node, turn)

    def __getitem__(self, value: Value) -> Size:
        """The size of a value; unread constants are looked at now."""
        if value not in self.sizes:
            self.sizes[value] = measure(value)
        return self.sizes[value]

    def _visit(self, node: Node, turn: int) -> None:
        for y, size in zip(node.outputs, self._find(node), strict=True):
            known = self.sizes.get(y) if node.op == "Identity" else None
            size = size if known is None else known.join(size)
            if known is not None and turn > 1 and size.bound > known.bound:
                size = size._replace(bound=MOST)  # it grows with each turn of a loop
            self.sizes[y] = size._replace(bound=min(size.bound, MOST))

    def _find(self, node: Node) -> list[Size]:
        numbers = [v for v in node.inputs if v is not None and is_numeric(v)]
        is_typed = len(numbers) == sum(v is not None for v in node.inputs)
        rule = RULES.get(node.op) if is_typed and not node.domain else None
        activations = node.attrs.get("activations")
        names = activations if isinstance(activations, tuple) else ()
        is_bounded = node.op in BOUNDED and all(name in BOUNDED for name in names)
        if is_bounded and not node.domain:
            size = Size(BOUNDED[node.op], True)
        elif node.op in BOUNDED.keys() | NORMALIZING and not node.domain:
            size = UNKNOWN
        elif rule is not None and numbers:
            size = rule(self, node, numbers)
        else:
            data = (v for v in numbers if is_float(v) and v.tensor is None)
            worst = max((self[v].bound for v in data), default=0.0)
            size = Size(worst) if worst > LARGEST else UNKNOWN
        return [size if _is_ruled(node, y, numbers) else _default(y) for y in node.outputs]


def _is_ruled(node: Node, y: Value, numbers: Sequence[Value]) -> bool:
    """Whether what a rule tells of its operands holds for a result, and not of indices."""
    if is_float(y) or not is_numeric(y):
        return is_float(y)
    return bool(numbers) and (node.op == "Cast" or node.op in RULES) and not any(
        is_float(v) for v in numbers if node.op != "Cast"
    )  # fmt: skip


def is_float(value: Value) -> bool:
    """Whether a value has floats."""
    return value.dtype is not None and value.dtype.kind == "f"


def is_numeric(value: Value) -> bool:
    """Whether a value has floats, integers or truth values."""
    return value.dtype is not None and value.dtype.kind in "fiub" and not value.container


def measure(value: Value) -> Size:
    """The size of a constant, or of an input."""
    if value.tensor is None or not is_numeric(value):
        return _default(value)
    numbers = np.abs(value.array().astype(np.float32, copy=False))
    finite = numbers[np.isfinite(numbers)]
    steps = numbers[numbers != 0]
    largest = float(finite.max()) if finite.size else 0.0
    is_mask = is_float(value) and bool(steps.size) and bool((steps >= STEP).all())
    return Size(largest, True, not is_float(value), is_mask)


def _default(value: Value) -> Size:
    """What the type of a value tells."""
    if value.dtype is None or value.dtype.kind not in "iub":
        return UNKNOWN
    known = [abs(d) for d in value.shape_data or (None,) if isinstance(d, int)]
    if value.shape_data and len(known) == len(value.shape_data):
        return Size(float(max(known)), True, True)
    if value.dtype is DType.BOOL:
        return Size(1.0, True)
    most = 2.0 ** (value.dtype.bits - (value.dtype.kind == "i"))
    return Size(min(most, MOST_COUNT), True, True)


def split_constants(values: Collection[Value]) -> tuple[list[Value], list[Value]]:
    """Constants, and what is computed."""
    constants = [v for v in values if v.tensor is not None]
    return constants, [v for v in values if v.tensor is None]


def _join_sizes(sizes: Iterator[Size]) -> Size:
    result = next(sizes)
    for size in sizes:
        result = result.join(size)
    return result


def _move(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    moved = [v for v in list_moved(node) if is_numeric(v)] or list(numbers)
    neutral = [v for v in moved if v.tensor is not None and sizes[v].bound == 0]
    moved = [v for v in moved if v not in neutral] or moved
    if node.op in SELECTING and (node.op == "Pad" or node.outputs[0] in sizes.saturated):
        moved = [v for v in moved if not sizes[v].is_mask] or moved
    if node.op in ("Max", "Min"):  # an end that is further away than the numbers are
        moved = [v for v in moved if not _is_end(v, node.op)] or moved
    return _join_sizes(sizes[v] for v in moved)


def _is_end(value: Value, op: str) -> bool:
    """Whether a constant only bounds what is beside it on the far side of 0."""
    if value.tensor is None:
        return False
    numbers = value.array()
    return bool((numbers <= 0).all() if op == "Max" else (numbers >= 0).all())


def _clip(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    ends = [*node.inputs[1:], None, None][:2]
    size = sizes[numbers[0]]
    if any(v is None or v.tensor is None for v in ends):
        return size
    bound = max(sizes[v].bound for v in ends if v is not None)
    return size._replace(bound=min(size.bound, bound), is_known=True, is_mask=False)


def _add(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    if node.outputs[0] in sizes.saturated:
        numbers = [v for v in numbers if not sizes[v].is_mask] or numbers
    _, rest = split_constants(numbers)
    each = [sizes[v] for v in numbers]
    largest, total = max(s.bound for s in each), sum(s.bound for s in each)
    is_count = bool(rest) and all(sizes[v].is_count for v in rest)
    bound = total if largest > EXACT or all(s.is_known for s in each) else largest
    is_mask = all(s.is_mask for s in each)
    return Size(bound, all(s.is_known for s in each), is_count, is_mask)


def _multiply(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    constants, rest = split_constants(numbers)
    each = [sizes[v] for v in numbers]
    bound, is_known = prod(s.bound for s in each), all(s.is_known for s in each)
    is_count = bool(rest) and all(sizes[v].is_count for v in rest)
    is_mask = is_known and any(sizes[v].is_mask for v in constants)
    unknown = [s.bound for s in each if not s.is_known]
    if len(unknown) > 1 and max(unknown) <= LARGEST:  # ordinary numbers make ordinary ones
        bound /= ORDINARY ** (len(unknown) - 1)
    if unknown:
        bound = max(bound, min(*unknown, ORDINARY))
    return Size(bound, is_known, is_count, is_mask)


def _divide(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, d = (sizes[v] for v in numbers[:2])
    divisor = numbers[1]
    if divisor.tensor is not None:
        steps = np.abs(divisor.array().astype(np.float64))
        steps = steps[(steps != 0) & np.isfinite(steps)]
        bound = x.bound / float(steps.min()) if steps.size else x.bound
        return x._replace(bound=bound if x.is_known else max(bound, ORDINARY), is_mask=False)
    return UNKNOWN if d.is_large and x.is_large else Size(x.bound)


def _mod(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, d = (sizes[v] for v in numbers[:2])
    return d._replace(is_count=x.is_count) if d.is_known else x


def _raise(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, exponent = sizes[numbers[0]], numbers[1]
    if exponent.tensor is None or exponent.tensor.size != 1 or not (p := exponent.array().item()):
        return Size(x.bound)
    if p < 0:
        return UNKNOWN
    bound = min(x.bound, 1e30) ** min(p, 9)
    return Size(bound, x.is_known) if x.is_known or x.bound > ORDINARY else UNKNOWN


def _exponentiate(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x = sizes[numbers[0]]
    return Size(exp(x.bound), True) if x.is_known and x.bound < 600 else UNKNOWN


def _root(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x = sizes[numbers[0]]
    return Size(max(sqrt(x.bound), 1.0), x.is_known)


def _cast(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, size, y = numbers[0], sizes[numbers[0]], node.outputs[0]
    if is_float(x) == is_float(y) and y.dtype is not DType.BOOL:
        return size
    if is_float(y):
        return size._replace(bound=min(size.bound, MOST_COUNT))
    default = _default(y)
    return Size(min(size.bound, default.bound), True, True) if size.is_known else default


def _count_up(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    """Range and CumSum: as far as they go."""
    each = [sizes[v] for v in numbers]
    if node.op == "Range":
        is_known = all(s.is_known for s in each)
        return Size(max(s.bound for s in each[:2]) if is_known else MOST_COUNT, is_known, True)
    x = numbers[0]
    bound = each[0].bound * max(x.static_shape, default=1) if x.is_static else MOST_COUNT
    return Size(bound, each[0].is_known, True)


def _mean(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    floats = [v for v in numbers if is_float(v)] or list(numbers)
    used = floats if node.op == "Mean" else floats[:1]
    return _join_sizes(sizes[v] for v in used)._replace(is_count=False)


def _add_up(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, y = numbers[0], node.outputs[0]
    length = _length(x, _length(y, 1)) if x.is_static and y.is_static else UNKNOWN_LENGTH
    return sizes[x]._replace(bound=sizes[x].bound * length)


def _length(x: Value, apart: int) -> int:
    """How many elements a value has for each of ``apart``."""
    return max(prod(x.static_shape) // max(apart, 1), 1) if x.is_static else UNKNOWN_LENGTH


def _apply_weights(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    """Sums of products: of ordinary size, unless data or weights are large."""
    weights, data = split_constants(numbers[:2] if node.op != "Einsum" else numbers)
    each = [sizes[v] for v in data]
    if not data:
        return UNKNOWN
    bound = prod(s.bound for s in each)
    if not weights and all(s.bound <= LARGEST for s in each):
        return UNKNOWN
    for w in weights:
        bound *= find_gain(node, w)
    alpha = node.attrs.get("alpha", 1.0)
    bound *= abs(alpha) if isinstance(alpha, float) else 1.0
    bias = max((sizes[v].bound for v in numbers[2:]), default=0.0)
    is_beyond = bound + bias > LARGEST or any(s.bound > EXACT for s in each)
    return Size(max(bound + bias, ORDINARY)) if is_beyond else UNKNOWN


def _normalize_batch(sizes: Sizes, node: Node, numbers: Sequence[Value]) -> Size:
    x, parameters = numbers[0], numbers[1:]
    if len(parameters) < 4 or any(v.tensor is None for v in parameters):
        return Size(sizes[x].bound)
    scale, shift, mean, variance = (v.array().astype(np.float64) for v in parameters)
    epsilon = node.attrs.get("epsilon", 1e-5)
    gain = np.abs(scale) / np.sqrt(np.abs(variance) + (float(epsilon) if epsilon else 1e-5))  # type: ignore[arg-type]
    bound = float((gain * (sizes[x].bound + np.abs(mean)) + np.abs(shift)).max(initial=0))
    return Size(bound) if sizes[x].is_large and bound > LARGEST else UNKNOWN


def find_gain(node: Node, weights: Value) -> float:
    """The largest sum of magnitudes that one result is made with."""
    w = np.abs(weights.array().astype(np.float32, copy=False))
    is_second = node.inputs[0] is not weights
    axes: tuple[int, ...]
    if node.op == "Conv":
        axes = tuple(range(1, w.ndim))
    elif node.op == "ConvTranspose":
        axes = (0, *range(2, w.ndim))
    elif node.op == "Gemm":
        axes = (int(is_second == bool(node.attrs.get("transB" if is_second else "transA"))),)
    elif node.op == "MatMul":
        axes = (max(w.ndim - 2, 0) if is_second else w.ndim - 1,)
    else:
        axes = tuple(range(w.ndim))
    return float(w.sum(axes).max(initial=0))


Rule = Callable[[Sizes, Node, Sequence[Value]], Size]
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(MOVES, _move),
    **dict.fromkeys(KEEPS, lambda sizes, node, numbers: sizes[numbers[0]]),
    **dict.fromkeys(SUMS, _add),
    **dict.fromkeys(MEANS, _mean),
    **dict.fromkeys(PRODUCTS, _apply_weights),
    **dict.fromkeys(ADDING_UP, _add_up),
    **dict.fromkeys(COUNTING, _count_up),
    "BatchNormalization": _normalize_batch,
    "Cast": _cast,
    "Clip": _clip,
    "Div": _divide,
    "Exp": _exponentiate,
    "Mod": _mod,
    "Mul": _multiply,
    "Pow": _raise,
    "Sqrt": _root,
}
