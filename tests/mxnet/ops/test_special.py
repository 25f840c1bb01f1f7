"""Special functions."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f16, f32, f64, i32, of, operator_test, refuses

CASES = [
    case("erfinv", f32(3, 4, low=-0.999)),
    case("erfinv", f64(3, 4, low=-0.999)),
    case("erfinv", f16(3, 4, low=-0.9, high=0.9)),
    case("erfinv", of([-1, 1, 0, 1.5, 0.99999, -0.9999999, np.nan])),
    *(
        case(op, x)
        for op in ("gamma", "gammaln")
        for x in (
            f32(3, 4, low=0.1, high=5),
            f32(3, 4, low=-4.9, high=-0.1),
            f32(5, low=10, high=30),
            f64(5, low=0.1, high=9),
            f16(5, low=0.5, high=3),
        )
    ),
    refuses("gamma", i32(3), says="a special function of int32 numbers"),
]

test_special = operator_test(CASES)
