"""Picking parts of a tensor by position or index."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, i32, i64, ints, of, operator_test, refuses, u8

X = f32(4, 5, 6)
OUT = of([-7, -1, 0, 3, 4, 9, 2.7])  # beyond both ends of an axis, and between


CASES = [
    *(
        case("Embedding", OUT, f32(4, 3), input_dim=4, output_dim=3).but(params=p)
        for p in ((1,), ())
    ),
    case(
        "_contrib_SparseEmbedding", i32(2, 3, low=0, high=3), f32(4, 3), input_dim=4, output_dim=3
    ),
    case("_contrib_SparseEmbedding", OUT, f32(4, 3), input_dim=4, output_dim=3),
    case("Embedding", i32(2, 3, low=0, high=3), f32(4, 3), input_dim=4, output_dim=3),
    case("Embedding", ints(2, 3, 2, high=3), f64(4, 3), input_dim=4, output_dim=3, dtype="float64"),
    case(
        "Embedding",
        i64(2, 3, low=0, high=3),
        f16(4, 3),
        input_dim=4,
        output_dim=3,
        dtype="float16",
        sparse_grad=True,
    ),
    case("Embedding", u8(2, 3, high=3), f32(4, 3), input_dim=4, output_dim=3),
    *(
        case("take", X, OUT, **a)
        for a in (
            {},
            {"axis": 1},
            {"axis": -1},
            {"axis": 0, "mode": "clip"},
            {"axis": 1, "mode": "wrap"},
            {"mode": "wrap"},
        )
    ),
    case("take", X, ints(2, 3, high=3)),
    case("take", X, i32(2, 3, low=0, high=3), axis=-2),
    case("take", X, ints(2, 3, high=3), mode="raise"),
    case("take", i32(4, 5), i64(3, low=-20, high=20), mode="wrap", axis=1),
    case("take", f16(4, 5), of(2), axis=1).but(np_shape=True),
    *(
        case("one_hot", OUT, depth=4, **a)
        for a in (
            {},
            {"on_value": 2.5, "off_value": -1},
            {"dtype": "int32"},
            {"dtype": "float16"},
            {"dtype": "uint8"},
            {"dtype": "float64"},
            {"dtype": "int8"},
            {"dtype": "int64"},
        )
    ),
    case("one_hot", i32(2, 3, low=0, high=4), depth=5),
    case("one_hot", i64(2, 3, 2, low=0, high=4), depth=5),
    case("gather_nd", X, of([[0, 1, 3], [2, 4, 0]])).but(fixed="how many axes are indexed"),
    case("gather_nd", X, of([[0, 1, 3], [2, 4, 0], [1, 1, 1]], "int32")).but(
        fixed="how many axes are indexed"
    ),
    case("gather_nd", X, of([[[0, 1], [3, 2]]], "int64")),
    case("gather_nd", i32(4, 5), of([[0, -1], [-2, 4]])).but(fixed="how many axes are indexed"),
    *(
        case("pick", X, ints(4, 5, low=-1, high=6), mode=m, keepdims=k)
        for m in ("clip", "wrap")
        for k in (0, 1)
    ),
    case("pick", X, ints(4, 5, high=5)),
    case("pick", X, ints(4, 6, high=4), axis=1),
    case("pick", X, ints(4, 1, 6, high=4), axis=1),
    case("pick", X, ints(5, 6, high=3), axis=0, keepdims=True),
    case("pick", f32(4, 5), i32(4, low=0, high=4)),
    case("pick", f32(4, 5), i32(4, low=0, high=4), axis=1),
    case("pick", f64(4, 5), ints(4, 1, low=0, high=4), axis=-1, keepdims=True),
    refuses("pick", f32(4, 5), ints(4), axis="None", says="axis=None"),
    *(
        case("_contrib_SparseEmbedding", x, f32(4, 3), input_dim=4, output_dim=3)
        for x in (ints(2, high=3), i32(2, 3, low=-2, high=7))
    ),
]
test_indexing = operator_test(CASES)
