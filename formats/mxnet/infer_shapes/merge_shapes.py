"""Merge what several relations tell of one shape, and divide shapes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from serde.ir.graph import Dim, Shape, Value

Ask = Callable[[Value], Shape | None]
Inferred = Iterator[tuple[Value, Shape]]


class AxisName(str):
    """What an axis is usually called, ``N``: the name of its size as long as that has none."""

    __slots__ = ()


BATCH, LENGTH = AxisName("N"), AxisName("T")
SPACE = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}
SPACE = {count: tuple(map(AxisName, names)) for count, names in SPACE.items()}


def merge_shapes(*shapes: Shape | None) -> Shape | None:
    """One shape of several inferred for a value.

    A number is more than the name of a size, that more than the name of an axis, that more than
    None. The first gives the rank; shapes of another rank are ignored.
    """
    known = [s for s in shapes if s is not None]
    alike = [s for s in known if len(s) == len(known[0])]
    best = (max(dims, key=_rank_knowledge, default=None) for dims in zip(*alike, strict=True))
    return tuple(best) if known else None


def _rank_knowledge(size: Dim) -> int:
    return 3 if isinstance(size, int) else 2 if is_size(size) else int(size is not None)


def is_size(size: Dim) -> bool:
    """Whether a size is known: a number, or the name of a size."""
    return size is not None and not isinstance(size, AxisName)


def infer_alike(values: Iterable[Value | None], ask: Ask) -> Inferred:
    """The values have one shape."""
    present = [v for v in values if v is not None]
    shape = merge_shapes(*map(ask, present))
    if shape is not None:
        yield from ((v, shape) for v in present)


def merge_batches(*shapes: Shape | None) -> Dim:
    """The first size of tensors that have it in common."""
    sizes = merge_shapes(*(s[:1] for s in shapes if s), (BATCH,))
    return sizes[0] if sizes is not None and is_size(sizes[0]) else BATCH


def divide_shapes(whole: Shape, part: Shape) -> Dim:
    """The one size of ``part`` that is not known, if both have as many elements."""
    names = Counter(d for d in whole if not isinstance(d, int))
    names.subtract(d for d in part if isinstance(d, str))
    left = [name for name, count in names.items() for _ in range(abs(count))]
    product, known = (math.prod(d for d in s if isinstance(d, int)) for s in (whole, part))
    if min(names.values(), default=0) < 0 or not all(map(is_size, left)) or known == 0:
        return None
    number, rest = divmod(product, known)
    if rest or len(left) > 1 or (left and number != 1):
        return None
    return left[0] if left else number
