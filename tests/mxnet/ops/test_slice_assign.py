"""Slices taken out or put in, and elements replaced by a mask."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import Case, case, f32, f64, flags, i32, of, operator_test, refuses
from testing.mxnet_live import live_mxnet

A, B, C = f32(6), f32(2, 3), f32(2, 2, 3)
SLICE = "needs to know how many places the slice has"
INDICES = "needs to know how many indices there are"


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


def at(*places, dtype="int64"):
    return of(places, dtype)


def in_place(case: Case):
    """What MXNet makes of its first operand; a symbol cannot say that."""
    mx = live_mxnet()
    arrays = [mx.np.array(x, dtype=x.dtype) for x in case.inputs]
    name = case.op.removeprefix("_npi_")
    run = getattr(mx.nd.numpy._internal, name)
    attrs = {k: float(v) if k == "value" else int(v) for k, v in case.attrs.items()}
    with mx.util.np_shape(True):
        run(*arrays, **attrs, out=arrays[0])
        return [arrays[0].asnumpy()]


def assign(*xs, start=0, **attrs):
    op = "_npi_boolean_mask_assign_" + ("scalar" if "value" in attrs else "tensor")
    return numpy(op, *xs, start_axis=start, **attrs).but(oracle=in_place)


CASES = [
    *(
        case("_npi_delete", A, **a)
        for a in (
            {"int_ind": 2},
            {"int_ind": -1},
            {"start": 0, "stop": 6, "step": 2},
            {"start": -2, "stop": 9, "step": 1},
            {"start": 4, "stop": 1, "step": -1},
            {"start": 4, "stop": 1, "step": 1},
        )
    ),
    *(
        case("_npi_delete", B, **a)
        for a in (
            {"int_ind": -1, "axis": 1},
            {"int_ind": 0},
            {"start": 1, "stop": 3, "step": 1, "axis": -1},
        )
    ),
    *(
        case("_npi_delete", A, index)
        for index in (at(1, 1, 3), at(9, 0), at(-7, -1), at(2, dtype="int32"))
    ),
    case("_npi_delete", B, at(1, 0), axis=1),
    case("_npi_delete", i32(2, 3), at(1), axis=0),
    numpy("_npi_insert_scalar", A, val=9, int_ind=2),
    numpy("_npi_insert_scalar", i32(6), val=2.5, int_ind=1),
    *(
        numpy("_npi_insert_scalar", A, f32(n), int_ind=i)
        for n, i in ((2, 2), (1, 6), (1, -6), (3, 0))
    ),
    *(
        numpy("_npi_insert_scalar", B, f32(*s), int_ind=1, axis=a)
        for s, a in (((2,), 1), ((1,), 0), ((2, 3), 0), ((2, 2), 1), ((3,), 0))
    ),
    numpy("_npi_insert_scalar", C, f32(2, 2), int_ind=1, axis=2),
    numpy("_npi_insert_scalar", f64(2, 2, 2), f32(2, 2), int_ind=-1, axis=0),
    *(
        numpy("_npi_insert_slice", A, f32(n), start=a, stop=b, step=c).but(fixed=SLICE)
        for n, a, b, c in ((3, 0, 6, 2), (1, 0, 6, 2), (2, 4, 1, -2), (2, 1, 2, 1))
    ),
    *(
        numpy("_npi_insert_slice", B, f32(*s), start=0, stop=2, step=1, axis=a).but(fixed=SLICE)
        for s, a in (((3,), 0), ((2,), 1), ((2, 1), 1))
    ),
    *(
        numpy("_npi_insert_tensor", A, f32(3), index).but(fixed=INDICES)
        for index in (at(0, 2, 2), at(4, -6, 2))
    ),
    numpy("_npi_insert_tensor", A, f32(3), at(2)),
    numpy("_npi_insert_tensor", A, f32(2), of(2, "int64")),
    numpy("_npi_insert_tensor", B, f32(2), at(1), axis=1),
    numpy("_npi_insert_tensor", B, f32(2, 1), at(0, 2), axis=1).but(fixed=INDICES),
    numpy("_npi_insert_tensor", i32(2, 3), f32(3) * 9, at(0, 2), axis=0).but(fixed=INDICES),
    *(assign(A, mask, value=9.5) for mask in (of([1, 0, 1, 0, 0, 1], "bool"), np.zeros(6, bool))),
    assign(B, flags(3), value=-1, start=1),
    assign(B, flags(2, 3), value=-1),
    assign(C, flags(2), value=2.5, start=1),
    assign(i32(4), flags(4), value=2.7),
    assign(A, of([1, 0, 1, 0, 0, 1], "bool"), f32(3, seed=1)),
    assign(A, of([1, 0, 1, 0, 0, 1], "bool"), f32(1, seed=1)),
    assign(f32(3, 2), of([1, 0, 1], "bool"), f32(2, 2, seed=1)),
    assign(f32(2, 3), of([1, 0, 1], "bool"), f32(2, 2, seed=1), start=1),
    assign(f32(2, 3), of([[1, 0, 1], [0, 0, 1]], "bool"), f32(3, seed=1)),
    assign(f64(2, 2, 2), of([[1, 0], [0, 1]], "bool"), f64(2, 2, seed=1)),
    refuses("_npi_delete", f32(6), start=4, int_ind=4, says="an integer and a slice"),
]
test_editing = operator_test(CASES)
