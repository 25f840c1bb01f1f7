"""Tensors made from nothing, or in the shape of another."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, i32, operator_test, refuses, under

TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64")
CASES = [
    *(
        case(op, shape="(2,3)", **a)
        for op in ("_zeros", "_ones")
        for a in ({}, *({"dtype": t} for t in TYPES))
    ),
    case("_zeros_without_dtype", shape="(2,3)").but(oracle=under("_zeros")),
    *(case("_zeros_without_dtype", shape="(2,3)", dtype=t) for t in (0, 1, 2, 4, 6)),
    *(case("_full", shape="(2,3)", value=2.5, **a) for a in ({}, *({"dtype": t} for t in TYPES))),
    *(
        case("_arange", **a)
        for a in (
            {"start": 5},
            {"start": 1, "stop": 7, "step": 2},
            {"start": 0.5, "stop": 3, "step": 0.7},
            {"start": 5, "stop": 1, "step": -1.5},
            {"start": 3, "repeat": 2},
            {"start": 1, "stop": 4, "dtype": "int32", "ctx": "cpu(0)"},
            {"start": 0.5, "stop": 4, "step": 0.5, "dtype": "int64"},
            {"start": 3, "dtype": "float16"},
            {"start": 3, "dtype": "float64"},
        )
    ),
    *(
        case(op, x)
        for op in ("zeros_like", "ones_like")
        for x in (f32(2, 3), f16(2, 3), i32(2, 3), f64(3))
    ),
    *(case(op, f32(2, 3), dtype="int64") for op in ("zeros_like", "ones_like")),
    *(
        case("_contrib_arange_like", f32(2, 3), **a)
        for a in (
            {},
            {"axis": 1},
            {"axis": 0},
            {"axis": -1},
            {"start": 5, "step": 2},
            {"start": 0.5, "step": 0.25, "axis": 1},
            {"axis": 1, "repeat": 1},
        )
    ),
    case("_contrib_arange_like", f16(2, 3), axis=1),
    case("_contrib_arange_like", f64(2, 3), axis=1),
    case("_contrib_arange_like", f32(4, 6), repeat=2),
    case("_contrib_arange_like", f32(4, 6), repeat=3, axis=1),
    *(case(op, shape="(2, 3)").but(np_shape=True) for op in ("_npi_zeros", "_npi_ones")),
    *(case(op, shape="()", dtype="bool").but(np_shape=True) for op in ("_npi_zeros", "_npi_ones")),
    case("_npi_arange", start=1, stop=7, step=2, dtype="int32").but(np_shape=True),
    *(
        case(op, N=3, **a)
        for op in ("_eye", "_npi_eye")
        for a in ({}, {"M": 2, "k": 1}, {"k": -1, "dtype": "int32"})
    ),
    case("_npi_eye", N=2, M="None"),
    *(case("_npi_identity", shape="(3, 3)", dtype=t) for t in ("float32", "int64", "bool")),
    case("_npi_indices", dimensions="(2, 3)"),
    case("_npi_indices", dimensions="(2, 3, 2)", dtype="float32"),
    case("_linspace", start=0, stop=1, num=5),
    case("_linspace", start=2.5, stop=-1, num=4, endpoint=False, dtype="float64"),
    case("_npi_logspace", start=0, stop=2, num=3),
    case("_npi_logspace", start=0, stop=2, num=4, endpoint=False, base=2),
    *(case(f"_npi_{w}", M=m) for w in ("blackman", "hamming", "hanning") for m in (1, 5, 8)),
    *(
        case("_npi_full_like", x, fill_value=3.5, **a)
        for x in (f32(2, 3), i32(2, 3))
        for a in ({}, {"dtype": "int64"}, {"dtype": "float16"}, {"dtype": "bool"})
    ),
    *(
        case("_contrib_index_array", f32(2, 3, 2), **a)
        for a in ({}, {"axes": "(1,)"}, {"axes": "(2, 0)"}, {"axes": "(-1,)"})
    ),
    refuses("_full", shape="(100000,100000)", value=1, says="is large for a constant"),
    *(
        case("_npi_arange", **a).but(np_shape=True)
        for a in (
            {"start": 5},
            {"start": 0.5, "stop": -2, "step": -0.5, "dtype": "float64"},
            {"start": 3, "stop": 1},
            {"start": 0, "stop": 3, "dtype": "int8"},
        )
    ),
    case("_linspace", start=1, stop=3, num=1),
    case("_linspace", start=0, stop=10, num=4, dtype="int32"),
    case("_npi_indices", dimensions="(4,)", dtype="int64"),
    case("_npi_indices", dimensions="(0, 3)").but(np_shape=True),
    case("_npi_logspace", start=1, stop=-1, num=1, dtype="float64"),
    case("_npi_logspace", start=0, stop=3, num=4, dtype="int32"),
    *(
        case(op, shape=s, dtype=t).but(np_shape=True)
        for op in ("_npi_zeros", "_npi_ones")
        for s, t in (("(0, 2)", "int64"), ("(2,)", "float16"))
    ),
    case("_npi_full_like", f32(2, 3), fill_value=0.001, dtype="bool"),
    refuses("_npi_hamming", M=5, dtype="int32", says="a window of int32"),
    refuses("_npi_identity", shape=(7, 3), says="which MXNet fills otherwise"),
]
test_creation = operator_test(CASES)
