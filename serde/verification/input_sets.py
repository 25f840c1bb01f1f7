"""Sets of inputs that show faults which normal numbers hide.

A pooling that loses zeros is wrong on negative numbers alone, a comparison that takes ``>=`` for
``>`` on equal ones. A set changes the floats a model computes with, and look-ups within their
table; indices, lengths and sizes stay as they are, as a runtime may crash on others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.ir.graph import BYTES, DType, Graph, Value
from serde.spec.number_traits import OF_A_DOMAIN
from serde.spec.traits import BROADCASTS, COMPARISONS, MOVES, ROUNDS
from serde.verification.compare_outputs import Places
from serde.verification.count_inputs import (
    DEPTH,
    INTEGERS,
    SIZES,
    draw_counts,
    find_angles,
    find_counts,
    is_class,
)
from serde.verification.input_uses import PASSED_ON, Readers, readers_of, table_size
from serde.verification.random_inputs import is_variance, make_random_inputs

Array = np.ndarray[Any, Any]
NORMAL, COUNTS = "normal", "large integer"
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, 3.0, 1e-6, -1e-6, 100, -100)
LARGE = {DType.FLOAT16: 8.0}  # factor; more would overflow in sums
LARGE_OTHERWISE = 1e3
MIXED_SHARE = 0.05
# Operators through which a number is still seen as the index, length or size that it becomes.
ARITHMETIC = MOVES.keys() | (BROADCASTS - COMPARISONS) | ROUNDS | {"Abs", "Cast", "Neg"}


@dataclass(frozen=True)
class InputSet:
    """Inputs by name, and what they are called in reports."""

    name: str
    feeds: Mapping[str, Array]

    @property
    def places(self) -> Places:
        """How infinities and NaN are compared that come of them."""
        return PLACES.get(self.name, "finite")

    @property
    def slack(self) -> float:
        """How many times the tolerance of normal inputs an output may differ by."""
        return SLACK.get(self.name, SLACK_OTHERWISE)


def _negative(x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(-np.abs(x))


def _positive(x: Array, rng: np.random.Generator) -> Array:
    """Numbers between 0 and 1, of which all functions are numbers."""
    return np.asarray(np.abs(x) / (1 + np.abs(x)), x.dtype)


def _zero(x: Array, rng: np.random.Generator) -> Array:
    return np.zeros_like(x)


def _equal(x: Array, rng: np.random.Generator) -> Array:
    return np.full_like(x, 0.5)


def _special(x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(rng.choice(np.array(SPECIAL), x.shape), x.dtype)


def _large(x: Array, rng: np.random.Generator) -> Array:
    return np.asarray(x * LARGE.get(DType.of(x.dtype), LARGE_OTHERWISE), x.dtype)


def _infinite(x: Array, rng: np.random.Generator) -> Array:
    return _mix_in(x, rng, (np.inf, -np.inf))


def _nan(x: Array, rng: np.random.Generator) -> Array:
    return _mix_in(x, rng, (np.nan,))


def _mix_in(x: Array, rng: np.random.Generator, numbers: tuple[float, ...]) -> Array:
    """``x`` with some elements, at least one, replaced by ``numbers``."""
    mask: Array = np.asarray(rng.random(x.shape) < MIXED_SHARE)
    if x.size:
        mask.flat[rng.integers(x.size)] = True
    return np.where(mask, rng.choice(np.array(numbers), x.shape), x).astype(x.dtype)


# Outputs may be small sums of large numbers, and a sum of n equal numbers, one by one, is off by up
# to n · 2^-25 of it: a mean over an image of 224 × 224 by 0.3 %.
SLACK = {NORMAL: 1, COUNTS: 1, "zero": 200, "equal": 200}
SLACK_OTHERWISE = 10
NOT_FINITE = frozenset({"infinite", "NaN"})
PLACES: Mapping[str, Places] = {
    NORMAL: "exact",
    COUNTS: "exact",
    "infinite": "numbers",
    "NaN": "exact",
}
TIES = frozenset({"zero", "equal", "special"})  # sets that hold a number more than once
CHANGES: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    "negative": _negative,
    "positive": _positive,
    "zero": _zero,
    "equal": _equal,
    "special": _special,
    "large": _large,
    "infinite": _infinite,
    "NaN": _nan,
}


def input_sets(
    graph: Graph, ir: Graph, seed: int, drawn: Mapping[str, Any] | None = None
) -> Iterator[InputSet]:
    """Normal inputs of ``graph`` first, as they were ``drawn``, then sets that change some.

    ``ir`` is the graph of the IR that ``graph`` was made from: it says what an input is used for.
    """
    normal = make_random_inputs(graph, seed, ir) if drawn is None else drawn
    yield InputSet(NORMAL, normal)
    readers = readers_of(ir)
    known = {v.name: v for v in ir.inputs}
    used = {n: known[n] for n in normal if n in known and not known[n].container}
    tables = {n for n, v in used.items() if table_size(v, readers) is not None}
    counted = {n for n in tables if not _is_looked_up(used[n], readers)}
    floats = {v.name for v in graph.inputs if v.type.kind == "f"} & used.keys() - tables
    floats -= {n for n, v in used.items() if is_variance(v, readers)}
    free = {n for n in floats if not _is_index(used[n], readers, ARITHMETIC)}
    anywhere = {n for n in free if not _is_index(used[n], readers, ARITHMETIC | {"Clip"})}
    looks_for_nan = any(node.op == "IsNaN" for at in readers.values() for node, _ in at)
    has_domain = any(node.op in OF_A_DOMAIN for at in readers.values() for node, _ in at)
    scales = _quantizes_by_range(readers)
    for number, (name, change) in enumerate(CHANGES.items()):
        if name == "NaN" and not looks_for_nan:  # elsewhere kernels make of it what they like
            continue
        if name == "positive" and not has_domain:
            continue
        if scales and name in {"zero", *NOT_FINITE}:  # 0 / 0, which becomes any integer
            continue
        rng = np.random.default_rng([seed, number])
        feeds = dict(normal)
        for input_name, x in normal.items():
            if input_name in (anywhere if name in NOT_FINITE else free):
                feeds[input_name] = change(x, rng)
            elif input_name in tables and name == "equal" and x.size:
                feeds[input_name] = np.full_like(x, x.flat[0])
            elif input_name in tables and name == "zero" and input_name not in counted:
                feeds[input_name] = np.zeros_like(x)
        if any(feeds[n] is not normal[n] for n in feeds):
            yield InputSet(name, feeds)


def narrow_input_sets(
    graph: Graph, ir: Graph, seed: int, drawn: Mapping[str, Any] | None = None
) -> Iterator[InputSet]:
    """Normal inputs, then large integers and angles: what float16 loses, where others overflow."""
    normal = make_random_inputs(graph, seed, ir) if drawn is None else drawn
    yield InputSet(NORMAL, normal)
    readers = readers_of(ir)
    counts = find_counts(ir, readers) | find_angles(ir, readers)
    if counts & normal.keys():
        rng = np.random.default_rng(seed)
        changed = {n: draw_counts(x, rng) if n in counts else x for n, x in normal.items()}
        yield InputSet(COUNTS, changed)


def _is_index(value: Value, readers: Readers, through: Set[str], depth: int = DEPTH) -> bool:
    """Whether a float becomes an integer, or is a size, by the operators ``through`` alone."""
    if depth == 0:
        return False
    for node, at in readers.get(value, ()):
        first = SIZES.get(node.op)
        if node.domain or (first is not None and at >= first) or is_class(node, at):
            return True
        if node.op not in through:
            continue
        for output in node.outputs:
            if output.dtype is not None and output.dtype.kind in INTEGERS:
                return True
            if _is_index(output, readers, through, depth - 1):
                return True
    return False


def _is_looked_up(value: Value, readers: Readers, depth: int = DEPTH) -> bool:
    """Whether an index is no more than that: tokens that are counted may make lengths of 0."""
    for node, at in readers.get(value, ()) if depth else ():
        is_moved = node.op in PASSED_ON and at == 0
        if not (node.op == "Gather" and at == 1) and not is_moved:
            return False
        if is_moved and not _is_looked_up(node.outputs[0], readers, depth - 1):
            return False
    return True


def _quantizes_by_range(readers: Readers) -> bool:
    """Whether a model quantises by the largest number it finds in its data."""
    nodes = {id(node): node for at in readers.values() for node, _ in at}.values()
    ops = {node.op for node in nodes}
    quantizing = ("Cast", "QuantizeLinear")
    casts = any(n.op in quantizing and n.outputs[0].dtype in BYTES for n in nodes)
    return "DynamicQuantizeLinear" in ops or (casts and bool(ops & {"ReduceMax", "ReduceMin"}))
