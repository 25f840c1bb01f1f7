"""One operator each, as TVM runs it: what ``record.py`` has live TVM compute.

A case is an expression of ``relay`` (``R``) and of its inputs ``a``, ``b``, … given as ``shape`` or
``shape:dtype`` or ``shape:dtype:low:high``; ``c`` makes constants.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """An expression and its inputs, and what may differ from the rule that all must hold.

    ``since`` is the lowest opset that can say it. ``slow``: TVM compiles it for many seconds, so
    only what is recorded is compared. ``rows``: TVM leaves the first output undefined behind them.
    ``oracle`` is what TVM runs instead, where it has no kernel of the expression for this machine.
    """

    expression: str
    inputs: tuple[str, ...]
    since: int = 0
    slow: bool = False
    rows: int | None = None
    oracle: str = ""


CASES: dict[str, Case] = {}


def case(
    name: str, expression: str, *inputs: str, since: int = 0, slow: bool = False,
    rows: int | None = None, oracle: str = "",
) -> None:  # fmt: skip
    """Add a case; a name given twice is a mistake."""
    assert name not in CASES, name
    CASES[name] = Case(expression, inputs, since, slow, rows, oracle)


for _op in "abs acos asin atan ceil cos cosh erf exp floor negative round rsqrt sigmoid sign sin sinh "\
           "sqrt tan tanh trunc log log2 log10 asinh atanh".split():  # fmt: skip
    case(f"{_op}", f"R.{_op}(a)", "3,4:float32:0.05:0.95")
for _op in "cosh sinh tan asinh atanh exp erf".split():
    if _op != "erf":
        case(f"{_op}-f64", f"R.{_op}(a)", "3,4:float64:0.05:0.95")
case("acosh", "R.acosh(a)", "3,4:float32:1.05:3")
case("acosh-f64", "R.acosh(a)", "3,4:float64:1.05:3")
case("round-halves", "R.round(a)", "9:halves")
for _op in "abs negative sign ceil".split():
    case(f"{_op}-int8", f"R.{_op}(a)", "3,4:int8:-9:9")
case("relu-int8", "R.nn.relu(a)", "3,4:int8:-9:9")
case("clip-int16", "R.clip(a, -3, 4)", "3,4:int16:-9:9")
case("clip-uint8", "R.clip(a, 3, 200)", "3,4:uint8:0:200")
case("clip-crossed", "R.clip(a, 0.7, -0.2)", "3,4")
case("clip-f64", "R.clip(a, -0.3, 0.4)", "3,4:float64")
for _op in "add subtract multiply maximum minimum".split():
    for _t in "int8 uint8 int16 int64 float16 float64 uint32".split():
        case(f"{_op}-{_t}", f"R.{_op}(a, b)", f"3,4:{_t}:1:9", f"4:{_t}:1:9")
for _op in "divide floor_divide floor_mod mod trunc_divide trunc_mod".split():
    for _t in "int8 int32 int64 uint8".split():
        _low = "0" if _t[0] == "u" else "-50"
        case(f"{_op}-{_t}", f"R.{_op}(a, b)", f"5,6:{_t}:{_low}:50", f"5,6:{_t}:1:9")
    case(f"{_op}-negative", f"R.{_op}(a, b)", "5,6:int32:-50:50", "5,6:int32:-9:-1")
    case(f"{_op}-float", f"R.{_op}(a, b)", "5,6:float32:-5:5", "5,6:float32:0.3:2")
    case(f"{_op}-float-negative", f"R.{_op}(a, b)", "5,6:float32:-5:5", "5,6:float32:-2:-0.3")
case("power", "R.power(a, b)", "3,4:float32:0.1:3", "3,4:float32:-2:2")
for _op in "equal not_equal less less_equal greater greater_equal".split():
    case(f"{_op}-int8", f"R.{_op}(a, b)", "3,4:int8:0:3", "3,4:int8:0:3")
    case(f"{_op}-f32", f"R.{_op}(a, b)", "3,4:int32:0:3", "4:int32:0:3")
for _op in "logical_and logical_or logical_xor".split():
    case(_op, f"R.{_op}(a, b)", "3,4:bool", "4:bool")
for _op in "bitwise_and bitwise_or bitwise_xor".split():
    case(_op, f"R.{_op}(a, b)", "3,4:int32:-90:90", "4:int32:-90:90")
    case(f"{_op}-u8", f"R.{_op}(a, b)", "3,4:uint8:0:255", "4:uint8:0:255")
case("bitwise_not", "R.bitwise_not(a)", "3,4:int32:-90:90")
case("left_shift", "R.left_shift(a, b)", "3,4:int32:-90:90", "3,4:int32:0:5")
case("right_shift", "R.right_shift(a, b)", "3,4:int32:-900:900", "3,4:int32:0:5")
case("right_shift-i64", "R.right_shift(a, b)", "3,4:int64:-900:900", "3,4:int64:0:5")
case("where-int", "R.where(a, b, c_)", "3,4:bool", "3,4:int8:0:9", "4:int8:0:9")
case("fixed_point_multiply", "R.fixed_point_multiply(a, 1288490189, -2)", "40:int32:-5000:5000")
case("fixed_point_multiply-up", "R.fixed_point_multiply(a, 1288490189, 3)", "40:int32:-5000:5000")

for _op in "sum mean max min prod".split():
    case(f"{_op}-axes", f"R.{_op}(a, axis=(0, 2))", "2,3,4")
    case(f"{_op}-exclude", f"R.{_op}(a, axis=1, exclude=True, keepdims=True)", "2,3,4")
for _op in "sum max min".split():
    case(f"{_op}-int8", f"R.{_op}(a, axis=1)", "3,4:int8:-5:5")
case("mean-int32", "R.mean(a, axis=1)", "3,4:int32:-50:50")
case("all", "R.all(a, axis=1)", "3,4:bool")
case("any-none", "R.any(a)", "3,4:bool")
case("argmax-last", "R.argmax(a, axis=1, select_last_index=True)", "3,9:int32:0:3")
case("argmin-first", "R.argmin(a, axis=1)", "3,9:int32:0:3")
case("variance", "R.variance(a, axis=(1, 2))", "2,3,4")
case("std-keep", "R.std(a, axis=1, keepdims=True)", "2,3,4")
case("logsumexp", "R.logsumexp(a, axis=1)", "2,3,4")
case("collapse_sum_to", "R.collapse_sum_to(a, (1, 4))", "2,3,4")

case("reshape-minus3", "R.reshape(a, (-3, -2))", "2,3,4,5")
case("reshape-minus4", "R.reshape(a, (-4, 1, 2, -2))", "2,3,4")
case("reverse_reshape", "R.reverse_reshape(a, (-1, 0))", "2,3,4")
case("squeeze", "R.squeeze(a)", "1,3,1")
case("expand_dims-2", "R.expand_dims(a, 1, 2)", "2,3")
case("split-ints", "R.split(a, (2, 5), axis=1).astuple()", "2,7")
case("tile-longer", "R.tile(a, (2, 1, 3))", "2,3")
case("repeat-axis", "R.repeat(a, 3, axis=0)", "2,3")
case("reverse", "R.reverse(a, 1)", "2,3")
case("reverse_sequence", "R.reverse_sequence(a, b, 1, 0)", "3,4,2", "3:int32:1:4")
case("reverse_sequence-0", "R.reverse_sequence(a, b, 0, 1)", "4,3,2", "3:int64:1:4")
case("stack", "R.stack((a, b), axis=-1)", "2,3", "2,3")
case("batch_flatten", "R.nn.batch_flatten(a)", "2,3,4")
case("broadcast_to", "R.broadcast_to(a, (4, 2, 3))", "2,1")
case("reshape_like", "R.reshape_like(a, b, lhs_begin=1, rhs_begin=1)", "2,12", "5,3,4")
case("meshgrid-3", "R.meshgrid((a, b, c_), indexing='xy').astuple()", "2", "3", "4")
case("pad-fill", "R.nn.pad(a, ((1, 2), (0, 3)), pad_value=2.5)", "2,3")
case("pad-edge", "R.nn.pad(a, ((1, 2), (0, 3)), pad_mode='edge')", "2,3")
case("mirror_pad-symmetric", "R.nn.mirror_pad(a, ((1, 2), (2, 0)), 'SYMMETRIC')", "3,4")
case("mirror_pad-reflect", "R.nn.mirror_pad(a, ((1, 2), (2, 0)), 'REFLECT')", "3,4")
case("space_to_batch", "R.nn.space_to_batch_nd(a, (2, 2), ((1, 1), (0, 2)), 3.0)", "1,4,4,2")
case("batch_to_space", "R.nn.batch_to_space_nd(a, (2, 2), ((1, 0), (0, 1)))", "8,2,3,2")
case("depth_to_space-crd", "R.nn.depth_to_space(a, 2, 'NHWC', 'CRD')", "1,2,3,8")
case("space_to_depth-nhwc", "R.nn.space_to_depth(a, 2, 'NHWC')", "1,4,6,2")
case("sliding_window", "R.sliding_window(a, 1, (2, 3), (1, 2))", "2,5,7")
case("dilate", "R.nn.dilate(a, (1, 2, 3), 0.5)", "2,3,4")
case("layout-pack", "R.layout_transform(a, 'NCHW', 'NCHW4c')", "1,8,2,3")
case("layout-kernel", "R.layout_transform(a, 'OIHW', 'OIHW2i4o')", "8,4,3,3")
case("layout-nhwc-pack", "R.layout_transform(a, 'NHWC', 'NCHW2c')", "1,3,2,4")

case("strided_slice-size", "R.strided_slice(a, (1, 2), (3, -1), slice_mode='size')", "6,7")
case("strided_slice-neg", "R.strided_slice(a, (-1, 5), (-7, 0), (-2, -1))", "6,7")
case("strided_slice-axes", "R.strided_slice(a, (1,), (6,), (2,), axes=(1,))", "6,7")
case("strided_slice-rest", "R.strided_slice(a, (1,), (4,))", "6,7")
case("strided_set", "R.strided_set(a, b, c([1, 0], 'int32'), c([3, 2], 'int32'), c([1, 1], 'int32'))",
     "4,3", "2,2")  # fmt: skip
for _mode in "clip wrap".split():
    case(f"take-{_mode}", f"R.take(a, b, axis=1, mode='{_mode}')", "3,4", "2,3:int32:-7:9")
    case(f"take-{_mode}-flat", f"R.take(a, b, mode='{_mode}')", "3,4", "2,3:int32:-30:40")
case("take-fast", "R.take(a, b, axis=0, mode='fast')", "3,4", "5:int32:0:2")
case("take-batch", "R.take(a, b, axis=1, batch_dims=1)", "3,4", "3,2:int32:0:3")
case("gather", "R.gather(a, 1, b)", "3,4", "3,2:int32:0:3")
case("gather_nd", "R.gather_nd(a, b)", "3,4,2", "2,5:int32:0:2")
case("adv_index", "R.adv_index([a, b, c_])", "3,4,2", "2,1:int32:0:2", "1,3:int32:0:3")
case("argwhere", "R.argwhere(a)", "3,4:int32:0:1")
for _mode in "update add mul min max".split():
    case(f"scatter_elements-{_mode}", f"R.scatter_elements(a, c([[0, 2, 1]], 'int64'), b, 0, '{_mode}')",
         "3,3", "1,3")  # fmt: skip
for _mode in "update add".split():
    case(
        f"scatter_nd-{_mode}",
        f"R.scatter_nd(a, c([[0, 2], [1, 0]], 'int64'), b, '{_mode}')",
        "3,3",
        "2",
    )
case("one_hot-axis", "R.one_hot(a, c(2.0), c(-1.0), 4, 0, 'float32')", "2,3:int32:-1:5")
case("sequence_mask", "R.sequence_mask(a, b, 9.0, axis=1)", "3,4,2", "3:int32:0:4")
case("sequence_mask-0", "R.sequence_mask(a, b, 9.0, axis=0)", "4,3", "3:int32:0:4")
case("matrix_set_diag", "R.matrix_set_diag(a, b)", "2,3,4", "2,3")
for _align in "RIGHT_LEFT LEFT_RIGHT LEFT_LEFT RIGHT_RIGHT".split():
    case(f"matrix_set_diag-{_align}", f"R.matrix_set_diag(a, b, (-1, 2), '{_align}')", "4,5", "4,4")
    case(
        f"matrix_set_diag-tall-{_align}",
        f"R.matrix_set_diag(a, b, (-2, 1), '{_align}')",
        "2,5,3",
        "2,4,3",
    )
case("sparse_to_dense", "R.sparse_to_dense(c([[0, 1], [2, 3]], 'int32'), (3, 4), a, c(-1.0))", "2")
case("unravel_index", "R.unravel_index(a, c([3, 4, 2], 'int32'))", "6:int32:0:23")
case("trilu", "R.trilu(a, c(-1, 'int32'), upper=True)", "3,4")
case("arange-float", "R.arange(c(1.0), c(7.5), c(1.5), 'float32')")
case("full", "R.full(a, (2, 3), 'int8')", "int32:-5:5")
case("full_like", "R.full_like(a, c(3.5))", "2,3")
case("ndarray_size", "R.ndarray_size(a)", "2,3")
case("invert_permutation", "R.invert_permutation(c([2, 0, 3, 1], 'int32'))")
case("sort-desc", "R.sort(a, axis=0, is_ascend=False)", "4,5:int32:-9:9")
case("argsort-ties", "R.argsort(a, axis=1)", "3,9:int32:0:3")
case("argsort-desc-ties", "R.argsort(a, axis=1, is_ascend=False, dtype='int64')", "3,9:int32:0:3")
case("topk", "R.topk(a, 3, axis=1, is_ascend=True, dtype='int64').astuple()", "3,9")
case("topk-all", "R.topk(a, 0, axis=0, ret_type='values')", "4,3")
case("cumsum-exclusive", "R.cumsum(a, axis=1, exclusive=True)", "3,5")
case("cumsum-int8", "R.cumsum(a, axis=0, dtype='int32')", "3,5:int8:0:90")
case("cumprod-exclusive", "R.cumprod(a, axis=1, exclusive=True)", "3,5")
case("cumprod-flat", "R.cumprod(a)", "3,3")
case("searchsorted", "R.searchsorted(c([1.0, 2.0, 2.0, 5.0]), a)", "3,4:float32:0:6")
case("searchsorted-right", "R.searchsorted(c([1, 2, 2, 5], 'int32'), a, right=True)", "9:int32:0:6")
case("unique", "R.unique(c([3, 1, 3, 2, 3, 1], 'int32'))[2]")
case("einsum", "R.einsum((a, b), 'ij,kj->ik')", "3,4", "5,4")
