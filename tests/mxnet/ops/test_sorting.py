"""Sorting and the largest elements."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f16, f32, f64, i64, ints, operator_test, refuses

X = f32(3, 4, 5)


def distinct(*shape):
    return np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype("int32")


AXES = ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": "None"})
KINDS = ("value", "indices", "both", "mask")

CASES = [
    *(
        case(op, x, **a)
        for op in ("sort", "argsort")
        for x in (X, f32(6))
        for a in AXES
        if x.ndim > 1 or a.get("axis") != 1
    ),
    *(case(op, X, is_ascend=False, **a) for op in ("sort", "argsort") for a in AXES),
    *(case(op, make(3, 4)) for op in ("sort", "argsort") for make in (f64, distinct)),
    *(case("argsort", X, dtype=t) for t in ("int32", "int64", "float64", "uint8", "float16")),
    *(case("topk", X, k=k, ret_typ=t, **a) for t in KINDS for a in AXES for k in (1, 3)),
    *(case("topk", X, k=2, ret_typ=t, is_ascend=True) for t in KINDS),
    *(case("topk", X, k=0, ret_typ=t) for t in KINDS),
    *(case("topk", make(3, 4), k=2, ret_typ=t) for t in KINDS for make in (f64, f16, distinct)),
    *(case("topk", X, k=2, dtype=t, ret_typ="both") for t in ("int32", "int64", "float64")),
    case("topk", X),
    case("topk", ints(3, 6), k=3, ret_typ="both"),  # with equal elements
    case("topk", i64(3, 6), k=3, ret_typ="both"),
    refuses("topk", X, ret_typ="all", says="ret_typ='all' is unknown"),
    case("topk", f32(2, 5), k=-2, ret_typ="both"),
]

test_sorting = operator_test(CASES)
