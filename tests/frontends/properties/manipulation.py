"""Calls of functions that reshape, split, repeat, join and pad."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call


def make_join(function: Any, low: int = 1, high: int = 3, axis: bool = False) -> Any:
    """Calls of a function that joins arrays of like shapes and any element types."""

    def case(d: Draw) -> Call:
        x = d.array(rank=(low, high))
        others = [
            d.array(shape=d.pick(x.shape, x.shape, x.shape, (2,))) for _ in range(d.integer(0, 2))
        ]
        options = {"axis": d.axis(x, extra=function is np.stack)} if axis else {}
        return call(function, [x, *others], **options)

    return case


def split(function: Any, axis: Any = None) -> Any:
    """Calls of a function that splits, at places or in parts."""

    def case(d: Draw) -> Call:
        x = d.array(rank=(1, 3), least=2)
        parts = d.pick(1, 2, 3, [1], [1, 3], [0, -1])
        return call(function, x, parts, d.axis(x)) if axis is None else call(function, x, parts)

    return case


def draw_roll(d: Draw) -> Call:
    x = d.array(rank=(1, 3))
    shift = d.pick(1, -2, 5, (1, -1))
    axis = d.pick(None, d.axis(x), (0, -1))
    return call(np.roll, x, shift, axis)


def draw_repeat(d: Draw) -> Call:
    x = d.array(rank=(1, 2))
    at = d.axis(x, none=True)
    size = x.size if at is None else x.shape[at] if -x.ndim <= at < x.ndim else 1
    counts = d.pick(0, 2, [d.integer(0, 2) for _ in range(size)], [1, 2])
    return call(np.repeat, x, counts, at)


def draw_pad(d: Draw) -> Call:
    x = d.array(rank=(1, 3), least=2)
    mode = d.pick("constant", "edge", "reflect", "wrap", "symmetric")
    widths = d.pick(1, (0, 1), ((1, 0),), [(1, 1)] * x.ndim, -1)
    options = {"constant_values": d.pick(2, (1, 3))} if mode == "constant" else {}
    return call(np.pad, x, widths, mode, **options)


CASES: dict[str, Any] = {
    "np.reshape": lambda d: call(np.reshape, (x := d.array()), d.regroup(x),
                                 order=d.pick("C", "C", "F", "A")),
    "np.ravel": lambda d: call(np.ravel, d.array(), order=d.pick("C", "F", "A")),
    "np.transpose": lambda d: call(np.transpose, (x := d.array()), d.pick(
        None, tuple(range(x.ndim))[::-1], tuple(range(-x.ndim, 0)), (1, 0), (0, 0))),
    "np.matrix_transpose": lambda d: call(np.matrix_transpose, d.array()),
    "np.linalg.matrix_transpose": lambda d: call(np.linalg.matrix_transpose, d.array()),
    "np.swapaxes": lambda d: call(np.swapaxes, (x := d.array()), d.axis(x), d.axis(x)),
    "np.moveaxis": lambda d: call(np.moveaxis, (x := d.array()), *d.pick(
        (d.axis(x), d.axis(x)), ((0, 1), (-1, 0)), ((0,), (0, 1)))),
    "np.rollaxis": lambda d: call(np.rollaxis, (x := d.array(rank=(1, 3))), d.axis(x),
                                  d.axis(x)),
    "np.expand_dims": lambda d: call(np.expand_dims, (x := d.array()), d.pick(
        d.axis(x, extra=1), (0, -1), (0, 0), (1, 2))),
    "np.squeeze": lambda d: call(np.squeeze, (x := d.array(shape=d.like((3, 2, 1)))), d.axes(x)),
    "np.atleast_1d": lambda d: call(np.atleast_1d, d.array(), d.array()),
    "np.atleast_2d": lambda d: call(np.atleast_2d, d.array()),
    "np.atleast_3d": lambda d: call(np.atleast_3d, d.array()),
    "np.broadcast_to": lambda d: call(np.broadcast_to, (x := d.array()), d.pick(
        x.shape, (2, *x.shape), (*x.shape[:-1], 4), (3, 3))),
    "np.broadcast_arrays": lambda d: call(np.broadcast_arrays, (x := d.array()),
                                          d.array(shape=d.like(x.shape)), d.array(shape=(1,))),
    "np.broadcast_shapes": lambda d: call(
        lambda x, y: np.broadcast_shapes(x.shape, y.shape, (1, 1)), (x := d.array()),
        d.array(shape=d.like(x.shape))),
    "np.split": split(np.split),
    "np.array_split": split(np.array_split),
    "np.hsplit": split(np.hsplit, 1),
    "np.vsplit": split(np.vsplit, 0),
    "np.dsplit": split(np.dsplit, 2),
    "np.unstack": lambda d: call(np.unstack, (x := d.array()), axis=d.axis(x)),
    "np.tile": lambda d: call(np.tile, d.array(), d.pick(2, 0, (2, 1), (1, 2, 1, 2))),
    "np.repeat": draw_repeat,
    "np.flip": lambda d: call(np.flip, (x := d.array()), d.axes(x)),
    "np.flipud": lambda d: call(np.flipud, d.array()),
    "np.fliplr": lambda d: call(np.fliplr, d.array()),
    "np.rot90": lambda d: call(np.rot90, (x := d.array()), d.integer(-5, 5), d.pick(
        (0, 1), (1, 0), (0, -1), (d.axis(x), d.axis(x)))),
    "np.roll": draw_roll,
    "np.copy": lambda d: call(np.copy, d.array()),
    "np.astype": lambda d: call(np.astype, d.array(low=0), d.dtype("biuhf")),
    "np.resize": lambda d: call(np.resize, d.array(rank=(1, 3)), d.pick(5, (2, 3), (4, 4))),
    "np.shape": lambda d: call(np.shape, d.array()),
    "np.ndim": lambda d: call(np.ndim, d.array()),
    "np.size": lambda d: call(np.size, (x := d.array()), d.axis(x, none=True)),
    "np.concatenate": make_join(np.concatenate, 0, axis=True),
    "np.stack": make_join(np.stack, 0, 2, axis=True),
    "np.vstack": make_join(np.vstack),
    "np.hstack": make_join(np.hstack),
    "np.dstack": make_join(np.dstack),
    "np.column_stack": make_join(np.column_stack, 1, 2),
    "np.append": lambda d: call(np.append, (x := d.array()), d.array(
        shape=d.pick(x.shape, x.shape, (2,))), d.axis(x, none=True)),
    "np.pad": draw_pad,
    "np.insert": lambda d: call(np.insert, (x := d.array(rank=(1, 3))), d.pick(
        0, -1, 1, 7), d.array(x.dtype.kind, shape=(), dtype=x.dtype), d.axis(x, none=True)),
    "np.delete": lambda d: call(np.delete, (x := d.array(rank=(1, 3), least=2)), d.pick(
        0, -1, [0, 1], slice(0, 1), 9), d.axis(x, none=True)),
    "np.lib.stride_tricks.sliding_window_view": lambda d: call(
        np.lib.stride_tricks.sliding_window_view, (x := d.array(rank=(1, 3))), d.integer(1, 3),
        d.axis(x)),
}  # fmt: skip
