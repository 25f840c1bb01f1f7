"""Tensors made from nothing, or in the shape of another."""

from __future__ import annotations

from tests.mxnet.cases import case, f16, f32, f64, flags, i32, of, under, operator_test, refused, whole

TYPES = ("float16","float32","float64","int8","uint8","int32","int64")
CASES = [
    *(case(op,shape="(2,3)",**a) for op in ("_zeros","_ones") for a in ({},*({"dtype":t} for t in TYPES))),
    case("_zeros_without_dtype",shape="(2,3)").but(oracle=under("_zeros")),
    *(case("_zeros_without_dtype",shape="(2,3)",dtype=t) for t in (0,1,2,4,6)),
    *(case("_full",shape="(2,3)",value=2.5,**a) for a in ({},*({"dtype":t} for t in TYPES))),
    *(case("_arange",**a) for a in ({"start":5},{"start":1,"stop":7,"step":2},{"start":0.5,"stop":3,"step":0.7},{"start":5,"stop":1,"step":-1.5},{"start":3,"repeat":2},{"start":1,"stop":4,"dtype":"int32","ctx":"cpu(0)"},{"start":0.5,"stop":4,"step":0.5,"dtype":"int64"},{"start":3,"dtype":"float16"},{"start":3,"dtype":"float64"})),
    *(case(op,x) for op in ("zeros_like","ones_like") for x in (f32(2,3),f16(2,3),i32(2,3),f64(3))),
    *(case("_contrib_arange_like",f32(2,3),**a) for a in ({},{"axis":1},{"axis":0},{"axis":-1},{"start":5,"step":2},{"start":0.5,"step":0.25,"axis":1},{"axis":1,"repeat":1})),
    case("_contrib_arange_like",f16(2,3),axis=1),
    case("_contrib_arange_like",f64(2,3),axis=1),
    case("_contrib_arange_like",f32(4,6),repeat=2),
    case("_contrib_arange_like",f32(4,6),repeat=3,axis=1),
    refused("_full",shape="(100000,100000)",value=1,says="is large for a constant"),
]
test_creation = operator_test(CASES)
