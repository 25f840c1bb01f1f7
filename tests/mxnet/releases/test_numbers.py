"""Reductions, products and layers that MXNet 2.0 brought, or has otherwise than MXNet 1.9.1."""

from __future__ import annotations

from testing.mxnet.cases import f16, f32, f64, flags, i8, i32, i64, of, operator_test, u8
from tests.mxnet.recorded import refused_by_second, second

X, CUBE, LINE = f32(2, 3), f32(2, 3, 4), f32(3)
SUMS = ("sum", "prod")
CASES = [
    *(second(f"_npi_{op}", CUBE) for op in (*SUMS, "max", "min", "mean", "any", "all")),
    *(second(f"_npi_{op}", CUBE, axis="(0, 2)", keepdims=True)
      for op in (*SUMS, "max", "min", "mean", "any", "all")),
    *(second(f"_npi_{op}", CUBE, axis="()") for op in (*SUMS, "max", "min", "mean")),
    *(second(f"_npi_{op}", x, axis="(-1,)") for op in (*SUMS, "max", "min", "mean", "any", "all")
      for x in (i32(2, 3), i64(2, 3), flags(2, 3))),
    *(second(f"_npi_{op}", x, axis="(1,)") for op in (*SUMS, "mean")
      for x in (i8(2, 3), u8(2, 3), f64(2, 3), f16(2, 3))),
    *(second(f"_npi_{op}", i32(2, 3), dtype="float64") for op in (*SUMS, "mean")),
    *(second(f"_npi_{op}", X, axis="(1,)", dtype="int32") for op in (*SUMS, "mean")),
    *(second(f"_npi_{op}", f32(0, 3)) for op in (*SUMS, "mean", "any", "all")),
    *(second(f"_npi_{op}", f32(0, 3), axis="(0,)") for op in (*SUMS, "mean", "any", "all")),
    second("_npi_cumsum", CUBE, axis=1), second("_npi_cumsum", CUBE),
    second("_npi_cumsum", i32(2, 3), axis=0), second("_npi_cumsum", flags(2, 3), axis=1),
    second("_npi_cumsum", X, axis=1, dtype="float64"),
    *(second(f"_npi_{op}", CUBE, axis=1) for op in ("argmax", "argmin")),
    second("_npi_argmax", CUBE), second("_npi_argmax", X, axis=0, keepdims=True),
    *(second(f"_npi_{op}", CUBE, axis="(1,)") for op in ("var", "std")),
    second("_npi_average", CUBE, axis="(1,)", weighted=False),
    second("_npi_dot", X, f32(3, 2)), second("_npi_dot", LINE, LINE),
    second("_npi_dot", CUBE, f32(4, 2)), second("_npi_dot", CUBE, f32(2, 4, 3)),
    second("_npi_dot", f32(), X),
    second("_npi_matmul", CUBE, f32(2, 4, 2)), second("_npi_matmul", X, LINE),
    *(c.but(fixed="a vector product of") for c in (
        second("_npi_cross", f32(4, 3), f32(4, 3, seed=1)),
        second("_npi_cross", f32(4, 2), f32(4, 2, seed=1)),
        second("_npi_cross", f32(4, 2), f32(4, 3, seed=1)),
        second("_npi_cross", f32(3, 4), f32(4, 3, seed=1), axisa=0, axisb=1, axisc=0),
    )),
    second("_npi_kron", X, f32(2, 2)), second("_npi_kron", LINE, X),
    second("_npi_kron", f32(2, 1, 2), f32(2, 3)),
    second("_linalg_det", f32(3, 3)), second("_linalg_det", f32(2, 3, 3)),
    second("_linalg_slogdet", f32(3, 3)), second("_linalg_slogdet", f32(2, 3, 3)),
    second("Pooling", f32(2, 3, 6, 5), kernel="[2,2]", stride="[1,1]", pad="[0,0]",
           pool_type="max", global_pool="0", pooling_convention="valid", output_size="None",
           count_include_pad="None", p_value="None", layout="NCHW"),
    second("_contrib_AdaptiveAvgPooling2D", f32(2, 3, 6, 5), output_size="(2, 2)"),
    second("_contrib_AdaptiveAvgPooling2D", f32(2, 3, 6, 5), output_size="(3,)", kernel="(2, 2)",
           pool_type="max", global_pool=True),
    second("GroupNorm", f32(2, 4, 3), f32(4), f32(4, seed=1), num_groups=2).but(fixed="channels"),
    second("_npx_deformable_convolution", f32(2, 4, 6, 7), f32(2, 12, 4, 6),
           f32(4, 4, 3, 2), f32(4), kernel="(3, 2)", num_filter=4),
    second("_npx_modulated_deformable_convolution", f32(2, 4, 6, 7), f32(2, 12, 4, 6),
           f32(2, 6, 4, 6, low=0.0), f32(4, 4, 3, 2), f32(4), kernel="(3, 2)", num_filter=4),
    second("Embedding", i32(2, 3, low=0, high=3), f32(4, 3), input_dim=4, output_dim=3),
    second("one_hot", i32(3, low=0, high=3), depth=4),
    second("topk", X, k=2, axis=1, ret_typ="value"),
    second("digamma", f32(8, low=0.1, high=9.0)), second("digamma", f32(8, low=-4.9, high=0.4)),
    second("digamma", f64(8, low=-3.0, high=3.0)),
    *(second(f"_contrib_quantized_{op}", i8(2, 3, 4), of([-1.0]), of([1.0]), **attrs)
      for op, attrs in (("reshape", {"shape": "(0, -1)"}), ("transpose", {"axes": "(1, 0, 2)"}))),
    *(second(f"_npx_quantized_{op}", i8(2, 3, 4), of([-1.0]), of([1.0]), **attrs)
      for op, attrs in (("reshape", {"newshape": "(-2, -1)"}), ("transpose", {}))),
    second("_npi_cholesky", of([[4.0, 2.0], [2.0, 3.0]]), lower=True),
    refused_by_second("_npi_cholesky", f32(2, 2), lower=False, says="lower"),
    refused_by_second("_npx_foreach", X, says="without its attributes"),
    refused_by_second("_sg_onednn_selfatt_qk", f32(3, 2, 24), heads=2, says="a layout of MXNet 2.0"),
    refused_by_second("_npi_qr", X, says="QR"),
    second("sort", X, axis=1, is_ascend=False),
    second("_zeros", shape="(3,)", dtype="int32"),
    second("_npi_where", flags(2, 3), X, f32(3)),
    second("_npi_where_lscalar", flags(2, 3), X, scalar=2.5),
    *(second("_npi_interp", of([0.0, 1.0, 3.0], "float64"), of([1.0, 2.0, -1.0], "float64"),
             of([0.5, -1.0, 2.0, 9.0], "float64"), **more)
      for more in ({}, {"left": 7.0, "right": 8.0})),
]  # fmt: skip
test_numbers = operator_test(CASES)
