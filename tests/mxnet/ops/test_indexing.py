"""Picking parts of a tensor by position or index."""

from __future__ import annotations

from tests.mxnet.cases import (
    case,
    f16,
    f32,
    f64,
    i32,
    i64,
    live,
    of,
    operator_test,
    refused,
    u8,
    whole,
)

X = f32(4, 5, 6)
OUT = of([-7, -1, 0, 3, 4, 9, 2.7])  # beyond both ends of an axis, and between
SLICES = [
    ("(1,)", "(3,)", None),
    ("(0,1)", "(2,4)", None),
    ("(None,1,None)", "(3,None,4)", None),
    ("(-3,-2)", "(-1,None)", None),
    ("(0,0,0)", "(4,5,6)", "(2,1,3)"),
    ("(3,None,5)", "(0,None,None)", "(-1,-2,-3)"),
    ("(None,None)", "(None,None)", "(-1,2)"),
    ("(None,)", "(None,)", "(None,)"),
    ("(3,4)", "(None,0)", "(-1,-2)"),
    ("(1,2,3)", "(100,100,-1)", "(1,1,1)"),
    ("1", "3", None),
]


def with_steps(text):
    """What MXNet computes with a step for every axis, without which it refuses the operator."""
    return lambda case: live(case.but(attrs={**case.attrs, "step": text}))


CASES = [
    *(case("slice", X, begin=b, end=e, **({"step": s} if s else {})) for b, e, s in SLICES),
    *(
        case("slice", X, begin="(3,1,0)", end="(0,4,6)", step=short).but(oracle=with_steps(whole_))
        for short, whole_ in (("(-1,)", "(-1,1,1)"), ("(-2,None)", "(-2,1,1)"))
    ),
    case("slice", X, begin="(0,1)", end="(2,3)", step="(None,)").but(oracle=with_steps("()")),
    refused("slice", X, begin="(0,1)", end="(2,)", says="begin=(0, 1) and end=(2,) differ"),
    refused("slice", X, begin="(1,)", end="(2,)", step="(1,1)", says="step=(1, 1) is longer than"),
    refused("slice", X, begin="(1,)", end="(2,)", step="(0,)", says="no step is 0"),
    case("slice", i32(4, 5), begin="(1,)", end="(3,)"),
    case("slice", f16(4, 5), begin="(1,)", end="(3,)"),
    *(
        case("slice_axis", X, axis=a, begin=b, end=e)
        for a, b, e in ((0, 1, 3), (1, 0, "None"), (-1, -3, -1), (2, 2, 6), (-2, -4, "None"))
    ),
    case("slice_like", X, f32(2, 3, 4)),
    case("slice_like", X, f32(2, 3, 4), axes="(0,)"),
    case("slice_like", X, f32(2, 3, 4), axes="(0,-1)"),
    case("slice_like", X, f32(2, 3), axes="(1,)"),
    case("slice_like", i32(4, 5), f32(2, 3), axes="()"),
    *(
        case("SliceChannel", f32(4, 6, 8), num_outputs=n, **a)
        for n, a in (
            (2, {}),
            (3, {"axis": 1}),
            (4, {"axis": -1}),
            (2, {"axis": 0}),
            (6, {"squeeze_axis": 1}),
            (1, {}),
        )
    ),
    case("SliceChannel", f32(4, 1, 3), num_outputs=1, squeeze_axis=True),
    case("SliceChannel", i32(4, 6), num_outputs=2),
    *(
        case("Embedding", OUT, f32(4, 3), input_dim=4, output_dim=3).but(params=p)
        for p in ((1,), ())
    ),
    case(
        "_contrib_SparseEmbedding", i32(2, 3, low=0, high=3), f32(4, 3), input_dim=4, output_dim=3
    ),
    case("_contrib_SparseEmbedding", OUT, f32(4, 3), input_dim=4, output_dim=3),
    case("Embedding", i32(2, 3, low=0, high=3), f32(4, 3), input_dim=4, output_dim=3),
    case(
        "Embedding", whole(2, 3, 2, high=3), f64(4, 3), input_dim=4, output_dim=3, dtype="float64"
    ),
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
    case("take", X, whole(2, 3, high=3)),
    case("take", X, i32(2, 3, low=0, high=3), axis=-2),
    case("take", X, whole(2, 3, high=3), mode="raise"),
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
        case("pick", X, whole(4, 5, low=-1, high=6), mode=m, keepdims=k)
        for m in ("clip", "wrap")
        for k in (0, 1)
    ),
    case("pick", X, whole(4, 5, high=5)),
    case("pick", X, whole(4, 6, high=4), axis=1),
    case("pick", X, whole(4, 1, 6, high=4), axis=1),
    case("pick", X, whole(5, 6, high=3), axis=0, keepdims=True),
    case("pick", f32(4, 5), i32(4, low=0, high=4)),
    case("pick", f32(4, 5), i32(4, low=0, high=4), axis=1),
    case("pick", f64(4, 5), whole(4, 1, low=0, high=4), axis=-1, keepdims=True),
    refused("pick", f32(4, 5), whole(4), axis="None", says="axis=None"),
    *(
        case("_contrib_SparseEmbedding", x, f32(4, 3), input_dim=4, output_dim=3)
        for x in (whole(2, high=3), i32(2, 3, low=-2, high=7))
    ),
    refused("slice_like", f32(4, 5, 6), f32(2, 3, 4), axes=(0, 2, -1), says="one axis twice"),
]
test_indexing = operator_test(CASES)
