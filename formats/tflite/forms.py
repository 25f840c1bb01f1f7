"""Forms of operators that TensorFlow Lite's kernels lack, and what is written in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form
from serde.passes.layout.place import to_first, to_last
from serde.spec.schema import ELEMENT_CODES
from serde.spec.traits import ARRANGES
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.pooling import pad_window_axes

from .ops.layers import count_all_but_samples

MOST_OPERANDS = 8  # copies of one slice that a Concat reads, in place of a Tile
LAST = int(np.iinfo(np.int64).max)  # the end of a Slice that goes to the end
BROADCAST_AXES = 4  # that all kernels of two operands repeat along
KEEPS = ARRANGES | {"Concat", "Pad"}
INFINITY = "an infinite constant, in whose place kernels of sums have the largest number"


# Operands of many axes


def repeats_many_axes(call: Call) -> bool:
    """Whether operands of several shapes have more axes than kernels repeat along."""
    shapes = [v.shape for v in call.inputs if v is not None]
    return len(set(shapes)) > 1 and any(len(s or ()) > BROADCAST_AXES for s in shapes)


def expand_operands(g: Any, call: Call) -> Any:
    """The same of operands that are all repeated before."""
    shapes = [v.static_shape for v in call.inputs]
    full = np.broadcast_shapes(*shapes)
    return call.emit(g, *(v if s == full else g.Expand(v, list(full))
                          for v, s in zip(call.inputs, shapes, strict=True)))  # fmt: skip


MANY_AXES = Form(
    f"operands of several shapes and more than {BROADCAST_AXES} axes", repeats_many_axes,
    expand_operands,
)  # fmt: skip


# Comparisons with infinity, in whose place kernels of sums and extremes have the largest number


def compares_infinity(call: Call) -> bool:
    """Whether a constant is compared that is infinite."""
    constants = [v for v in call.inputs if v is not None and v.tensor is not None]
    return any(v.type.kind == "f" and bool(np.isinf(v.array()).any()) for v in constants)


def compare_infinity(g: Any, call: Call) -> Any:
    """A comparison of inputs and constants, or which elements are infinite that others made."""
    if all(v.tensor is not None or _is_exact(g, v) for v in call.inputs):
        return call.as_is(g, *call.inputs)
    require(call.op == "Equal", f"{INFINITY}. Compare with a finite number")
    x, bound = call.inputs if call.inputs[1].tensor is not None else call.inputs[::-1]
    numbers = bound.array()
    require(numbers.size == 1, f"{INFINITY}, beside others. Compare with one number")
    return _is_infinite(g, x, float(numbers.flat[0]))


def _is_infinite(g: Any, x: Value, bound: float) -> Value:
    """Which elements are infinite, by what they are made of; each value is looked at once."""
    known: dict[Value, Value] = {}
    waiting = [x]
    while waiting:
        value = waiting[-1]
        sources = () if value in known else _find_cases(g, value)
        if missing := [v for v in sources if v not in known]:
            waiting += missing
            continue
        waiting.pop()
        if value not in known:
            known[value] = _mark_infinite(g, value, [known[v] for v in sources], bound)
    return known[x]


def _find_cases(g: Any, x: Value) -> tuple[Value, ...]:
    """The values of whose infinities those of ``x`` are made; none where they can be compared."""
    if _is_exact(g, x):
        return ()
    node = g.producer(x)
    if node.op == "Where":
        return tuple(node.inputs[1:])
    if node.op == "Add":
        return tuple(node.inputs)
    if node.op == "Cast" and g.maker(node.inputs[0], "Add") is None:
        return (node.inputs[0],)
    require(node.op in ("ReduceMax", "ReduceMin"), f"{INFINITY}, and what {node.op} makes of it. "
            "Mask with a finite number")  # fmt: skip
    return (node.inputs[0],)


def _mark_infinite(g: Any, x: Value, cases: Sequence[Value], bound: float) -> Value:
    """Which elements of a result are infinite, by which of its operands are."""
    if x.type.kind != "f":
        return g.Expand(g.const(False), g.Shape(x))  # type: ignore[no-any-return]
    if not cases:
        return g.as_is("Equal", [x, g.const(bound, x.type)], {})  # type: ignore[no-any-return]
    node = g.producer(x)
    if node.op == "Where":
        return g.Where(node.inputs[0], *cases)  # type: ignore[no-any-return]
    if node.op == "Add":
        return g.Or(*cases)  # type: ignore[no-any-return]
    if node.op == "Cast":
        return cases[0]
    each = g.Cast(cases[0], to=ELEMENT_CODES[DType.INT32])
    is_any = (node.op == "ReduceMax") == (bound > 0)
    extreme = g["ReduceMax" if is_any else "ReduceMin"](each, *node.inputs[1:], **node.attrs)
    return g.Cast(extreme, to=ELEMENT_CODES[DType.BOOL])  # type: ignore[no-any-return]


def _is_exact(g: Any, x: Value) -> bool:
    """Whether elements are those of inputs and constants."""
    seen: set[Value] = set()
    waiting = [x]
    while waiting:
        node = g.producer(value := waiting.pop())
        if value in seen or node is None:
            continue
        seen.add(value)
        if node.op == "Where":
            waiting += node.inputs[1:]
        elif node.op == "Concat":
            waiting += node.inputs
        elif (node.op == "Cast" and node.inputs[0].type.kind == "f") or (
            node.op in KEEPS and not node.domain
        ):
            waiting.append(node.inputs[0])
        else:
            return False
    return True


INFINITE = Form("an infinite constant", compares_infinity, compare_infinity)


# Windows over three axes


def is_volume(call: Call) -> bool:
    """Whether windows move along three axes, by numbers."""
    return call.x.rank == 5 and call.outputs == 1 and windows.is_fixed(call)


def pool_volume(g: Any, call: Call) -> Any:
    """A pool along the first axis of windows behind one along the others."""
    pads, attrs = call.window.pads or (0,) * 6, dict(call.attrs)
    if any(pads):
        require(call.op == "MaxPool", "pads of a mean. Pad the tensor before")
        padded = pad_window_axes(g, call.x, pads, extreme_value(call.x.type, False))
        return call.emit(g, padded, pads=None)
    c, d, h, w = count_all_but_samples(call.x)
    kernel, strides = call.window.kernel_shape, call.window.strides or (1, 1, 1)

    def pool(x: Value, sizes: tuple[int, ...], at: Any) -> Any:
        """A pool of an image of other rows and columns, all with channels last."""
        image = g.Transpose(g.Reshape(x, [-1, *sizes, c]), perm=to_first(4))
        windows = {"kernel_shape": kernel[at], "strides": strides[at]}
        if len(windows["strides"]) == 1:
            windows = {name: (*numbers, 1) for name, numbers in windows.items()}
        y = g[call.op](image, **{**attrs, **windows, "pads": None, "dilations": None})
        return g.Transpose(y, perm=to_last(4))

    y = pool(g.Transpose(call.x, perm=to_last(5)), (h, w), slice(1, 3))
    *_, h, w, _ = y.ranked_shape
    if (kernel[0], strides[0]) != (1, 1):
        y = pool(y, (d, h * w), slice(0, 1))
        d = y.ranked_shape[1]
    return g.Transpose(g.Reshape(y, [-1, d, h, w, c]), perm=to_first(5))


VOLUME = Form("three axes of windows", is_volume, pool_volume)


# Padding


def has_negative_pads(call: Call) -> bool:
    """Whether constant pads are negative."""
    pads = call.operand(1)
    return pads is not None and pads.tensor is not None and any(p < 0 for p in pads.ints())


def crop(g: Any, call: Call) -> Any:
    """A Slice for what is negative, and a Pad for the rest."""
    x, pads = call.inputs[:2]
    axes = call.operand(3)
    named = list(range(x.rank)) if axes is None else list(axes.ints())
    ends, count = pads.ints(), len(named)
    starts = [max(0, -p) for p in ends[:count]]
    stops = [p if p < 0 else LAST for p in ends[count:]]
    x = g.Slice(x, starts, stops, named)
    rest = g.const(np.asarray([max(0, p) for p in ends], np.int64))
    return call.emit(g, x, rest, *call.inputs[2:])


def may_crop(call: Call) -> bool:
    """Whether pads are computed and may be negative, which kernels end at.

    In the finished graph those that could be are the larger of two numbers.
    """
    pads = call.operand(1)
    if pads is None or pads.tensor is not None or not pads.is_static or call.g is None:
        return False
    larger = call.g.maker(pads, "Max")
    bounds = () if larger is None else [v.array() for v in larger.inputs if v.tensor is not None]
    return call.attrs["mode"] == "constant" and not any((b >= 0).all() for b in bounds)


def crop_computed(g: Any, call: Call) -> Any:
    """A Pad as far as pads are positive, and a Slice of the result for the others."""
    x, pads = call.inputs[:2]
    axes = call.operand(3) or g.const(np.arange(x.rank))
    count, zero = pads.static_shape[0] // 2, g.const([0], DType.INT64)
    padded = call.emit(g, x, g.Max(pads, zero), call.operand(2), call.operand(3))
    least = g.Min(pads, zero)
    behind = g.Add(g.Gather(g.Shape(padded), axes), g.slice_axis(least, 0, count, 2 * count))
    return g.Slice(padded, g.Neg(g.slice_axis(least, 0, 0, count)), behind, axes)


def pad_edges(g: Any, call: Call) -> Any:
    """The first and the last slice of each axis, repeated."""
    x, ends, axes = call.x, call.inputs[1].ints(), call.operand(3)
    named = range(x.rank) if axes is None else axes.ints()
    for at, axis in enumerate(named):
        before, behind = ends[at], ends[at + len(named)]
        parts = [
            *repeat_slice(g, x, axis, (0, 1), before), x,
            *repeat_slice(g, x, axis, (-1, LAST), behind),
        ]  # fmt: skip
        x = g.Concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


def repeat_slice(g: Any, x: Value, axis: int, ends: tuple[int, int], count: int) -> list[Any]:
    """Operands of a Concat that together are a slice of ``x`` along ``axis``, ``count`` times."""
    if count == 0:
        return []
    part = g.Slice(x, [ends[0]], [ends[1]], [axis])
    if count <= MOST_OPERANDS:
        return [part] * count
    repeats = [1] * x.rank
    repeats[axis] = count
    return [g.Tile(part, repeats)]


COMPUTED_PADS = Form("computed pads", may_crop, crop_computed)
NEGATIVE_PADS = Form("negative pads", has_negative_pads, crop)
EDGE = Form("mode='edge'", lambda call: call.attrs["mode"] == "edge" and call.inputs[1].tensor
            is not None, pad_edges)  # fmt: skip


# Places of blocks


def order_blocks(op: str) -> Callable[[Any, Call], Any]:
    """A rewrite of CRD by the other order, of channels that are moved."""

    def rewrite(g: Any, call: Call) -> Any:
        c, h, w = count_all_but_samples(call.x)
        b = call.attrs["blocksize"]
        if op == "DepthToSpace" and (layer := find_layer(g, call.x)) is not None:
            order = np.arange(c).reshape(-1, b * b).T.ravel()
            x, *weights = (v for v in layer.inputs if v is not None)
            moved = g.Conv(x, *(g.Gather(v, order, axis=0) for v in weights), **layer.attrs)
            return call.emit(g, moved, mode="DCR")
        if op == "DepthToSpace":
            parts = g.Transpose(
                g.Reshape(call.x, [0, c // b**2, b * b, h, w]), perm=(0, 2, 1, 3, 4)
            )
            return call.emit(g, g.Reshape(parts, [0, c, h, w]), mode="DCR")
        y = call.emit(g, call.x, mode="DCR")
        _, h, w = count_all_but_samples(y)
        parts = g.Transpose(g.Reshape(y, [0, b * b, c, h, w]), perm=(0, 2, 1, 3, 4))
        return g.Reshape(parts, [0, c * b * b, h, w])

    return rewrite


def find_layer(g: Any, x: Value) -> Any:
    """The convolution of one group that makes an image, whose weights are constants."""
    layer = g.maker(x, "Conv")
    is_plain = layer is not None and layer.attrs["group"] == 1
    is_constant = is_plain and all(v is None or v.tensor is not None for v in layer.inputs[1:])
    return layer if is_constant else None


def crd(op: str) -> Form:
    """Blocks whose channels come first."""
    return Form("mode='CRD'", lambda call: call.attrs.get("mode") == "CRD", order_blocks(op))
