"""Outputs of sorting and of non-maximum suppression, in which equals may stand in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Value
from serde.spec.traits import RESHAPES
from serde.verification.compare_outputs import compare

Array = np.ndarray[Any, Any]
PASSING = RESHAPES | {"Cast", "Identity"}
MOST_ROWS = 4096  # that are compared with each other
NEAR = 1e-4  # of the largest number of a column, at least
SHARE_OF_ROWS = 0.01
Probe = Callable[[str], Array | None]  # a value of the model by name


def list_upstream(graph: Graph, value: Value) -> list[Node]:
    """The nodes that ``value`` is computed by, in the order of the graph."""
    makers = {v: node for node in graph.nodes for v in node.outputs}
    stack, seen, reached = [value], {value}, set[int]()
    while stack:
        node = makers.get(stack.pop())
        if node is None or id(node) in reached:
            continue
        reached.add(id(node))
        inner = [n for g in node.graphs() for n in g.all_nodes()]
        read = [v for n in (node, *inner) for v in n.inputs if v is not None and v not in seen]
        seen.update(read)
        stack.extend(read)
    return [node for node in graph.nodes if id(node) in reached]


def upstream_ops(graph: Graph, value: Value) -> set[str]:
    """The operators that ``value`` is computed by, those of subgraphs included."""
    nodes = list_upstream(graph, value)
    return {n.op for n in nodes} | {n.op for node in nodes for g in node.graphs()
                                    for n in g.all_nodes()}  # fmt: skip


def are_tied_indices(
    graph: Graph, value: Value, got: Array, expected: Array, probe: Probe, least: float = 0
) -> bool:
    """Whether an output holds indices, and those that differ are indices of equal numbers.

    Numbers are equal within the tolerance of their type, which is the share ``least`` at least.
    """
    makers = {v: node for node in graph.nodes for v in node.outputs}
    while value in makers and makers[value].op in PASSING and makers[value].inputs[0] is not None:
        value = makers[value].inputs[0]  # type: ignore[assignment]
    node = makers.get(value)
    if node is None or not np.isfinite(got).all() or not np.isfinite(expected).all():
        return False
    if node.op == "NonMaxSuppression":
        scores = _probe_value(node.inputs[1], probe)
        return scores is not None and _are_tied_boxes(scores, got, expected, least)
    is_topk = node.op == "TopK" and node.outputs[-1] is value
    if not (is_topk or node.op in ("ArgMax", "ArgMin")):
        return False
    data = _probe_value(node.inputs[0], probe)
    return data is not None and _are_tied_elements(node, data, got, expected, least)


def _probe_value(value: Value | None, probe: Probe) -> Array | None:
    if value is None:
        return None
    return value.tensor.load() if value.tensor is not None else probe(value.name)


def _are_tied_boxes(scores: Array, got: Array, expected: Array, least: float) -> bool:
    if got.shape != expected.shape or got.ndim != 2 or got.shape[1] != scores.ndim:
        return False
    try:
        a, b = (scores[tuple(rows.astype(np.int64).T)] for rows in (got, expected))
    except IndexError:
        return False
    is_distinct = all(len(np.unique(x, axis=0)) == len(x) for x in (got, expected))
    return is_distinct and compare("", a, b, least=least).passed


def _are_tied_elements(node: Node, data: Array, got: Array, expected: Array, least: float) -> bool:
    axis = node.attrs.get("axis", -1)
    if not isinstance(axis, int):
        return False
    axis %= max(data.ndim, 1)
    count = expected.size * data.shape[axis] // max(data.size, 1)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    if got.shape != expected.shape or not got.size or int(np.prod(shape)) != got.size:
        return False
    a, b = (x.reshape(shape).astype(np.int64) for x in (got, expected))
    if min(a.min(), b.min()) < 0 or max(a.max(), b.max()) >= data.shape[axis]:
        return False
    if any((np.diff(np.sort(x, axis), axis=axis) == 0).any() for x in (a, b)):
        return False
    x, y = (np.take_along_axis(data, i, axis) for i in (a, b))
    return compare("", x, y, least=least).passed


def count_new_rows(
    at: int, got: Sequence[Any], expected: Sequence[Any], near: float = NEAR
) -> int | None:
    """Count rows of output number ``at`` that the source does not have; the others are its own.

    Rows are those of all outputs with as many. They are sorted by a column that rises or falls
    throughout: in such columns both must agree, so that what changed places was equal there. Of two
    boxes with scores next to each other either may suppress the other, and what that one covers:
    one row of a hundred may differ if others changed places. None: the rows are others. Numbers are
    the same that are as ``near`` as this share of the largest of their column.
    """
    if any(isinstance(x, list) for x in (*got, *expected)):
        return None
    ndim = np.ndim(expected[at])
    for axis in sorted({a for a in (ndim - 2, 1, 0) if 0 <= a < ndim}, reverse=True):
        lead = np.shape(expected[at])[: axis + 1]
        chosen = [i for i, x in enumerate(expected) if np.shape(x)[: axis + 1] == lead]
        if any(np.shape(got[i]) != np.shape(expected[i]) for i in chosen) or 0 in lead:
            continue
        a, b = (
            np.concatenate([np.asarray(x[i], np.float64).reshape(*lead, -1) for i in chosen], -1)
            for x in (got, expected)
        )
        rows, columns = a.shape[-2:]
        if not columns:
            continue
        count = _count_new(a.reshape(-1, rows, columns), b.reshape(-1, rows, columns), near)
        if count is not None and count <= SHARE_OF_ROWS * b.size / columns:
            return count
    return None


def _count_new(got: Array, expected: Array, near: float) -> int | None:
    scale = np.abs(expected).max((0, 1)) + 1e-30
    if not np.isfinite(scale).all() or not np.isfinite(got).all():
        return None
    a, b = got / scale, expected / scale
    keys = _sorted_columns(expected)
    if not keys.any():  # of a detector that sorts its best rows, and those come first
        rows = np.flatnonzero((np.abs(a - b) > near).any((0, 2)))
        keys = _sorted_columns(expected[:, : rows[-1] + 1] if rows.size else expected)
    if not keys.any() or np.abs(a - b)[..., keys].max() > near:
        return None
    counts = [_count_in_batch(x, y, near) for x, y in zip(a, b, strict=True)]
    return None if None in counts else sum(c for c in counts if c is not None)


def _sorted_columns(rows: Array) -> Array:
    steps = np.diff(rows, axis=1)
    return np.asarray((steps >= 0).all((0, 1)) | (steps <= 0).all((0, 1)))


def _count_in_batch(a: Array, b: Array, near: float) -> int | None:
    """How many rows of ``a`` are not in ``b``, each of which is used once; None: too many."""
    differing = (np.abs(a - b) > near).any(-1)
    rows, others = a[differing], b[differing]
    if len(rows) > MOST_ROWS:
        return None
    is_left = np.ones(len(others), bool)
    for row in rows:
        places = np.flatnonzero(is_left & (np.abs(others - row).max(-1) <= near))
        is_left[places[:1]] = False
    unmatched = int(is_left.sum())
    return None if unmatched and unmatched == len(rows) else unmatched
