"""Arithmetic on pads, strides and axes: pure functions on tuples of ints."""

from __future__ import annotations

from collections.abc import Iterable

from serde.errors import ConversionError
from serde.ir.graph import Dim, show_shape

Ints = tuple[int, ...]


def axis_of(axis: int, rank: int) -> int:
    """Count ``axis`` from the front; refuse one outside ``-rank … rank - 1``."""
    if not -rank <= axis < rank:
        raise ConversionError(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank if rank else 0


def slice_along(size: int, start: int, end: int, step: int) -> slice:
    """Python's slice for what ONNX's Slice reads along an axis.

    A start before the front is the front, also where steps lead backwards: Python reads nothing
    there.
    """
    return slice(max(start, -size), None if step < 0 and end < -size else end, step)


def axes_of(axes: Iterable[int], rank: int) -> Ints:
    """Count ``axes`` from the front; refuse one that is outside or given twice."""
    result = tuple(axis_of(a, rank) for a in axes)
    if len(set(result)) != len(result):
        raise ConversionError(f"axes {result} name one axis twice")
    return result


def other_axes(axes: Iterable[int], rank: int) -> Ints:
    """The axes of a tensor of ``rank`` that ``axes`` does not name."""
    named = set(axes)
    return tuple(a for a in range(rank) if a not in named)


def move_axis_perm(rank: int, source: int, target: int) -> Ints:
    """The permutation that takes axis ``source`` to position ``target``."""
    order = [a for a in range(rank) if a != source]
    order.insert(target, source)
    return tuple(order)


def swap_axes_perm(rank: int, a: int, b: int) -> Ints:
    """The permutation that exchanges axes ``a`` and ``b``."""
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return tuple(order)


def invert_perm(perm: Ints) -> Ints:
    """The permutation that undoes ``perm``."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def may_be_same(a: Dim, b: Dim) -> bool:
    """Whether two sizes are the same, or one of them is not known."""
    return a == b or not (isinstance(a, int) and isinstance(b, int))


def window_output(size: int, kernel: int, stride: int, dilation: int, pads: int, up: bool) -> int:
    """Output size of a sliding window; ``up`` rounds the last step up (``ceil_mode``)."""
    span = size + pads - dilation * (kernel - 1) - 1
    return (-(-span // stride) if up else span // stride) + 1


def same_pads(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Begin and end pads of ONNX ``auto_pad`` SAME_UPPER (or SAME_LOWER) along one axis."""
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if upper else (large, small)


def check_sizes(name: str, shape: Iterable[Dim], least: int = 0) -> None:
    """Refuse a shape with a size that is less than ``least``.

    Raises:
        ConversionError: with ``name``, as a message calls the value, and the shape.
    """
    if any(isinstance(size, int) and size < least for size in shape):
        raise ConversionError(
            f"{name} has the shape {show_shape(tuple(shape))}, and no size is less than 0. "
            "Correct the sizes that it comes from; one that is not known is written as a name"
        )
