"""What operators tell of the shapes around them: of their operands, given their results, and back.

A relation yields ``(value, shape)`` for what it can tell; a size that it cannot is None, or the
name of the axis where the operator gives it one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from serde.ir.geometry import Ints, axes_of, axis_of, invert_perm, swap_axes_perm, window_output
from serde.ir.graph import Dim, Node, Shape, Value

from ..operators import describe
from ..rnn_sizes import RnnSizes
from ..rules import Bounds, parse
from .bodies import infer_bodies
from .merge_shapes import (
    BATCH,
    LENGTH,
    SPACE,
    Ask,
    Inferred,
    divide_shapes,
    infer_alike,
    is_size,
    merge_batches,
    merge_shapes,
)

Attrs = Mapping[str, Any]
REDUCING = frozenset("sum mean max min prod norm argmax argmin".split())


def infer_relations(node: Node, ask: Ask) -> list[tuple[Value, Shape]]:
    """What ``node`` tells, where ``ask`` gives what is known of its operands and outputs.

    Raises:
        ConversionError, KeyError, IndexError, ZeroDivisionError: for a node that cannot be.
    """
    if node.graphs():
        return list(infer_bodies(node, ask))
    if not node.inputs or node.inputs[0] is None:
        return []
    return list(_infer_relations(node, node.inputs[0], node.outputs[0], ask))


def _infer_relations(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    op, about = node.op, describe(node.op)
    if shaped := node.inputs[about.shaped]:
        yield from infer_alike((*shaped, y), ask)
        if about.channels is not None and (shape := ask(x)) is not None:
            yield x, _with_channels(node, about.channels, shape)
    elif op.startswith("broadcast_") and len(node.inputs) == 2:
        yield from _broadcast(node, ask)
    elif op in ONE_TO_ONE:
        forward, backward = ONE_TO_ONE[op]
        if (shape := ask(x)) is not None:
            yield y, forward(node.attrs, shape)
        if (shape := ask(y)) is not None:
            yield x, backward(node.attrs, shape)
    elif op in REDUCING:
        yield from _reduction(node.attrs, x, y, ask)
    if op in OTHERS:
        yield from OTHERS[op](node, x, y, ask)
    for operand, usual in zip(node.inputs, about.operands, strict=False):
        if operand is not None:
            yield operand, usual


def _broadcast(node: Node, ask: Ask) -> Inferred:
    a, b = (None if v is None else ask(v) for v in node.inputs)
    out = ask(node.outputs[0])
    if a is not None and b is not None:
        rank = max(len(a), len(b))
        pairs = zip(padded_shape(a, rank), padded_shape(b, rank), strict=True)
        yield node.outputs[0], tuple(_broadcast_dim(d, e) for d, e in pairs)
    for one, other in zip(node.inputs, (b, a), strict=True):
        if one is not None and out is not None and other is not None and len(other) < len(out):
            yield one, (*out[: -len(other) or None], *(None for _ in other))


def _broadcast_dim(d: Dim, e: Dim) -> Dim:
    """The size that two sizes are broadcast to."""
    if d == 1 or d == e:
        return e
    if e == 1 or (isinstance(d, int) and not isinstance(e, int)):
        return d
    return e if isinstance(e, int) and not isinstance(d, int) else None


def padded_shape(shape: Shape, rank: int) -> Shape:
    """A shape with sizes of 1 in front, as broadcasting adds them."""
    return (1,) * (rank - len(shape)) + shape


def channel_axis(node: Node, usual: int, rank: int) -> int:
    """The axis that each parameter is as long as."""
    return axis_of(parse(int, node.attrs.get("axis", str(usual))), rank)


def _with_channels(node: Node, usual: int, shape: Shape) -> Shape:
    row = constant_shape(node, 1)
    if row is None or len(row) != 1:
        return shape
    axis = channel_axis(node, usual, len(shape))
    return tuple(row[0] if i == axis else d for i, d in enumerate(shape))


def _reduction(attrs: Attrs, x: Value, y: Value, ask: Ask) -> Inferred:
    axes = parse(Ints | None, attrs.get("axis", "None"))
    keep = parse(bool, attrs.get("keepdims", "False"))
    if not axes or parse(bool, attrs.get("exclude", "False")):
        if keep and (shape := ask(y) or ask(x)) is not None:
            yield x, (None,) * len(shape)
            yield y, (None,) * len(shape)
        return
    if (shape := ask(x)) is not None:
        gone = axes_of(axes, len(shape))
        yield y, tuple(1 if i in gone else d for i, d in enumerate(shape) if keep or i not in gone)
    if (shape := ask(y)) is not None:
        rest = list(shape)
        for axis in sorted(axes_of(axes, len(shape) + (0 if keep else len(axes)))):
            rest[axis : axis + keep] = [None]
        yield x, tuple(rest)


def _window(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    """A kernel of n axes slides over n axes behind, or before, the channels."""
    attrs = node.attrs
    count = len(parse(Ints, attrs.get("kernel", "()")))
    shape = merge_shapes(ask(x), ask(y))
    if not count and shape is not None:  # a global pooling names no kernel
        count = len(shape) - 2
    if count not in SPACE:
        return
    last = str(attrs.get("layout")).endswith("C")
    weight = constant_shape(node, 1)
    into: Dim = (
        shape[-1 if last else 1] if shape is not None and "num_filter" not in attrs else None
    )
    out = parse(int, attrs["num_filter"]) if "num_filter" in attrs else into
    if weight is not None and node.op == "Deconvolution":
        into = weight[0]
    elif weight is not None:
        into = weight[-1 if last else 1] * parse(int, attrs.get("num_group", "1"))
    batch = merge_batches(ask(x), ask(y))
    yield x, _image(batch, into, SPACE[count], last)
    yield y, _image(batch, out, _slide_window(node, ask(x), count, last), last)


def _slide_window(node: Node, shape: Shape | None, count: int, last: bool) -> Shape:
    """The axes behind, or before, the channels once a window slid over them."""
    if shape is None or len(shape) != count + 2 or node.op == "Deconvolution":
        return (None,) * count
    attrs, space = node.attrs, shape[1:-1] if last else shape[2:]
    if parse(bool, attrs.get("global_pool", "False")):
        return (1,) * count
    kernel, stride, dilate, pad = (
        parse(Ints, attrs.get(name, "()")) or (usual,) * count
        for name, usual in (("kernel", 1), ("stride", 1), ("dilate", 1), ("pad", 0))
    )
    if any(len(sizes) != count for sizes in (kernel, stride, dilate, pad)):
        return (None,) * count
    up = attrs.get("pooling_convention", "valid") == "full"
    return tuple(
        window_output(d, k, s, w, 2 * p, up) if isinstance(d, int) else None
        for d, k, s, w, p in zip(space, kernel, stride, dilate, pad, strict=True)
    )


def _image(batch: Dim, channels: Dim, space: Shape, last: bool) -> Shape:
    return (batch, *space, channels) if last else (batch, channels, *space)


def constant_shape(node: Node, at: int) -> tuple[int, ...] | None:
    """The shape of an operand that is a constant."""
    value = node.inputs[at] if at < len(node.inputs) else None
    return value.tensor.shape if value is not None and value.tensor is not None else None


def _fully_connected(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    attrs = node.attrs
    weight, count = constant_shape(node, 1), parse(int, attrs["num_hidden"])
    if parse(bool, attrs.get("flatten", "True")):
        shape = ask(x)
        batch = merge_batches(shape, ask(y))
        yield y, (batch, count)
        if shape and is_size(batch):
            yield x, (batch, *shape[1:])
    elif (shape := merge_shapes(ask(x), ask(y))) is not None:
        yield x, (*shape[:-1], None if weight is None else weight[1])
        yield y, (*shape[:-1], count)


def _find_features(sizes: RnnSizes, parameters: Shape | None) -> int | None:
    """The numbers of a step, from how many parameters there are."""
    count = parameters[0] if parameters else None
    return sizes.find_features(count) if isinstance(count, int) else None


def _rnn(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    sizes = RnnSizes.of(node.attrs)
    shape, packed = ask(x), dict(enumerate(node.inputs)).get(1)
    parameters = None if packed is None else constant_shape(node, 1) or ask(packed)
    length, batch = shape[:2] if shape is not None and len(shape) == 3 else (LENGTH, BATCH)
    yield x, (length, batch, _find_features(sizes, parameters))
    yield y, (length, batch, sizes.output * sizes.directions)
    is_lstm, count = node.attrs.get("mode") == "lstm", sizes.layers * sizes.directions
    states = *node.inputs[2:3], *node.outputs[1:2]
    cells = *node.inputs[3 : 4 if is_lstm else 3], *node.outputs[2:]
    yield from ((v, (count, batch, sizes.output)) for v in states if v is not None)
    yield from ((v, (count, batch, sizes.hidden)) for v in cells if v is not None)
    if _has_lengths(node) and (lengths := node.inputs[-1]) is not None:
        yield lengths, (batch,)


def _has_lengths(node: Node) -> bool:
    return parse(bool, node.attrs.get("use_sequence_length", "False"))  # type: ignore[no-any-return]


def _sequence(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    """Each sample has a length; the first two axes are those of steps and of samples."""
    steps, shape = parse(int, node.attrs.get("axis", "0")), ask(x)
    if shape is not None and node.op == "SequenceLast":
        yield y, _drop_size(steps, shape, drop=True)
    if _has_lengths(node) and (lengths := node.inputs[1]) is not None:
        batch = merge_batches(shape and shape[1 - steps :], ask(lengths))
        yield lengths, (batch,)
        if shape is not None and is_size(batch):
            yield x, tuple(batch if i == 1 - steps else d for i, d in enumerate(shape))


def _embedding(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    if (shape := ask(y)) is not None:
        yield x, shape[:-1]
    if (shape := ask(x)) is not None:
        yield y, (*shape, parse(int, node.attrs["output_dim"]))


def _transpose(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    axes = parse(Ints, node.attrs.get("axes", "()"))
    before, after = ask(x), ask(y)
    rank = next((len(s) for s in (axes or None, before, after) if s is not None), 0)
    order = axes_of(axes, rank) if axes else tuple(reversed(range(rank)))
    if rank:
        yield y, tuple((before or (None,) * rank)[i] for i in order)
        yield x, tuple((after or (None,) * rank)[i] for i in invert_perm(order))


def _concat(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    shape = merge_shapes(*map(ask, values))
    if shape is not None:
        axis = axis_of(parse(int, node.attrs.get("dim", "1")), len(shape))
        yield from ((v, _drop_size(axis, shape)) for v in values)
        yield from _complete_sum(node, y, axis, ask)


def _complete_sum(node: Node, y: Value, axis: int, ask: Ask) -> Inferred:
    """The one size along ``axis`` that is not known: the result's is the sum of the operands'."""
    operands = [v for v in node.inputs if v is not None]
    if len(operands) != parse(int, node.attrs.get("num_args", "0")):
        return  # a part of a node
    shapes = [shape for v in (*operands, y) if (shape := ask(v)) is not None]
    sizes = [s[axis] if axis < len(s) else None for s in shapes]
    numbers = [d for d in sizes if isinstance(d, int)]
    if len(numbers) != len(operands) or len(sizes) != len(operands) + 1:
        return
    at = next(i for i, d in enumerate(sizes) if not isinstance(d, int))
    total = sizes[-1]
    size = 2 * total - sum(numbers) if isinstance(total, int) else sum(numbers)
    if size >= 0:
        known = (*operands, y)[at]
        yield known, tuple(size if i == axis else d for i, d in enumerate(shapes[at]))


def _split(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    attrs = node.attrs
    axis, drop = parse(int, attrs.get("axis", "1")), parse(bool, attrs.get("squeeze_axis", "0"))
    if (shape := ask(x)) is not None:
        parts = _drop_size(axis, shape, drop)
        yield from ((v, parts) for v in node.outputs)
    if (shape := merge_shapes(*map(ask, node.outputs))) is not None:
        rest = list(shape)
        at = axis_of(axis, len(shape) + drop)
        rest[at : at + (not drop)] = [parse(int, attrs["num_outputs"]) if drop else None]
        yield x, tuple(rest)


def _drop_size(axis: int, shape: Shape, drop: bool = False) -> Shape:
    at = axis_of(axis, len(shape))
    return tuple(None if i == at else d for i, d in enumerate(shape) if i != at or not drop)


def _flatten(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    shape = ask(x)
    sizes = [d for d in shape[1:] if isinstance(d, int)] if shape else []
    is_known = shape and len(sizes) == len(shape) - 1
    yield y, (shape[0], math.prod(sizes)) if shape and is_known else (BATCH, None)


def _reshape(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    """A code of 0 is the size of the operand there."""
    codes = parse(Ints, node.attrs["shape"])
    if not codes or min(codes) < -1 or parse(bool, node.attrs.get("reverse", "False")):
        return
    before, after = ask(x), ask(y)
    same = [i for i, c in enumerate(codes) if c == 0]
    if before is not None:
        shape = tuple(before[i] if c == 0 else c if c > 0 else None for i, c in enumerate(codes))
        rest = divide_shapes(before, shape) if shape.count(None) == 1 else None
        yield y, tuple(rest if d is None else d for d in shape)
    else:
        yield y, tuple(c if c > 0 else None for c in codes)
    if before is not None and after is not None:
        yield x, tuple(after[i] if i in same else d for i, d in enumerate(before))
        if before.count(None) == 1:
            yield x, tuple(divide_shapes(after, before) if d is None else d for d in before)


def _stack(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    yield from infer_alike(node.inputs, ask)
    axis = parse(int, node.attrs.get("axis", "0"))
    if (shape := ask(x)) is not None:
        at = axis_of(axis, len(shape) + 1)
        yield y, (*shape[:at], len(node.inputs), *shape[at:])
    if (shape := ask(y)) is not None:
        yield x, _drop_size(axis, shape, drop=True)


def _swap(attrs: Attrs, shape: Shape) -> Shape:
    a, b = (axis_of(parse(int, attrs.get(k, "0")), len(shape)) for k in ("dim1", "dim2"))
    return tuple(shape[i] for i in swap_axes_perm(len(shape), a, b))


def _widen(attrs: Attrs, shape: Shape) -> Shape:
    at = axis_of(parse(int, attrs["axis"]), len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


def _narrow(attrs: Attrs, shape: Shape) -> Shape:
    at = axis_of(parse(int, attrs["axis"]), len(shape))
    return (*shape[:at], *shape[at + 1 :])


def _slice(attrs: Attrs, shape: Shape) -> Shape:
    count = len(parse(Bounds, attrs["begin"]))
    return (None,) * min(count, len(shape)) + shape[count:]


def _slice_axis(attrs: Attrs, shape: Shape) -> Shape:
    return _drop_size(parse(int, attrs["axis"]), shape)


def _forget_sizes(attrs: Attrs, shape: Shape) -> Shape:
    return (None,) * len(shape)


def _repeat(node: Node, x: Value, y: Value, ask: Ask) -> Inferred:
    """Without an axis the result is a row, whatever is repeated."""
    if node.attrs.get("axis", "None") == "None":
        yield y, (None,)
    else:
        at = parse(int, node.attrs["axis"])
        yield from ((b, _drop_size(at, shape)) for a, b in ((x, y), (y, x)) if (shape := ask(a)))


WINDOWS = "Convolution Convolution_v1 Deconvolution Pooling Pooling_v1"
# Operators of one tensor: its shape to the result's, and back.
Reshaping = Callable[[Attrs, Shape], Shape]
ONE_TO_ONE: dict[str, tuple[Reshaping, Reshaping]] = {
    "SwapAxis": (_swap, _swap),
    "expand_dims": (_widen, _narrow),
    "squeeze": (_narrow, _widen),
    "slice": (_slice, _slice),
    "slice_axis": (_slice_axis, _slice_axis),
    **dict.fromkeys(("slice_like", "Pad", "UpSampling", "Crop"), (_forget_sizes, _forget_sizes)),
}
OTHERS: dict[str, Callable[[Node, Value, Value, Ask], Inferred]] = {
    **dict.fromkeys(WINDOWS.split(), _window),
    **dict.fromkeys(("_contrib_quantized_conv", "_contrib_quantized_pooling"), _window),
    "Concat": _concat,
    "Embedding": _embedding,
    "Flatten": _flatten,
    "FullyConnected": _fully_connected,
    "_contrib_quantized_flatten": _flatten,
    "_contrib_quantized_fully_connected": _fully_connected,
    "RNN": _rnn,
    **dict.fromkeys(("SequenceLast", "SequenceMask", "SequenceReverse"), _sequence),
    "_rnn_param_concat": _concat,
    "Reshape": _reshape,
    "SliceChannel": _split,
    "repeat": _repeat,
    "stack": _stack,
    "transpose": _transpose,
}
