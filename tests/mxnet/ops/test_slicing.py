"""Slices and parts of a tensor along its axes."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, i32, live, operator_test, refuses

X = f32(4, 5, 6)
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
        case("slice", X, begin="(3,1,0)", end="(0,4,6)", step=short).but(oracle=with_steps(steps))
        for short, steps in (("(-1,)", "(-1,1,1)"), ("(-2,None)", "(-2,1,1)"))
    ),
    case("slice", X, begin="(0,1)", end="(2,3)", step="(None,)").but(oracle=with_steps("()")),
    refuses("slice", X, begin="(0,1)", end="(2,)", says="begin=(0, 1) and end=(2,) differ"),
    refuses("slice", X, begin="(1,)", end="(2,)", step="(1,1)", says="step=(1, 1) is longer than"),
    refuses("slice", X, begin="(1,)", end="(2,)", step="(0,)", says="no step is 0"),
    case("slice", i32(4, 5), begin="(1,)", end="(3,)"),
    case("slice", f16(4, 5), begin="(1,)", end="(3,)"),
    *(
        case("slice_axis", X, axis=a, begin=b, end=e)
        for a, b, e in ((0, 1, 3), (1, 0, "None"), (-1, -3, -1), (2, 2, 6), (-2, -4, "None"))
    ),
    case("slice_like", X, f32(2, 3, 4)),
    case("slice_like", X, f32(2, 3, 4), axes="(0,)"),
    case("slice_like", X, f32(2, 3, 4), axes="(0,-1)"),
    case("slice_like", X, f32(2, 3, 4), axes="(0,0,-1)"),
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
    case("slice_like", f32(4, 5, 6), f32(2, 3, 4), axes=(0, 2, -1)),
]

test_slicing = operator_test(CASES)
