"""Calls of products of matrices, norms, and what elimination solves."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call

linalg = np.linalg


def product(function: Any, *shapes: Any) -> Any:
    """Calls of a product of two arrays, of one of several pairs of shapes."""

    def case(d: Draw) -> Call:
        first, second = d.pick(*shapes)
        return call(function, d.array(shape=first, low=-4, high=4),
                    d.array(shape=second, low=-4, high=4))  # fmt: skip

    return case


DOTS = (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((), (2,)), ((2, 3), (2, 3, 4)),
        ((2, 3), (2, 4)), ((4, 2, 3), (3, 2)))  # fmt: skip
SAME = (((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (4, 3)), ((2, 3), (3,)), ((), ()), ((3,), (2,)))


def along(function: Any) -> Any:
    """Calls of a product along an axis."""

    def case(d: Draw) -> Call:
        shape = d.pick((3,), (2, 3), (3, 2, 3), (2,))
        x = d.array("if", shape=shape)
        return call(function, x, d.array("if", shape=shape), axis=d.axis(x))

    return case


def contract(function: Any) -> Any:
    """Calls of ``np.tensordot``."""

    def case(d: Draw) -> Call:
        x, y = d.array("if", shape=(2, 3, 4)), d.array("if", shape=(3, 4, 2))
        axes = d.pick(0, 1, 2, ([1], [0]), ([0, 1], [2, 0]), ([-1, 1], [1, -3]))
        return call(function, x, y, axes=axes)

    return case


def sum_products(d: Draw) -> Call:
    equation, *shapes = d.pick(
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)),
        ("ij->", (2, 3)), ("...i,...i->...", (2, 3), (3,)), ("bij,bjk->bik", (2, 3, 2), (2, 2, 4)),
        ("i,j,k->kji", (2,), (3,), (4,)),
    )  # fmt: skip
    return call(np.einsum, equation, *(d.array("iuf", shape=s) for s in shapes))


def matrices(function: Any, kinds: str = "if", **more: Any) -> Any:
    """Calls of a function of square matrices, whose diagonals are large."""

    def apply(x: Any, *args: Any, **options: Any) -> Any:
        return function(x + np.eye(x.shape[-1]).astype(x.dtype) * 30, *args, **options)

    def case(d: Draw) -> Call:
        size = d.integer(1, 4)
        options = {k: d.pick(*v) for k, v in more.items()}
        x = d.array(kinds, shape=(*d.shape(0, 2), size, size), low=-8, high=8)
        return call(apply, x, *options.values())

    return case


def positive(d: Draw) -> Call:
    apply = lambda x, **o: linalg.cholesky(x @ np.swapaxes(x, -1, -2) + np.eye(3), **o)
    return call(apply, d.array("f", shape=d.pick((3, 3), (2, 3, 4))), upper=d.flag())


def solve(d: Draw) -> Call:
    apply = lambda x, y: linalg.solve(x + np.eye(3) * 30, y)
    return call(apply, d.array("if", shape=d.pick((3, 3), (2, 3, 3))),
                d.array("if", shape=d.pick((3,), (3, 2), (2, 3, 1))))  # fmt: skip


def norm(d: Draw) -> Call:
    x = d.array("iuf", rank=(1, 3))
    ord = d.pick(None, 1, 2, np.inf, -np.inf, 0, 3, "fro", -1)
    axis = d.pick(None, d.axis(x), d.axes(x))
    is_matrix = (x.ndim == 2) if axis is None else isinstance(axis, tuple) and len(axis) == 2
    if is_matrix and ord == 2:
        ord = None  # of singular values
    return call(linalg.norm, x, ord, axis, keepdims=d.flag())


VECTORS = (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)))
CASES: dict[str, Any] = {
    "np.dot": product(np.dot, *DOTS),
    "np.vdot": product(np.vdot, ((3,), (3,)), ((2, 3), (2, 3))),
    "np.inner": product(np.inner, *SAME),
    "np.outer": product(np.outer, *SAME),
    "np.linalg.outer": product(linalg.outer, ((3,), (3,)), ((2, 3), (2,))),
    "np.linalg.matmul": product(linalg.matmul, *DOTS),
    "np.kron": product(np.kron, *SAME),
    "np.cross": product(np.cross, *VECTORS),
    "np.linalg.cross": product(linalg.cross, *VECTORS),
    "np.vecdot": product(np.vecdot, *SAME),
    "np.matvec": product(np.matvec, ((2, 3), (3,)), ((4, 2, 3), (4, 3)), ((2, 3), (2,))),
    "np.vecmat": product(np.vecmat, ((2,), (2, 3)), ((4, 2), (4, 2, 3))),
    "np.linalg.vecdot": along(linalg.vecdot),
    "np.tensordot": contract(np.tensordot),
    "np.linalg.tensordot": contract(linalg.tensordot),
    "np.einsum": sum_products,
    "np.linalg.norm": norm,
    "np.linalg.vector_norm": lambda d: call(linalg.vector_norm, (x := d.array("iuf")), axis=d.axes(
        x), keepdims=d.flag(), ord=d.pick(2, 1, np.inf, 0, 3)),
    "np.linalg.matrix_norm": lambda d: call(linalg.matrix_norm, d.array(
        "iuf", rank=(2, 3)), keepdims=d.flag(), ord=d.pick("fro", 1, -1, np.inf)),
    "np.linalg.inv": matrices(linalg.inv),
    "np.linalg.det": matrices(linalg.det),
    "np.linalg.slogdet": matrices(linalg.slogdet),
    "np.linalg.matrix_power": matrices(linalg.matrix_power, "f", n=(0, 1, 2, 3, -1)),
    "np.linalg.cholesky": positive,
    "np.linalg.solve": solve,
}  # fmt: skip
