"""Shapes and numbers that operands tell, tensors made of them, and conversions of elements.

``b`` is 0: what is added to it is known to TVM and to serde only when the model runs.
"""

from __future__ import annotations

from .cases import case

ZERO = {n: f"{n}:int64:0:0" for n in (1, 2, 3)}


def plus(*numbers: int, dtype: str = "int64") -> str:
    """Dynamic numbers."""
    return f"(b + c({list(numbers)}, '{dtype}'))"


case("dyn.reshape", f"R.reshape(a, {plus(3, -1)})", "2,3,4", ZERO[2])
case("dyn.reshape-flat", f"R.reshape(a, {plus(-1)})", "2,3,4:int8:-9:9", ZERO[1])
case("dyn.broadcast_to", f"R.broadcast_to(a, {plus(4, 2, 3)})", "2,1", ZERO[3])
case("dyn.broadcast_to-scalar", f"R.broadcast_to(a, {plus(2, 3)})", "int32:-5:5", ZERO[2])
case("dyn.full", f"R.full(a, {plus(2, 3)}, 'int8')", "int32:-5:5", ZERO[2])
case("dyn.zeros", f"R.zeros({plus(2, 3)}, 'float16')", "1", ZERO[2])
case("dyn.ones", f"R.ones({plus(2, 3)}, 'int32')", "1", ZERO[2])
for _reps in ((2, 3), (2, 1, 3)):
    case(f"dyn.tile-{len(_reps)}", f"R.tile(a, {plus(*_reps)})", "2,3", ZERO[len(_reps)])
case("dyn.topk", "R.topk(a, b + c(3, 'int64'), axis=1).astuple()", "3,9", "int64:0:0")
case("dyn.topk-values", "R.topk(a, b + c(2, 'int64'), axis=0, ret_type='values', is_ascend=True)",
     "5,3", "int64:0:0")  # fmt: skip
case("dyn.topk-indices", "R.topk(a, b + c(2, 'int64'), ret_type='indices', dtype='int64')", "5,3",
     "int64:0:0")  # fmt: skip
for _axis in (-1, 0):
    case(f"dyn.one_hot-{_axis}",
         f"R.one_hot(a, c(2.0), c(-1.0), b + c(4, 'int32'), {_axis}, 'float32')",
         "2,3:int32:-1:5", "int32:0:0")  # fmt: skip
case("dyn.strided_slice", f"R.strided_slice(a, {plus(1, -5)}, {plus(-1, 6)}, {plus(2, 1)})", "6,7",
     ZERO[2])  # fmt: skip
case("dyn.strided_slice-back", f"R.strided_slice(a, {plus(5, 6)}, {plus(0, 1)}, {plus(-2, -1)})",
     "6,7", ZERO[2])  # fmt: skip
case("dyn.strided_slice-size",
     f"R.strided_slice(a, {plus(1, 2)}, {plus(3, -1)}, {plus(1, 1)}, slice_mode='size')", "6,7",
     ZERO[2])  # fmt: skip
WIDTHS = "(b + c([[1, 2], [0, 3]], 'int64'))"
case("dyn.nn.pad", f"R.nn.pad(a, {WIDTHS}, c(2.5))", "2,3", "2,2:int64:0:0")
case("dyn.nn.pad-int", f"R.nn.pad(a, {WIDTHS}, c(7, 'int32'))", "2,3:int32:-9:9", "2,2:int64:0:0")
for _method in "nearest_neighbor bilinear bicubic".split():
    case(f"dyn.nn.upsampling-{_method}", "R.nn.upsampling(a, c(2.0) + c(0.0), c(3.0) + c(0.0), "
         f"method='{_method}')", "1,2,4,5")  # fmt: skip
    case(f"dyn.nn.upsampling-{_method}-computed", "R.nn.upsampling(a, b + c(2.0), b + c(1.7), "
         f"method='{_method}')", "1,2,4,5", "float32:0:0")  # fmt: skip
case("dyn.nn.upsampling3d", "R.nn.upsampling3d(a, c(2.0) + c(0.0), c(1.0) * c(1.0), c(3.0) + c(0.0))",
     "1,2,4,5,3")  # fmt: skip
case("dyn.nn.upsampling3d-computed", "R.nn.upsampling3d(a, b + c(2.0), b + c(1.0), b + c(2.5))",
     "1,2,4,5,3", "float32:0:0")  # fmt: skip
for _method in "nearest_neighbor linear cubic".split():
    for _mode in "half_pixel align_corners asymmetric".split():
        case(f"dyn.image.resize2d-{_method}-{_mode}",
             f"R.image.resize2d(a, {plus(7, 9)}, None, 'NCHW', '{_method}', '{_mode}')",
             "1,2,5,6", ZERO[2])  # fmt: skip
case("dyn.squeeze", f"R.squeeze(a, {plus(0, 2)})", "1,3,1", ZERO[2])
for _axis, _count in ((1, 1), (0, 2), (2, 3), (1, 0), (-1, 1), (-2, 2), (-3, 3)):
    case(f"dyn.expand_dims-{_axis}-{_count}", f"R.expand_dims(a, b + c({_axis}, 'int64'), {_count})",
         "2,3", "int64:0:0", oracle=f"R.expand_dims(a, {_axis}, {_count})")  # fmt: skip
case("dyn.expand_dims-vector", "R.expand_dims(a, b + c(1, 'int64'), 2)", "3:int8:-9:9",
     "int64:0:0", oracle="R.expand_dims(a, 1, 2)")  # fmt: skip
case("dyn.sparse_to_dense", f"R.sparse_to_dense(c([[0, 1], [2, 3]], 'int64'), {plus(3, 4)}, a, "
     "c(-1.0))", "2", ZERO[2])  # fmt: skip
case("arange-computed", "R.arange(c(0, 'int64'), a, c(2, 'int64'), 'int64')", "int64:7:7")

case("broadcast_to_like", "R.broadcast_to_like(a, b)", "2,1", "4,2,3")
case("collapse_sum_like", "R.collapse_sum_like(a, b)", "4,2,3", "2,1")
case("collapse_sum_like-keep", "R.collapse_sum_like(a, b)", "4,2,3", "4,1,3")
case("slice_like", "R.slice_like(a, b)", "4,5", "2,3")
case("slice_like-axes", "R.slice_like(a, b, (0, -1))", "4,5,6", "2,9,3")
case("shape_of", "R.shape_of(a)", "2,3")
case("shape_of-int64", "R.shape_of(a, 'int64')", "2,3")
case("ndarray_size-int64", "R.ndarray_size(a, 'int64')", "2,3")
case("zeros", "R.zeros((2, 3), 'int64') + a", "2,3:int64:-9:9")
case("ones", "R.ones((2, 3), 'float64') * a", "2,3:float64")
case("zeros_like", "R.zeros_like(a)", "2,3:float16")
case("ones_like", "R.ones_like(a)", "2,3:int8:-9:9")
case("full_like-int", "R.full_like(a, c(3, 'int32'))", "2,3:int32:-9:9")
case("copy", "R.copy(a)", "2,3")
TYPES = "float16 float32 float64 int8 uint8 int16 int32 int64 bool".split()
for _from in TYPES:
    _range = (
        "bool" if _from == "bool" else f"{_from}:0:99" if _from[0] == "u" else f"{_from}:-99:99"
    )
    for _to in TYPES:
        if _from != _to and not (_from[0] == "f" and _to == "uint8"):  # undefined below 0
            case(f"cast-{_from}-{_to}", f"R.cast(a, '{_to}')", f"3,4:{_range}")
case("cast_like", "R.cast_like(a, b)", "3,4:float32:-9:9", "2:int16:0:9")
case("cast-wraps", "R.cast(a, 'int8')", "40:int32:-999:999")
case("cast-wraps-u", "R.cast(a, 'uint8')", "40:int64:-999:999")
case("reinterpret", "R.reinterpret(a, 'int32')", "3,4", since=26)
case("logical_not", "R.logical_not(a)", "3,4:bool")
for _op in "isnan isinf isfinite".split():
    for _t in "float32 float64".split():
        case(f"{_op}-{_t}", f"R.{_op}(R.log(R.nn.relu(a)) / a)", f"40:{_t}:-1:1")
for _op in "fast_erf fast_exp fast_tanh".split():
    case(_op, f"R.Call(R.op.get('{_op}'), [a])", "40:float32:-3:3")
case("transpose", "R.transpose(a)", "2,3,4")
case("transpose-axes", "R.transpose(a, (1, -1, 0))", "2,3,4:int8:-9:9")
case("concatenate-negative", "R.concatenate((a, b), -1)", "2,3", "2,4")
case("stack-int", "R.stack((a, b), 0)", "2,3:int8:-9:9", "2,3:int8:-9:9")
case("split-sections", "R.split(a, 3, axis=-1).astuple()", "2,6:int32:-9:9")
case("squeeze-axes", "R.squeeze(a, (0, -1))", "1,3,1")
case("expand_dims-negative", "R.expand_dims(a, -1, 1)", "2,3")
case("reshape-zero", "R.reshape(a, (0, -1))", "2,3,4")
case("reshape-infer", "R.reshape(a, (4, -1, 2))", "2,3,4:int32:-9:9")
case("reshape-split-infer", "R.reshape(a, (2, -4, -1, 3, 0))", "2,6,4")
case("reshape-allowzero", "R.reshape(a, (0, 3), allowzero=True)", "0,3")
case("reshape_like-all", "R.reshape_like(a, b)", "2,12", "4,6:int8:0:9")
case("repeat-flat", "R.repeat(a, 2, axis=-1)", "2,3:int64:-9:9")
case("tile-shorter", "R.tile(a, (2,))", "2,3")
case("reverse-negative", "R.reverse(a, -1)", "2,3:int8:-9:9")
case("where-broadcast", "R.where(a, b, c_)", "3,1:bool", "1,4:float64", "float64")
case("full-float", "R.full(c(2.5), (2, 3), 'float64') + a", "2,3:float64")
case("arange-int", "R.arange(c(7, 'int32'), c(-2, 'int32'), c(-2, 'int32'), 'int32')")
case("meshgrid-ij", "R.meshgrid((a, b), indexing='ij').astuple()", "2", "3")
case("sequence_mask-int", "R.sequence_mask(a, b, -1.0, axis=1)", "3,4,2,2", "3:int64:0:4")
case("trilu-lower", "R.trilu(a, c(1, 'int32'), upper=False)", "2,3,4:int32:-9:9")
case("one_hot-int", "R.one_hot(a, c(3, 'int32'), c(1, 'int32'), 5, 1, 'int32')", "2,3:int64:0:4")
case(
    "invert_permutation-computed", "R.invert_permutation(a + c([2, 0, 1], 'int32'))", "3:int32:0:0"
)
