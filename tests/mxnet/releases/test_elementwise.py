"""Functions of each element that MXNet 2.0 brought, or has otherwise than MXNet 1.9.1."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import f16, f32, f64, flags, i8, i32, i64, of, operator_test, u8
from tests.mxnet.recorded import refused_by_second, second

X, Y, ROW = f32(2, 3), f32(2, 3, seed=1), f32(3, seed=2)
WHOLE, OTHER = i32(2, 3), i32(2, 3, low=1, seed=1)
ODD = of([np.nan, 1.0, -np.inf, np.inf, 0.0, -2.5])
FUNCTIONS = (
    "exp expm1 sin cos tan sinh cosh tanh arctan arcsinh degrees radians cbrt ceil floor trunc fix "
    "rint sqrt log log10 log1p log2 arccosh"
).split()
TWO = ("fmax", "fmin", "fmod", "floor_divide", "logaddexp")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
CASES = [
    *(second(f"_npi_{op}", i32(3, low=1)) for op in FUNCTIONS),
    *(second(f"_npi_{op}", x) for op in ("exp", "floor", "sqrt") for x in (
        u8(3), i8(3, low=0), i64(3, low=0), flags(3), f16(3, low=0.1), f64(3, low=0.1))),
    *(second(f"_npi_{op}", i32(3, low=-1, high=1)) for op in ("arcsin", "arccos")),
    second("_npi_arctanh", i32(3, low=0, high=0)),
    *(second(f"_npi_{op}", i32(3)) for op in ("square", "negative", "absolute", "sign")),
    second("_npi_reciprocal", i32(3, low=1)),
    *(second(f"_npi_{op}", x, y) for op in TWO for x, y in (
        (X, Y), (X, ROW), (f64(2, 3), f64(2, 3, seed=1)))),
    *(second(f"_npi_{op}", WHOLE, OTHER) for op in ("fmax", "fmin", "fmod", "floor_divide")),
    second("_npi_floor_divide", X, OTHER), second("_npi_floor_divide", OTHER, X),
    *(second(f"_npi_{op}", ODD, of([1.0, np.nan, 2.0, -1.0, 0.0, 0.0]))
      for op in ("fmax", "fmin", "logaddexp")),
    second("_npi_fmod", of([1.0, -5.5, 5.5, 3.0]), of([0.0, 2.0, -2.0, 1.5])),
    second("_npi_fmod", i32(6), i32(6, low=-1, high=2)),
    second("_npi_floor_divide", i32(6), i32(6, low=-2, high=-1)),
    *(second(f"_npi_{op}_scalar", X, scalar=1.5, is_int=False) for op in TWO),
    *(second(f"_npi_{op}_scalar", WHOLE, scalar=2.0, is_int=True)
      for op in ("fmax", "fmin", "fmod", "floor_divide")),
    *(second(f"_npi_{op}_scalar", WHOLE, scalar=2.5, is_int=False)
      for op in ("fmax", "fmin", "fmod", "floor_divide")),
    *(second(f"_npi_r{op}_scalar", X, scalar=1.5, is_int=False)
      for op in ("fmod", "floor_divide")),
    *(second(f"_npi_r{op}_scalar", OTHER, scalar=7.0, is_int=True)
      for op in ("fmod", "floor_divide")),
    *(second(f"_npi_{op}", i32(2, 3), i32(2, 3, low=0, high=4, seed=1)) for op in SHIFTS),
    *(second(f"_npi_{op}", i64(2, 3), i64(3, low=0, high=4, seed=1)) for op in SHIFTS),
    *(second(f"_npi_{op}", u8(2, 3), u8(2, 3, high=4, seed=1)) for op in SHIFTS),
    refused_by_second("_npi_bitwise_left_shift_scalar", WHOLE, scalar=2.0, says="by a tensor"),
    *(second(f"_npi_r{op}_scalar", i32(2, 3, low=0, high=4), scalar=9.0, is_int=True)
      for op in SHIFTS),
    second("_npi_gcd", i32(2, 3, low=1, high=60), i32(2, 3, low=1, high=60, seed=1)),
    second("_npi_gcd", i64(6, low=-20, high=20), i64(6, low=-4, high=4, seed=1)),
    second("_npi_gcd_scalar", i32(2, 3, low=1, high=60), scalar=12.0, is_int=True),
    *(second(f"_npi_logical_{op}", x, y) for op in ("and", "or", "xor") for x, y in (
        (flags(2, 3), flags(2, 3, seed=1)), (i32(2, 3, low=0, high=1), i32(3, low=0, high=1)))),
    *(second(f"_npi_logical_{op}", f32(4), of([0.0, 1.0, 0.0, 2.0])) for op in ("and", "or")),
    *(second(f"_npi_logical_{op}_scalar", flags(2, 3), scalar=1.0, is_int=True)
      for op in ("and", "or", "xor")),
    second("_npi_copy", X), second("_npi_copy", flags(3)),
    second("log_sigmoid", X), second("log_sigmoid", of([-90.0, 0.0, 90.0])),
    second("mish", X), second("Activation", X, act_type="mish"),
    second("Activation", X, act_type="log_sigmoid"),
    second("_npi_pad", X, pad_width="((1, 0), (2, 1))", constant_values=2.5),
    second("_npi_pad", X, pad_width="((1, 0), (2, 1))", mode="edge"),
    second("masked_softmax", f32(2, 3, 4), flags(2, 3, 4)),
    second("masked_softmax", f32(2, 3, 4), flags(2, 1, 4), axis=-1, temperature=2.0),
    second("masked_softmax", f32(2, 3), flags(2, 3), axis=0),
    second("masked_softmax", f32(2, 3), np.zeros((2, 3), bool)),
    second("masked_log_softmax", f32(2, 3, 4), flags(2, 3, 4)),
    second("masked_log_softmax", f32(2, 3, 4), flags(2, 1, 4), temperature=0.5),
]  # fmt: skip
test_elementwise = operator_test(CASES)
