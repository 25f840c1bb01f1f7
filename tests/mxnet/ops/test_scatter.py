"""Putting elements in places, and finding the places of elements."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, f64, i32, i64, ints, of, operator_test, refuses

X = f32(4, 5, 3)
AXES = "how many axes are indexed"
PARTS = [
    {"begin": "(1, 0)", "end": "(3, 2)"},
    {"begin": "(None, 1, 0)", "end": "(None, 4, 2)", "step": "(2, 1, 1)"},
    {"begin": "(3,)", "end": "(0,)", "step": "(-2,)"},
]
NEW = [f32(2, 2, 3), f32(2, 3, 2), f32(2, 5, 3)]
VALUES = of([0, 1, 2, 2.5, 3, -1, 0.2])


def numpy(op, *xs, **attrs):
    return case(op, *xs, **attrs).but(np_shape=True)


CASES = [
    case("scatter_nd", of([2, 3, 0]), of([[1, 1, 0], [0, 1, 0]]), shape="(2, 2)").but(fixed=AXES),
    case("scatter_nd", f32(2, 3), of([[1, 0]]), shape="(4, 3)"),
    case("scatter_nd", i32(2), of([[1, 0]], "int32"), shape="(4,)"),
    case("scatter_nd", f64(2), of([[1, 0], [0, 2]], "int64"), shape="(2, 3)").but(fixed=AXES),
    case("_contrib_index_copy", f32(4, 2), of([1, 3], "int64"), f32(2, 2)),
    case("_contrib_index_copy", X, of([3, 0]), f32(2, 5, 3)),
    case("batch_take", f32(4, 3), of([0, 5, -1, 1], "int32")),
    case("batch_take", f64(2, 3), of([2, 0], "int32")),
    *(case("_slice_assign", X, new, **a) for a, new in zip(PARTS, NEW, strict=True)),
    case("_slice_assign", i32(5), i32(2), begin="(1,)", end="(3,)"),
    *(case("_slice_assign_scalar", X, scalar=2.5, **a) for a in PARTS),
    case("_slice_assign_scalar", i32(5), scalar=7, begin="(1,)", end="(3,)"),
    case("_contrib_boolean_mask", X, of([0, 1, 0, 1])),
    case("_contrib_boolean_mask", i32(3), of([0, 1, 1], "int32")),
    numpy("_contrib_boolean_mask", X, of([0, 1, 0, 1], "bool")),
    *(numpy("_npx_nonzero", x) for x in (ints(2, 3, high=1), i32(4, low=0, high=1), f32(2, 2, 2))),
    *(
        numpy("_npi_unique", x, **a)
        for x in (ints(8, high=4), i64(8, high=4), f64(5))
        for a in ({}, {"return_index": True}, {"return_inverse": 1, "return_counts": 1})
    ),
    numpy("_npi_unique", i32(8, high=4)).but(gap="Unique of int32"),
    numpy("_npi_unique", of([[1, 0], [1, 0], [2, 3]]), axis=0),
    *(
        case("_ravel_multi_index", of([[1, 0], [2, 1]], t), shape="(2, 3)")
        for t in ("float32", "int32")
    ),
    case("_ravel_multi_index", of([[1, 0], [2, 1], [0, 3]], "int64"), shape="(-1, 3, 4)"),
    *(
        case("_unravel_index", of([5, 1, 2], t), shape="(2, 3)")
        for t in ("float32", "int32", "int64")
    ),
    case("_unravel_index", of([5, 1, 11]), shape="(-1, 2, 2)"),
    refuses("_unravel_index", of([[5, 1]]), shape="(3, 2)", says="places along 2 axes"),
    *(case("_histogram", VALUES.astype(t), of([0, 1, 2, 3], t)) for t in ("float32", "float64")),
    case("_histogram", of([[0, 1], [2, 5]]), of([0, 0.5, 2])),
    *(case("_histogram", VALUES, bin_cnt=n, range="(0, 3)") for n in (1, 3, 6)),
    *(
        numpy("_npi_bincount", of([0, 1, 1, 3], t), minlength=n)
        for t in ("int32", "int64")
        for n in (0, 6)
    ),
    numpy("_npi_bincount", of([0, 1, 1, 3], "int32"), f32(4), has_weights=True),
    refuses("_contrib_boolean_mask", f32(2, 3), f32(3), axis=1, says="axis=1"),
    refuses("_histogram", VALUES, bin_cnt=3, says="needs bin_cnt and range"),
    case("_contrib_index_copy", f64(4), of([2, 0], "int32"), f64(2)),
    case("batch_take", f32(3, 1), of([0, 3, -2], "int32")),
    case("batch_take", i32(2, 4), of([3, 1], "int32")),
]

test_scattering = operator_test(CASES)
