"""Operators that pass their input on."""

from __future__ import annotations

from testing.mxnet.cases import (
    case,
    f16,
    f32,
    f64,
    flags,
    i32,
    of,
    operator_test,
    refuses,
    u8,
    under,
)

TYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")
NUMBERS = of([-1.7, 2.5, 0, 0.3, 100.5])
CASES = [
    *(case("Cast", NUMBERS, dtype=t) for t in TYPES if t != "uint8"),
    case("Cast", of([0, 1.5, 200.7]), dtype="uint8"),
    *(case("Cast", x, dtype=t) for x in (i32(2, 3), flags(2, 3), u8(2, 3)) for t in TYPES),
    *(
        case(op, x)
        for op in ("_copy", "BlockGrad", "_np_copy", "_contrib_gradientmultiplier")
        for x in (f32(2, 3), i32(2))
    ),
    case("_contrib_gradientmultiplier", f32(2), scalar=3),
    case("_copyto", f32(2, 3)).but(oracle=under("_copy")),
    case("IdentityAttachKLSparseReg", f32(2, 3), f32(3)),
    case("IdentityAttachKLSparseReg", f32(2, 3), f32(3), penalty=0.1),
    case("_identity_with_attr_like_rhs", f32(2, 3), f32(2, 3, seed=1)),
    case("Dropout", f32(2, 3), p=0.3),
    case("Dropout", f32(2, 3), mode="training", axes=(1,)),
    refuses("Dropout", f32(2, 3), mode="always", says="with --random onnx"),
    *(case("cast_storage", x, stype="default") for x in (f32(2, 3), i32(2), f64(2, 2))),
    case("amp_cast", f32(2, 3), dtype="float16"),
    case("amp_cast", f16(2, 3), dtype="float32"),
    case("amp_cast", i32(2, 3), dtype="float16"),
    case("amp_multicast", f32(2, 3), i32(2), num_outputs=2),
    case("amp_multicast", f32(2, 3), f32(2), num_outputs=2, cast_narrow=True),
    *(case("BlockGrad", x) for x in (flags(2), f16(3))),
    *(case(op, x) for op in ("_copy", "_np_copy") for x in (f16(2), flags(2))),
    case("_np_copy", f32(0, 2)).but(np_shape=True),
    *(case("_copyto", x).but(oracle=under("_copy")) for x in (i32(2), f64(3, 2))),
    case("Dropout", f64(3), mode="training"),
    case("IdentityAttachKLSparseReg", f32(2, 3, 4), f32(3), sparseness_target=0.2, momentum=0.5),
    *(case("_identity_with_attr_like_rhs", x, x + 1) for x in (f64(2), i32(2, 3))),
    case("amp_multicast", f32(2, 3), i32(2), f32(3), num_outputs=3, cast_narrow=True),
    case("amp_multicast", i32(2, 3), i32(2), num_outputs=2),
]
test_passing = operator_test(CASES)
