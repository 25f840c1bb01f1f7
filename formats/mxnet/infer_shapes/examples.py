"""Ask for the shapes of inputs that no operator determines, with an example for each."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.ir.graph import Dim, Graph, Node, Shape, Value
from serde.ir.printer import list_first
from serde.passes.cut_inputs import LABEL

from ..operators import describe
from ..rules import parse
from .guesses import is_flattening_dense
from .merge_shapes import BATCH
from .relations import constant_shape

MOST_NODES = 200  # behind an input that are looked at
MOST_NAMES, MOST_EXAMPLES = 30, 5  # of several inputs
LENGTH, SIDE = 128, 224
TOKENS = re.compile(r"token|word|sentence|segment|(^|_)ids?($|_)|vocab|source|target", re.I)
LENGTHS = re.compile(r"length|(^|_)len($|_)", re.I)
STATES = re.compile(r"state|begin|init_[hc]|(^|_)[hc]0?$", re.I)


@dataclass
class Hints:
    """What operators behind an input tell of it, short of its rank."""

    channels: int | None = None
    elements: int | None = None  # of a sample
    last: int | None = None
    like: tuple[int, ...] | None = None  # what it is broadcast with
    rank: int | None = None
    ops: list[str] = field(default_factory=list)


def ask_for_shapes(
    graph: Graph, unknown: Sequence[Value], refuted: Mapping[Value, Shape] | None = None
) -> str:
    """Say that the shapes of ``unknown`` are needed, and how they are given.

    The examples are others than those ``refuted``.
    """
    names = list_first([repr(v.name) for v in unknown], MOST_NAMES)
    examples = [
        (v.name, as_image(shape) if (refuted or {}).get(v) == shape else shape)
        for v, shape in ((v, example_of(graph, v)) for v in unknown[:MOST_EXAMPLES])
    ]
    flags = show_inputs(dict(examples))
    more = " and so on" if len(unknown) > MOST_EXAMPLES else ""
    return f"the shape of {names} cannot be inferred from the operators: give it, as {flags}{more}"


def show_inputs(shapes: Mapping[str, Shape]) -> str:
    """Print shapes of inputs as they are given on the command line."""
    dims = {
        name: ",".join(f"D{i}" if d is None else str(d) for i, d in enumerate(shape))
        for name, shape in shapes.items()
    }
    return " ".join(f"--input {n}={d}" for n, d in dims.items())


def example_of(graph: Graph, value: Value) -> Shape:
    """A shape that ``value`` might have, by what reads it and what it is called."""
    if value.name.endswith(LABEL):
        return (BATCH,)
    hints = collect_hints(graph, value)
    if hints.elements is not None:
        return (BATCH, *_sample(hints.elements, hints))
    if hints.like is not None and len(hints.like) > 1:
        return (BATCH, *hints.like[1:])
    if hints.rank is not None:
        return (BATCH, 8, 8, 8)[: hints.rank]
    if hints.last is not None:
        return (BATCH, LENGTH, hints.last)
    if hints.channels is None and (named := _by_name(value.name, hints)) is not None:
        return named
    return (BATCH, hints.channels or _first_channels(graph), *(SIDE,) * _window_rank(graph))


def as_image(rows: Shape) -> Shape:
    """Images of as many numbers as ``rows`` have, of 3 channels or few."""
    count = rows[-1]
    if not isinstance(count, int) or count < 1:
        return (BATCH, 3, SIDE, SIDE)
    few = (3, *range(1, 1 + math.isqrt(count)))
    squares = ((c, math.isqrt(count // c)) for c in few if count % c == 0)
    channels, side = next(((c, s) for c, s in squares if c * s * s == count), (count, 1))
    return (BATCH, channels, side, side)


def _sample(count: int, hints: Hints) -> Iterator[int]:
    """Sizes of the axes behind the first, ``count`` in all."""
    like = hints.like[1:] if hints.like is not None else ()
    if math.prod(like) == count:
        yield from like
    elif hints.channels is None or count % hints.channels:
        yield count
    else:
        yield hints.channels
        rest = count // hints.channels
        side = math.isqrt(rest)
        yield from ((side, side) if side * side == rest else (rest,))


def _by_name(name: str, hints: Hints) -> Shape | None:
    if LENGTHS.search(name):
        return (BATCH,)
    if "Embedding" in hints.ops or TOKENS.search(name):
        return (BATCH, LENGTH)
    return (BATCH, 8) if STATES.search(name) else None


def _window_rank(graph: Graph) -> int:
    """The axes that most windows of the graph slide over; 2 where there are none."""
    counts = [len(kernel) for node in graph.nodes if (kernel := _kernel(node))]
    return max(set(counts), key=counts.count) if counts else 2


def _kernel(node: Node) -> Ints:
    try:
        return parse(Ints, node.attrs.get("kernel", "()"))  # type: ignore[no-any-return]
    except ConversionError:
        return ()


def _first_channels(graph: Graph) -> Dim:
    for node in graph.nodes:
        if node.op.startswith("Convolution"):
            weight = constant_shape(node, 1)
            if weight is not None and len(weight) > 1:
                return weight[1]
    return 3


def collect_hints(graph: Graph, value: Value) -> Hints:
    """What the nearest readers of ``value``, and of what has its shape, tell."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for v in node.inputs:
            if v is not None:
                readers.setdefault(v, []).append(node)
    hints, seen, queue = Hints(), {value}, deque([value])
    for _ in range(MOST_NODES):
        if not queue:
            break
        current = queue.popleft()
        for node in readers.get(current, ()):
            if _collect_hint(node, current, hints) and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                queue.append(node.outputs[0])
    return hints


def _collect_hint(node: Node, value: Value, hints: Hints) -> bool:
    """Note what ``node`` tells of ``value``; whether its result has the same shape."""
    op, about, is_first = node.op, describe(node.op), node.inputs[0] is value
    hints.ops.append(op)
    if about.channels is not None and is_first and (row := constant_shape(node, 1)):
        if about.channels == -1:
            hints.last = hints.last or row[0]
        else:
            hints.channels = hints.channels or row[0]
    elif op == "FullyConnected" and is_first and (weight := constant_shape(node, 1)):
        if is_flattening_dense(node):
            hints.elements = hints.elements or weight[1]
        else:
            hints.last = hints.last or weight[1]
    elif op.startswith("broadcast_") and len(node.inputs) == 2:
        other = constant_shape(node, 1 if is_first else 0)
        hints.like = max(hints.like or (), other or (), key=len) or None
        return True
    elif hints.rank is None:
        hints.rank = about.usual_rank
    return value in node.inputs[about.shaped]
