"""NumPy's ways to move, join and part tensors."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, f64, i32, operator_test, refuses

X = f32(2, 3, 4)
SCALAR = np.array(3, "float32")


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


def several(op, *xs, **attrs):
    return numpy(op, *xs, num_args=len(xs), **attrs)


CASES = [
    numpy("_np_squeeze", f32(1, 3, 1)).but(fixed="needs the static shape"),
    numpy("_np_squeeze", f32(1, 1)),
    *(numpy("_np_squeeze", f32(1, 3, 1), axis=a) for a in ("0", "-1", "(0, 2)")),
    *(numpy("_np_transpose", f32(*s)) for s in ((3,), (2, 3), (2, 3, 4))),
    *(numpy("_np_transpose", X, axes=a) for a in ("(1, 0, 2)", "(-1, 0, 1)")),
    numpy("_np_moveaxis", X, source="0", destination="2"),
    numpy("_np_moveaxis", X, source="(0, 1)", destination="(-1, 0)"),
    numpy("_np_moveaxis", i32(2, 3, 4), source="-1", destination="0"),
    *(numpy("_np_roll", X, shift=s) for s in (1, -2, 30)),
    *(numpy("_np_roll", X, shift=s, axis=a) for s in (1, -1, 5) for a in (0, -1)),
    numpy("_np_roll", X, shift="(1, -1)", axis="(0, 2)"),
    numpy("_np_roll", X, shift="1", axis="(0, 2)"),
    *(numpy("_npi_flip", X, axis=a) for a in ("0", "(0, 2)", "1")),
    *(
        numpy("_npi_rot90", X, k=k, axes=a)
        for k in (0, 1, 2, 3, -1, 5)
        for a in ("(0, 1)", "(2, 0)")
    ),
    *(several(f"_np_atleast_{n}d", SCALAR, f32(2), f32(2, 3), X) for n in (1, 2, 3)),
    several("_np_atleast_2d", f32(3)),
    several("_npi_concatenate", X, f32(3, 3, 4)),
    *(several("_npi_concatenate", X, f32(2, 3, 4, seed=1), axis=a) for a in (0, 1, -1, "None")),
    *(several("_npi_stack", X, f32(2, 3, 4, seed=1), axis=a) for a in (0, 1, -1)),
    *(
        several(f"_npi_{s}stack", f32(*shape), f32(*shape, seed=1))
        for s in ("h", "v", "d", "column_")
        for shape in ((3,), (2, 3), (2, 3, 4))
    ),
    several("_npi_hstack", f32(2), f32(3)),
    several("_npi_column_stack", f32(3, 2), f32(3)),
    *(
        numpy(op, f32(6, 6, 6), indices=i, axis=a, sections=n)
        for op, a in (("_split_v2", 0), ("_split_v2", 1), ("_npi_hsplit", 1), ("_npi_dsplit", 2))
        for i, n in (("()", 3), ("(0, 2, 3)", 0), ("()", 1))
    ),
    numpy("_split_v2", f32(3, 2), indices="()", sections=3, axis=0, squeeze_axis=True),
    numpy("_split_v2", f32(3, 2), indices="(0, 1)", axis=0),
    *(
        case("_split_v2", x, indices=i, axis=a)
        for x in (f32(4, 5), i32(4, 5, 2))
        for i, a in (("(0, 0, 2)", 0), ("(0, 2, 2)", 1), ("(0, 4)", 0), ("(0, 0, 4, 4)", -2))
    ),
    numpy("_npi_broadcast_to", f32(3), shape="(2, 3)"),
    numpy("_npi_broadcast_to", f32(1, 3), shape="(2, -2)"),
    refuses("_npi_rot90", X, says="axes=None are not two"),
    *(  # the first parts are longer
        numpy(op, f32(*shape), indices="()", axis=1, sections=n)
        for op in ("_split_v2", "_npi_hsplit")
        for shape, n in (((3, 7), 3), ((3, 5, 2), 2), ((2, 9), 4), ((2, 2), 3), ((2, 0), 3))
    ),
    *(case("_split_v2", f32(7, 3), indices="()", axis=0, sections=n) for n in (2, 3, 4)),
    *(several(f"_np_atleast_{n}d", x) for n in (1, 2, 3) for x in (f64(2), i32(2, 1), i32())),
    several("_np_atleast_3d", f32(0), f32(2, 3, 1)),
    numpy("_npi_broadcast_to", SCALAR, shape="(2, 2)"),
    numpy("_npi_broadcast_to", i32(2, 1), shape="(3, -2, 4)"),
    numpy("_npi_broadcast_to", f32(1, 3), shape="(0, 3)"),
    refuses("_npi_dsplit", f32(6, 6, 6), indices=(), sections=3, says="axis=1: MXNet splits"),
    refuses("_npi_hsplit", f32(6, 6, 6), indices=(), axis=0, sections=3, says="axis=0: MXNet"),
]

test_numpy_shaping = operator_test(CASES)
