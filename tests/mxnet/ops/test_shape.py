"""Operators that move elements without changing them."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f16, f32, f64, i8, i32, i64, operator_test, refuses

SHAPES = [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)]
X = f32(2, 3, 4)
RESHAPES = [
    "(-1,)",
    "(0,-1)",
    "(6,4)",
    "(-1,4)",
    "(4,3,2)",
    "(24,)",
    "(2,3,-1,2)",
    "(-2,)",
    "(0,-2)",
    "(-3,0)",
    "(0,-3)",
    "(-3,-2)",
    "(-2,1,1)",
    "(-4,1,2,-2)",
    "(-4,-1,2,-2)",
    "(-4,2,-1,0,0)",
    "(0,-4,3,1,0)",
    "(0,-4,-1,3,-2)",
    "(0,0,-4,2,-1)",
    "(-1,0)",
    "(2,-2)",
    "(0,-3,1)",
]
REVERSED = [
    "(-1,)",
    "(0,-1)",
    "(-1,0)",
    "(-1,0,0)",
    "(6,4)",
    "(-2,)",
    "(-2,0)",
    "(-3,0)",
    "(0,-3)",
    "(-2,-3)",
    "(1,2,-4,0,0)",
    "(0,-1,3,-4,0)",
    "(-2,2,-1,-4)",
    "(1,-1,0)",
    "(-1,2,2)",
    "(-1,3,0)",
]

NUMPY = [
    "(-2, -1)",
    "(-4,)",
    "(-5, -1)",
    "(-6, 1, 2, -4)",
    "(-6, -1, 1, -5)",
    "(-2, -2, -2, 1)",
    "(-2, -6, 3, -1, -2)",
    "(2, -4)",
    "(-1, -2, -2)",
    "(6, 4)",
    "(-1,)",
]
NUMPY_REVERSED = ["(-1, -2)", "(-2, -1)", "(-5, -2)", "(-4, 2, 2, -6)", "(-1,)", "(-1, 2, 2, -6)"]
CASES = [
    *(case("Flatten", f32(*s)) for s in SHAPES[1:]),
    case("Flatten", f32(3)),
    case("Flatten", f16(2, 3, 4)),
    case("Flatten", i32(2, 3, 4)),
    *(case("Reshape", X, shape=s) for s in RESHAPES),
    *(case("Reshape", X, shape=s, reverse=True) for s in REVERSED),
    case("Reshape", f32(6, 4), target_shape="(0,8)"),
    case("Reshape", f32(6, 4), target_shape="(3,0)"),
    case("Reshape", f32(6, 4), target_shape="(0,2,0)", keep_highest=True),
    case("reshape_like", X, f32(6, 4)),
    case("reshape_like", i32(2, 3, 4), f32(4, 6)),
    case("reshape_like", f32(30, 7), f32(15, 2, 4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2),
    case("reshape_like", f32(30, 4), f32(15, 2, 4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2),
    case(
        "reshape_like",
        f32(5, 6, 4),
        f32(15, 2, 3),
        lhs_begin=1,
        lhs_end=2,
        rhs_begin=1,
        rhs_end="None",
    ),
    case("reshape_like", f32(5, 6, 4), f32(15, 2, 3), lhs_begin=-2, lhs_end=-1, rhs_begin=-2),
    *(case("transpose", f32(*s)) for s in SHAPES),
    case("transpose", X, axes="(1,0,2)"),
    case("transpose", i8(2, 3, 4), axes="(2,0,1)"),
    case("transpose", X, axes="()"),
    case("SwapAxis", X),
    case("SwapAxis", X, dim1=0, dim2=2),
    case("SwapAxis", X, dim1=-1, dim2=1),
    case("SwapAxis", i32(2, 3, 4), dim1=1, dim2=2),
    *(case("expand_dims", X, axis=a) for a in (0, 1, 3, -1, -4)),
    *(case("squeeze", f32(1, 3, 1, 4), axis=a) for a in ("0", "-2", "(0,2)", "(0,-2)")),
    case("squeeze", f32(1, 3, 1, 4)).but(fixed="needs the static shape"),
    case("squeeze", f32(1, 3, 1, 4), axis="None").but(fixed="needs the static shape"),
    case("squeeze", f32(1, 1)),
    case("squeeze", f32(1, 1), axis="(0,1)"),
    case("squeeze", f32(1), axis="0"),
    *(
        case("Concat", f32(2, 3, 4), f32(2, 2, 4), f32(2, 1, 4), num_args=3, **a)
        for a in ({}, {"dim": 1}, {"dim": -2})
    ),
    case("Concat", f32(2, 3), num_args=1),
    case("Concat", i32(2, 3), i32(3, 3), num_args=2, dim=0),
    case("Concat", f16(2, 3), f16(3, 3), num_args=2, dim=0),
    case("Concat", f32(2), f32(3), num_args=2, dim=0),
    case("_rnn_param_concat", f32(2), f32(3), num_args=2, dim=0),
    *(
        case("stack", X, f32(2, 3, 4, seed=1), num_args=2, **a)
        for a in ({}, {"axis": 1}, {"axis": -1}, {"axis": 3}, {"axis": -4})
    ),
    case("stack", f32(2), num_args=1),
    *(case("tile", X, reps=r) for r in ("(2,)", "(1,2)", "(2,1,3)", "(2,1,1,3)", "()", "2")),
    *(
        case("repeat", X, repeats=2, **a)
        for a in ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": "None"})
    ),
    case("repeat", i64(2, 3), repeats=1, axis=0),
    case("broadcast_axis", f32(1, 3, 1), axis="(0,2)", size="(2,4)"),
    case("broadcast_axis", f32(1, 3, 1), axis="2", size="4"),
    case("broadcast_axis", f32(1, 3, 1)),
    case("broadcast_to", f32(1, 3, 1), shape="(2,3,4)"),
    case("broadcast_to", f32(1, 3, 1), shape="(2,0,4)"),
    case("broadcast_to", f32(1, 3, 1), shape="(0,0,4)"),
    case("broadcast_like", f32(1, 3, 1), X),
    case("broadcast_like", f32(1, 3, 1), f32(4, 2), lhs_axes="(0,2)", rhs_axes="(1,0)"),
    case("broadcast_like", f32(1, 3, 1), f32(4, 2), lhs_axes="(-1,)", rhs_axes="(-2,)"),
    *(case("reverse", X, axis=a) for a in ("0", "1", "(0,2)")),
    case("reverse", i32(2, 3), axis=1),
    case("shape_array", X),
    case("shape_array", i32(5)),
    case("size_array", X),
    case("size_array", i32(5)),
    *(case("_npx_reshape", X, newshape=s).but(np_shape=True) for s in NUMPY),
    *(case("_npx_reshape", X, newshape=s, reverse=True).but(np_shape=True) for s in NUMPY_REVERSED),
    case("_npx_reshape", f32(1, 3, 1), newshape="(-3, -2, -3)").but(np_shape=True),
    case("_npx_reshape", f32(1), newshape="()").but(np_shape=True),
    *(
        case("_npx_reshape", f32(2, 0), newshape=s).but(np_shape=True)
        for s in ("(-2, -2)", "(-4,)")
    ),
    *(
        case("_np_reshape", X, newshape=s).but(np_shape=True)
        for s in ("(6, 4)", "(-1,)", "(3, -1, 2)")
    ),
    case("_np_reshape", f32(1), newshape="()").but(np_shape=True),
    refuses("_np_reshape", X, newshape="(-2, 3)", says="newshape=(-2, 3)"),
    refuses("Reshape", X, says="no shape is given"),
    refuses("Reshape", X, shape="(0, 0, 0, 0)", says="copies more axes than the 3 there are"),
    case("_rnn_param_concat", f64(3), num_args=1, dim=0),
    case("_rnn_param_concat", f32(2), f32(3), f32(1), num_args=3, dim=0),
    case("_rnn_param_concat", f32(2, 3), f32(2, 2), num_args=2, dim=1),
    *(
        case(op, x).but(np_shape=True)
        for op in ("shape_array", "size_array")
        for x in (f64(1, 1, 2), f32(), f32(0, 2))
    ),
    refuses("Reshape", f32(2, 3, 4), shape=(4, -3), says="does not hold as much"),
    refuses("Reshape", f32(2, 3, 4), shape=(2, 3, -1, 7), says="does not hold as much"),
    refuses("repeat", f32(2, 3), repeats=0, says="makes no elements"),
]
test_shaping = operator_test(CASES)


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def random_codes(generator, sizes):
    """Codes for a tensor of ``sizes``, of which each takes one or two or all that are left.

    At most one size is inferred, and none behind a code that makes another number of sizes than
    it has places: MXNet writes that one elsewhere, even outside the shape.
    """
    codes, left, aligned, inferred = [], list(sizes), True, False
    while left:
        kind = generator.choice(["copy", "literal", "infer", "merge", "split", "rest"])
        if kind == "rest" and generator.random() < 0.3:
            return [*codes, -2]
        if kind == "merge" and len(left) > 1:
            codes.append(-3)
            del left[:2]
        elif kind == "split":
            first = int(generator.choice(divisors(left[0])))
            pair = [first, left.pop(0) // first]
            if generator.random() < 0.5:
                pair[generator.integers(2)] = -1
            codes += [-4, *pair]
            aligned = False
        elif kind == "infer" and aligned and not inferred:
            codes.append(-1)
            left.pop(0)
            inferred = True
        else:
            size = left.pop(0)
            codes.append(0 if kind == "copy" else size)
    return codes


def random_reshapes(count):
    generator = np.random.default_rng(0)
    for reverse in (False, True) * (count // 2):
        sizes = [int(n) for n in generator.integers(1, 7, generator.integers(1, 6))]
        codes = random_codes(generator, sizes[::-1] if reverse else sizes)
        shape = tuple(codes[::-1] if reverse else codes)
        if len(shape) - shape.count(-4) > 6:
            continue  # more axes than oneDNN takes
        yield case("Reshape", f32(*sizes), shape=shape, reverse=reverse)


test_random_reshapes = operator_test(list(random_reshapes(150)))
