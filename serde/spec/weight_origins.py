"""Which arrays of the source a constant consists of: weights are rearranged before they are read.

The origins of a constant are runs of its elements. Where their order is lost, all are one run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from serde.ir.graph import Origins, Run, Shape, Tensor, Value
from serde.spec.inference import Type
from serde.spec.traits import ARRANGES, RESHAPES

IN_ORDER = RESHAPES | {"Cast"}
REPEATS = frozenset({"Expand", "Tile"})
FOLLOWED = (ARRANGES | {"Cast", "Concat"}) - {"Dropout"}


def origins_of(value: Value | None) -> Origins:
    """The origins of an operand: a weight that the source names has its own name."""
    if value is None or value.tensor is None:
        return ()
    if value.origins or value.type.kind != "f" or not value.name_is_original:
        return value.origins
    return (_make_run(value.name, value.tensor),)


def _make_run(name: str, tensor: Tensor) -> Run:
    return Run((name,), tensor.size, 0, tensor.shape, whole=tensor)


def is_whole(value: Value) -> bool:
    """Whether a constant is one array as it is, under whatever name."""
    runs = origins_of(value)
    if len(runs) != 1:
        return False
    if runs[0].begin == 0 and runs[0].is_ordered:
        return runs[0].shape == value.static_shape
    whole = runs[0].whole
    is_like = whole is not None and whole.shape == value.static_shape
    return is_like and np.array_equal(whole.load(), value.array())  # type: ignore[union-attr]


def is_rearranged(value: Value) -> bool:
    """Whether a constant has all elements of one array in an order of its own."""
    runs = origins_of(value)
    is_turned = len(runs) == 1 and not runs[0].is_ordered and value.rank == 2
    if len(runs) == 1 and runs[0].begin is not None and not is_turned:
        return False
    whole, size = _find_whole(runs), sum(run.size for run in runs)
    if whole is None or whole.size != size or whole.dtype is not value.type:
        return False
    array, elements = value.array(), whole.load()
    return not (np.array_equal(elements.ravel(), array.ravel())
                or (is_turned and np.array_equal(elements.ravel(), array.T.ravel())))  # fmt: skip


def mark_weight(value: Value) -> Value:
    """Let an array be one that the source trains, also where it is a single number."""
    return mark_array(value) if value.type.kind == "f" else value


def mark_array(value: Value) -> Value:
    """Let an array be one whose parts are followed, also where it is of integers."""
    if value.tensor is not None:
        value.origins = (_make_run(value.name, value.tensor),)
    return value


def mark_dequantized(value: Value, integers: Value) -> Value:
    """Let a constant be the array that a constant of integers stands for."""
    if integers.name_is_original and value.tensor is not None and value.type.kind == "f":
        value.origins = (Run((integers.name,), value.tensor.size, 0, value.static_shape),)
    return value


def is_weight(value: Value | None) -> bool:
    """Whether the source trains a constant; a single number is one where a reader has said so."""
    if value is None or value.tensor is None or value.type.kind != "f":
        return False
    return bool(value.origins if value.tensor.size == 1 else origins_of(value))


def names_in(origins: Origins, begin: int, end: int) -> tuple[str, ...]:
    """The names of the arrays that elements from ``begin`` to ``end`` are of."""
    return tuple(dict.fromkeys(name for run in cut(origins, begin, end) for name in run.names))


def follow(
    op: str, inputs: Sequence[Value | None], axis: int, results: Sequence[Tensor]
) -> list[Origins]:
    """The origins of each result of an operator on constants that rearranges elements."""
    operands = inputs if op == "Concat" else inputs[:1]
    values = [v for v in operands if v is not None and v.tensor is not None]
    most = sum(v.tensor.size for v in values if v.tensor is not None)
    runs = tuple(run for v in values for run in origins_of(v) or _make_unnamed(v))
    names = names_in(runs, 0, most)
    if op not in FOLLOWED or not names or any(v.type.kind != results[0].dtype.kind for v in values):
        return [()] * len(results)
    is_outermost = all(math.prod(v.static_shape[: axis % max(v.rank, 1)]) == 1 for v in values)
    origins: list[Origins] = []
    begin = 0
    for result in results:
        end = begin + result.size
        if op in IN_ORDER or (op in ("Concat", "Split") and is_outermost):
            origins.append(cut(runs, begin, end))
        elif op in STARTS and (start := STARTS[op](inputs, axis)) is not None:
            origins.append(cut(runs, start, start + result.size))
        elif op == "Transpose":
            origins.append(disorder(runs))
        else:  # elements that are there twice are trained apart
            origins.append((Run(names, result.size, whole=_find_whole(runs)),))
        begin = end
    return origins


def computes_weight(op: str, inputs: Sequence[Value | None], result: Type, axis: int = 0) -> bool:
    """Whether an operator computes other numbers of an array that the source trains, or repeats
    it, or looks a column of it up, or some rows, or one of them twice; rows in another order are
    trained as they are.
    """
    if result.dtype is not None and result.dtype.kind == "b":  # where elements are large
        return any(map(is_weight, inputs))
    if result.dtype is None or result.dtype.kind != "f":
        return False
    if op == "Gather":
        rows, indices = inputs
        if not origins_of(rows) or indices is None:
            return False
        is_column = indices.rank == 0 and _find_row(inputs, axis) is None
        return is_column or (indices.rank > 0 and not _reorders(rows, indices, result))
    if op in FOLLOWED:
        x = inputs[0]
        has_same = x is None or _count(result.shape) == _count(x.shape)
        return op in REPEATS and is_weight(x) and not has_same
    return any(map(is_weight, inputs))


def _count(shape: Shape | None) -> int | None:
    """How many elements there are, where all sizes are numbers."""
    sizes = [d for d in shape or () if isinstance(d, int)]
    return math.prod(sizes) if shape is not None and len(sizes) == len(shape) else None


def _reorders(rows: Value | None, indices: Value | None, result: Type) -> bool:
    """Whether indices name each row once."""
    if rows is None or indices is None or indices.tensor is None or result.shape != rows.shape:
        return False
    places = indices.array().ravel()
    return bool(np.array_equal(np.sort(places), np.arange(places.size)))


def _make_unnamed(value: Value) -> Origins:
    return (Run((), value.tensor.size if value.tensor is not None else 0),)


def disorder(origins: Origins) -> Origins:
    """The origins of the same elements in another order."""
    if len(origins) == 1:
        return (origins[0]._replace(is_ordered=False),)
    size = sum(run.size for run in origins)
    names = names_in(origins, 0, size)
    return (Run(names, size, whole=_find_whole(origins)),) if names else ()


def _find_whole(origins: Origins) -> Tensor | None:
    """The one array of the source that all elements are of, where it is at hand."""
    wholes = {id(run.whole): run.whole for run in origins}
    return wholes.popitem()[1] if len(wholes) == 1 else None


def cut(origins: Origins, begin: int, end: int) -> Origins:
    """The origins of the elements from ``begin`` to ``end``."""
    return tuple(_overlap(origins, begin, end))


def _overlap(origins: Origins, begin: int, end: int) -> Iterator[Run]:
    at = 0
    for run in origins:
        first, last = max(at, begin), min(at + run.size, end)
        if first == at and last == at + run.size and run.size:
            yield run
        elif last > first and run.begin is not None and run.is_ordered:
            yield run._replace(size=last - first, begin=run.begin + first - at)
        elif last > first:
            yield Run(run.names, last - first)
        at += run.size


def _find_row(inputs: Sequence[Value | None], axis: int) -> int | None:
    """The first element of what one index along the outermost axis chooses."""
    x, index = inputs[:2]
    if x is None or index is None or index.tensor is None or index.tensor.size != 1:
        return None
    axis %= x.rank
    row, size = int(index.array().reshape(-1)[0]), x.static_shape[axis]
    if math.prod(x.static_shape[:axis]) != 1:
        return None
    return (row % size) * math.prod(x.static_shape[axis + 1 :]) if -size <= row < size else None


def _find_start(inputs: Sequence[Value | None], axis: int) -> int | None:
    """The first element of a slice of neighbours along the outermost axis, if it is one."""
    x, starts, _, axes, *steps = (*inputs, None, None)[:5]
    if x is None or starts is None or starts.array().size != 1:
        return None
    axis = axis if axes is None else int(axes.array().reshape(-1)[0]) % x.rank
    if math.prod(x.static_shape[:axis]) != 1 or any(s and (s.array() != 1).any() for s in steps):
        return None
    size = x.static_shape[axis]
    start = int(starts.array().reshape(-1)[0])
    start = min(max(start + size if start < 0 else start, 0), size)
    return start * math.prod(x.static_shape[axis + 1 :])


# Operators that take neighbours along the outermost axis, and what tells the first of them.
STARTS = {"Gather": _find_row, "Slice": _find_start}
