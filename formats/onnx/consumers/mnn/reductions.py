"""Reductions as MNN computes them rightly: it adds up in order, and loses digits of long sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt, prod
from types import MappingProxyType

from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable
from serde.spec.traits import REDUCES
from serde.version_converter.adapters.reduction import reduce_nothing

from ..reductions import multiply_sizes, read_axes

LONG = 1 << 12  # elements of a sum
REDUCED = MappingProxyType({"keepdims": 0, "noop_with_empty_axes": 0})
# What adds up the sums of parts.
SUMS: Mapping[str, str] = MappingProxyType(
    {"ReduceL1": "ReduceSum", "ReduceMean": "ReduceMean", "ReduceSum": "ReduceSum",
     "ReduceSumSquare": "ReduceSum"}
)  # fmt: skip


def legalize_reductions(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize.for_each(op for op in REDUCES if op != "ReduceLogSumExp")(legalize_reduction)


def legalize_reduction(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """MNN drops axes unless ``keepdims`` says otherwise: files leave it out."""
    listed, every = read_axes("MNN", x, axes)
    if not listed and noop_with_empty_axes:
        return reduce_nothing(op, g, x)
    if not every:
        return None
    if (product := multiply_sizes(op, g, x, keepdims=keepdims)) is not None:
        return product
    if x.type.kind == "f" and is_long(x, every) and op == "ReduceL2":
        y = g.Sqrt(add_in_stages("ReduceSumSquare", g, x, every))
    elif x.type.kind == "f" and is_long(x, every) and op in SUMS:
        y = add_in_stages(op, g, x, every)
    elif not keepdims and listed and tuple(every) == listed:
        return None
    else:
        y = g.as_is(op, (x, every), REDUCED)
    return g.Unsqueeze(y, every) if keepdims else y


def is_long(x: Value, axes: Sequence[int]) -> bool:
    """Whether numbers are known to be many that are added up, along more than one axis or one that
    can be parted.
    """
    sizes = [x.ranked_shape[axis] for axis in axes]
    numbers = [n for n in sizes if isinstance(n, int)]
    if len(numbers) < len(sizes) or prod(numbers) <= LONG:
        return False
    return len([n for n in numbers if n > 1]) > 1 or (x.is_static and find_part(max(numbers)) > 1)


def find_part(n: int) -> int:
    """The largest number of equal parts of a long sum that are no more than their elements."""
    return next(d for d in range(isqrt(n), 0, -1) if n % d == 0) if n > LONG else 1


def add_in_stages(op: str, g, x: Value, axes: Sequence[int]) -> Value:
    """One axis after the other, and long ones in two parts."""
    for axis in reversed(axes):
        n = x.ranked_shape[axis]
        if x.is_static and (parts := find_part(n)) > 1:
            sizes = x.static_shape
            x = g.Reshape(x, [*sizes[:axis], parts, n // parts, *sizes[axis + 1 :]])
            x, op = g.as_is(op, (x, [axis + 1]), REDUCED), SUMS[op]
        x, op = g.as_is(op, (x, [axis]), REDUCED), SUMS[op]
    return x
