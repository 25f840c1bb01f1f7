"""Softmax over an axis, of lengths and by temperatures."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, of, operator_test, refuses

SHAPES = [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)]
SOFT = ("softmax", "softmin", "log_softmax")
LENGTHS = of([[1, 2, 3], [4, 2, 0]], "int32")
HALF = 2e-3  # MXNet computes in the type of the data, whatever the type of the result

CASES = [
    *(case(op, f32(*s)) for op in SOFT for s in SHAPES),
    *(case(op, f32(2, 3, 4), axis=a) for op in SOFT for a in (0, 1, -2, 2)),
    *(case(op, f32(2, 3, 4), temperature=t) for op in SOFT for t in (2.0, 0.5, 1)),
    *(
        case(op, f16(2, 3), dtype=t).but(tolerance=HALF)
        for op in SOFT
        for t in ("float16", "float32", "float64", "None")
    ),
    *(case(op, f32(2, 3), dtype=t) for op in SOFT for t in ("float32", "float64")),
    *(case(op, 1000 * f32(2, 4)) for op in SOFT),
    case("softmax", f32(2, 3, 4), LENGTHS, use_length=True),
    case("softmax", f32(2, 4, 3), LENGTHS, use_length=True, axis=1),
    case("softmax", f32(4, 2, 3), LENGTHS.astype("int64"), use_length=True, axis=0),
    case("softmax", f16(2, 3, 4), LENGTHS, use_length=True, temperature=2.0),
    case("softmax", f32(2, 4), of([1, 3], "int32"), use_length=True).but(
        printed="""
graph case(%x0: float32[2,4], %x1: int32[2]):
  %op/Cast: int64[2] = Cast(%x1, round_mode='up', saturate=1, to=7)
  %op/Unsqueeze: int64[2,1] = Unsqueeze(%op/Cast, [1])
  %op/Less: bool[2,4] = Less([0, 1, 2, 3], %op/Unsqueeze)
  %op/Where: float32[2,4] = Where(%op/Less, %x0, -3.4028234663852886e+38)
  %op/Softmax: float32[2,4] = Softmax(%op/Where, axis=1)
  %op_output: float32[2,4] = Where(%op/Less, %op/Softmax, 0.0)
  return %op_output
"""
    ),
    *(case("SoftmaxActivation", f32(*s)) for s in SHAPES[1:]),
    *(case("SoftmaxActivation", f32(*s), mode="channel") for s in SHAPES[2:]),
    *(refuses(op, f32(2), use_length=True, says="use_length=True") for op in SOFT[1:]),
]

test_softmax = operator_test(CASES)
