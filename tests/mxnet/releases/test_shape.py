"""Operators that move, make and pick elements, which MXNet 2.0 brought or has otherwise."""

from __future__ import annotations

from testing.mxnet.cases import f32, flags, i32, i64, of, operator_test
from tests.mxnet.recorded import refused_by_second, second

X, CUBE, LINE = f32(2, 3), f32(2, 3, 4), f32(3)
AXES = "needs to know how many axes"
CASES = [
    second("_npi_squeeze", f32(1, 3, 1)).but(fixed="the static shape"), second("_npi_squeeze", f32(1, 3, 1), axis="(0,)"),
    second("_npi_transpose", CUBE), second("_npi_transpose", CUBE, axes="(1, 0, 2)"),
    second("_npi_moveaxis", CUBE, source="(0, 1)", destination="(-1, 0)"),
    second("_npi_roll", CUBE, shift="(2,)"), second("_npi_roll", CUBE, shift="(1,)", axis="(1,)"),
    *(second("_npi_rollaxis", CUBE, axis=a, start=s)
      for a, s in ((2, 0), (0, 2), (1, 3), (-1, 1), (0, -1))),
    second("_npi_atleast_1d", f32(), num_args=1), second("_npi_atleast_2d", LINE, num_args=1),
    second("_npi_atleast_3d", LINE, num_args=1),
    second("_npi_atleast_2d", f32(), LINE, CUBE, num_args=3),
    second("_npi_repeats", X, repeats="(2,)", axis=0), second("_npi_repeats", X, repeats="(2,)"),
    second("_npi_repeats", X, repeats="(2, 1)", axis=0).but(fixed="along an axis of"),
    refused_by_second("_npi_repeats", X, repeats="(2,)", axis=1, says="repeats other elements"),
    refused_by_second("_npi_fill_diagonal", X, val="(1,)", says="in place"),
    second("Concat", X, CUBE, num_args=2, dim="None"),
    second("Concat", X, f32(1, 3), num_args=2, dim=0),
    second("_contrib_dynamic_reshape", X, of([3, -1], "int64")).but(params=(1,)),
    second("_npi_diag", LINE), second("_npi_diag", LINE, k=-1), second("_npi_diag", X, k=1),
    second("_npi_diagflat", X, k=1), second("_npi_diagonal", CUBE, offset=1, axis1=1, axis2=2),
    second("_npi_trace", f32(3, 3)), second("_npi_trace", CUBE, axis1=1, axis2=2),
    second("_npi_trace", i32(3, 3)),
    second("_npi_triu", f32(3, 4)), second("_npi_triu", CUBE, k=1), second("_npi_triu", LINE, k=-1),
    second("_npi_tril", f32(3, 4), k=-1),
    second("_npi_tri", N=3), second("_npi_tri", N=3, M=4, k=1, dtype="int32"),
    second("_npi_tril_indices", n=3, m=3, k=0), second("_npi_tril_indices", n=3, m=4, k=1),
    second("_npi_full", shape="(2, 3)", double_value=2.5, int_value=0, uint_value=0, value_type=2),
    second("_npi_full", shape="(2, 3)", double_value=0, int_value=-7, uint_value=0, value_type=0,
           dtype="int32"),
    second("_npi_full", shape="(2,)", double_value=0, int_value=-7, uint_value=0, value_type=0),
    second("_npi_full", shape="(2,)", double_value=0, int_value=0, uint_value=9, value_type=1),
    second("_npi_full", shape="(2,)", double_value=0, int_value=1, uint_value=0, value_type=0,
           dtype="bool"),
    second("_npi_linspace", start_double=0.5, stop_double=2.0, start_int=0, stop_int=0,
           start_uint=0, stop_uint=0, num=4, value_type=2),
    second("_npi_linspace", start_double=0, stop_double=0, start_int=1, stop_int=9, start_uint=0,
           stop_uint=0, num=4, endpoint=False, value_type=0, dtype="float32"),
    second("_npi_indices", dimensions="(2, 3)"),
    second("_npi_indices", dimensions="(2, 3)", dtype="int32"),
    second("_npi_zeros", shape="(2,)", dtype="None"), second("_npi_ones", shape="()"),
    second("_npi_arange", start=1, stop=5), second("_npi_arange", start=4, dtype="None"),
    second("_npi_eye", N=2, M=3, k=1, dtype="None"),
    second("_npi_advanced_indexing", CUBE, i64(2, low=0, high=1)),
    second("_npi_advanced_indexing", CUBE, i32(2, 2, low=0, high=1)),
    second("_npi_advanced_indexing", CUBE, flags(2)),
    second("_npi_advanced_indexing_multiple", CUBE, of([[0, 1, 1], [2, 0, 1]], "int64"))
    .but(fixed=AXES),
    second("_npi_advanced_indexing_multiple", CUBE, of([[0, -1], [-2, 0]], "int64"))
    .but(fixed=AXES),
    second("_npx_index_add", CUBE, of([[0, 1, 1], [2, 0, 0]], "int64"), f32(3, 4, seed=1))
    .but(fixed=AXES),
    second("_npx_index_add", CUBE, of([[0, 1, 1]], "int32"), f32(4, seed=1)),
    second("_npx_index_update", CUBE, of([[0, 1], [2, 0]], "int64"), f32(2, 4, seed=1))
    .but(fixed=AXES),
    second("_npx_index_update", CUBE, of([[1]], "int32"), f32(1)),
    second("_npi_hsplit", f32(2, 4, 3), indices="[]", sections=2, axis=0),
    second("_npi_hsplit", f32(6), indices="[]", sections=3, axis=0),
    second("_split_v2", f32(2, 7), indices="[]", sections=3, axis=1),
    second("_npi_around", f32(2, 3), decimals=1), second("_npi_around", f32(2, 3)),
    second("argsort", CUBE, axis=1, is_ascend=False, dtype="int64"),
    second("argsort", CUBE, dtype="int32"),
    second("slice", CUBE, begin="(None, 1)", end="(None, None)", step="(None, 1)"),
    second("slice", CUBE, begin="(1, None, 0)", end="(2, None, 3)"),
    second("slice_axis", CUBE, axis=1, begin=1, end="None"),
    second("_npx_reshape", CUBE, newshape="(-2, -5)"),
    second("_npx_reshape", CUBE, newshape="(6, -1)"),
    second("_npi_delete", CUBE, int_ind=1, axis=1),
    second("_npi_delete", CUBE, start=0, stop=2, step=1, axis=1),
]  # fmt: skip
test_shape = operator_test(CASES)
