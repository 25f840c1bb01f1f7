"""Calls of functions that make arrays, choose between them, and ask for types."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call


def like(function: Any, *more: Any) -> Any:
    """Calls of a function that makes an array like another."""
    return lambda d: call(function, d.array(), *more, dtype=d.pick(None, "int8", "float64"),
                          shape=d.pick(None, None, (2, 3)))  # fmt: skip


def make_close(function: Any) -> Any:
    """Calls of a comparison to a tolerance."""

    def case(d: Draw) -> Call:
        x = d.array("iuf")
        return call(function, x, d.array("iuf", shape=d.like(x.shape)), rtol=0.1, atol=d.pick(0, 1))

    return case


def draw_choose(d: Draw) -> Call:
    x = d.array("i", low=0, high=2)
    return call(np.choose, x, [d.array(shape=d.like(x.shape)) for _ in range(3)])


def draw_select(d: Draw) -> Call:
    x = d.array("iuf")
    tests = [d.array("b", shape=x.shape) for _ in range(2)]
    return call(np.select, tests, [x, d.array("iuf", shape=x.shape)], d.pick(0, 2.5))


def make_round(function: Any) -> Any:
    """Calls of ``np.round``."""
    return lambda d: call(function, d.array("iuf"), d.pick(0, 1, 2, -1))


def draw_clip(d: Draw) -> Call:
    x = d.array("iuhf")
    bounds = [d.pick(None, 1, d.array(x.dtype.kind, dtype=x.dtype, shape=d.like(x.shape)))
              for _ in range(2)]  # fmt: skip
    return call(np.clip, x, *bounds)


def draw_linspace(d: Draw) -> Call:
    x = d.array("if")
    y = d.array("if", shape=d.like(x.shape))
    return call(np.linspace, x, y, d.integer(0, 5), endpoint=d.flag(), axis=d.pick(0, -1))


def diagonal(function: Any, *axes: Any) -> Any:
    """Calls of a function of the diagonals of an array."""

    def case(d: Draw) -> Call:
        x = d.array(rank=(1, 3))
        places = [d.axis(x), d.axis(x)] if axes else []
        return call(function, x, d.integer(-3, 3), *places)

    return case


CASES: dict[str, Any] = {
    "np.zeros_like": like(np.zeros_like),
    "np.ones_like": like(np.ones_like),
    "np.full_like": like(np.full_like, 3),
    "np.empty_like": lambda d: call(lambda x: np.empty_like(x) * 0 == 0, d.array("i")),
    "np.where": lambda d: call(np.where, (x := d.array("bif")), d.pick(
        1, d.array(shape=d.like(x.shape))), d.array(shape=d.like(x.shape))),
    "np.clip": draw_clip,
    "np.select": draw_select,
    "np.choose": draw_choose,
    "np.nan_to_num": lambda d: call(lambda x, **o: np.nan_to_num(1 / x, **o), d.array("f"),
                                    nan=d.pick(0.0, 7), posinf=d.pick(None, 3)),
    "np.isclose": make_close(np.isclose),
    "np.allclose": make_close(np.allclose),
    "np.array_equal": lambda d: call(np.array_equal, (x := d.array("iuf", low=0, high=1)),
                                     d.array("iuf", shape=d.pick(x.shape, (3,)), low=0, high=1)),
    "np.meshgrid": lambda d: call(np.meshgrid, d.array(rank=(1, 1)), d.array(rank=(1, 1)),
                                  indexing=d.pick("xy", "ij", "ab"), sparse=d.flag()),
    "np.ix_": lambda d: call(np.ix_, d.array("i", rank=(1, 2)), d.array("i", rank=(1, 1))),
    "np.linspace": draw_linspace,
    "np.arange": lambda d: call(lambda x, a, s: np.arange(a, x.shape[0], s),
                                d.array(rank=(1, 2)), d.integer(-2, 2), d.pick(1, 2)),
    "np.triu": lambda d: call(np.triu, d.array(rank=(1, 3)), d.integer(-3, 3)),
    "np.tril": lambda d: call(np.tril, d.array(rank=(1, 3)), d.integer(-3, 3)),
    "np.diagonal": diagonal(np.diagonal, 1, 2),
    "np.linalg.diagonal": lambda d: call(np.linalg.diagonal, d.array(), offset=d.integer(-2, 2)),
    "np.diag": diagonal(np.diag),
    "np.trace": diagonal(np.trace, 1, 2),
    "np.linalg.trace": lambda d: call(np.linalg.trace, d.array("iuf"), offset=d.integer(-2, 2)),
    "np.vander": lambda d: call(np.vander, d.array("if", rank=(1, 1), low=-4, high=4),
                                d.pick(None, 3), d.flag()),
    "np.real": lambda d: call(np.real, d.array()),
    "np.imag": lambda d: call(np.imag, d.array()),
    "np.iscomplexobj": lambda d: call(np.iscomplexobj, d.array()),
    "np.isrealobj": lambda d: call(np.isrealobj, d.array()),
    "np.round": make_round(np.round),
    "np.around": make_round(np.around),
    "np.fix": lambda d: call(np.fix, d.array("f")),
    "np.result_type": lambda d: call(np.result_type, d.array(), d.array(), d.pick(1, 2.5)),
    "np.can_cast": lambda d: call(lambda x, t: np.can_cast(x.dtype, t), d.array(),
                                  d.dtype("biuhf")),
}  # fmt: skip
