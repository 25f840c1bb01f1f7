"""Element by element, along axes, by order and by index: in each element type and rank."""

from __future__ import annotations

from .cases import case

FLOATS = "float16 float64".split()
for _op in "abs exp floor ceil round trunc negative sqrt sign sigmoid tanh cos sin log rsqrt log2 "\
           "log10 tan cosh sinh".split():  # fmt: skip
    for _t in FLOATS:
        case(f"{_op}-{_t}", f"R.{_op}(a)", f"3,4:{_t}:0.05:0.95")
case("erf-float16", "R.erf(a)", "3,4:float16")
for _op in "floor ceil round trunc sign abs negative".split():
    case(f"{_op}-both-signs", f"R.{_op}(a)", "40:float32:-3:3")
for _op in "floor ceil trunc".split():
    case(f"{_op}-halves", f"R.{_op}(a)", "19:halves")
for _op in "sign negative abs".split():
    case(f"{_op}-int64", f"R.{_op}(a)", "9:int64:-9:9")
case("relu-rank5", "R.nn.relu(a)", "1,2,3,2,2")
case("relu-int32", "R.nn.relu(a)", "9:int32:-9:9")
case("relu-int64", "R.nn.relu(a)", "9:int64:-9:9")
case("relu-float16", "R.nn.relu(a)", "9:float16")
case("clip-float16", "R.clip(a, -0.3, 0.4)", "9:float16")
case("clip-int32", "R.clip(a, -3.7, 4.2)", "19:int32:-9:9")
case("clip-uint8-wide", "R.clip(a, -3, 300)", "19:uint8:0:255")
case("leaky-float16", "R.nn.leaky_relu(a, 0.2)", "9:float16")
case("prelu-first", "R.nn.prelu(a, b, axis=1)", "2,6,4,4", "6")
case("prelu-last", "R.nn.prelu(a, b, axis=2)", "2,6,4", "4")
case("copy-int8", "R.copy(a)", "3:int8:-9:9")
for _op in "add subtract multiply divide maximum minimum power".split():
    case(f"{_op}-broadcast", f"R.{_op}(a, b)", "2,1,4:float32:0.3:2", "3,1:float32:0.3:2")
    case(f"{_op}-scalar", f"R.{_op}(a, c(1.5))", "2,3:float32:0.3:2")
for _op in "divide power floor_divide floor_mod mod".split():
    for _t in FLOATS:
        case(f"{_op}-{_t}", f"R.{_op}(a, b)", f"5,6:{_t}:0.3:5", f"5,6:{_t}:0.3:2")
for _op in "add multiply subtract".split():
    case(f"{_op}-wraps", f"R.{_op}(a, b)", "40:int8:-128:127", "40:int8:-128:127")
    case(f"{_op}-wraps-u", f"R.{_op}(a, b)", "40:uint8:0:255", "40:uint8:0:255")
for _op in "equal not_equal less less_equal greater greater_equal".split():
    for _t in "float32 float64 float16 int64 uint8".split():
        _low = 0 if _t[0] in "fu" else -2
        case(f"{_op}-{_t}", f"R.{_op}(R.cast(R.cast(a, 'int32'), '{_t}'), b)", "3,4:float32:0:3",
             f"4:{_t}:1:1")  # fmt: skip
case("equal-bool", "R.equal(a, b)", "3,4:bool", "3,4:bool")
for _op in "bitwise_and bitwise_or bitwise_xor".split():
    case(f"{_op}-i64", f"R.{_op}(a, b)", "3,4:int64:-9999:9999", "4:int64:-90:90")
    case(f"{_op}-bool", f"R.{_op}(a, b)", "3,4:bool", "4:bool")
case("bitwise_not-u8", "R.bitwise_not(a)", "9:uint8:0:255")
for _t in "uint8 int8 int16 uint32".split():
    for _op in "left_shift right_shift".split():
        _low = 0 if _t[0] == "u" else -50
        case(f"{_op}-{_t}", f"R.{_op}(a, b)", f"9:{_t}:{_low}:50", f"9:{_t}:0:4")

for _op in "sum mean max min prod".split():
    case(f"{_op}-all", f"R.{_op}(a)", "2,3,4")
    case(f"{_op}-negative", f"R.{_op}(a, axis=(-1, 0), keepdims=True)", "2,3,4")
    for _t in "float16 float64 int16 int64 uint8".split():
        _low, _high = ("0.5", "1.5") if _t[0] == "f" else ("1", "3")
        case(f"{_op}-{_t}", f"R.{_op}(a, axis=1)", f"3,4:{_t}:{_low}:{_high}")
for _op in "all any".split():
    case(f"{_op}-axes", f"R.{_op}(a, axis=(0, 2), keepdims=True)", "2,3,4:bool")
    case(f"{_op}-exclude", f"R.{_op}(a, axis=1, exclude=True)", "2,3,4:bool")
for _op in "argmax argmin".split():
    case(f"{_op}-all", f"R.{_op}(a)", "2,3,4")
    case(f"{_op}-keep", f"R.{_op}(a, axis=-1, keepdims=True)", "2,3,4:float16")
    case(f"{_op}-all-keep", f"R.{_op}(a, keepdims=True)", "2,3:int32:0:3")
    case(f"{_op}-uint8", f"R.{_op}(a, axis=0)", "5,3:uint8:0:9")
    case(f"{_op}-uint32", f"R.{_op}(a, axis=0)", "5,3:uint32:0:9")
    case(f"{_op}-exclude", f"R.{_op}(a, axis=(0, 2), exclude=True)", "2,5,4")
case("variance-unbiased", "R.variance(a, axis=1, unbiased=True)", "2,3,4")
case("variance-exclude", "R.variance(a, axis=1, exclude=True, keepdims=True)", "2,3,4")
for _name, _more in (("", ""), ("-unbiased", ", unbiased=True")):  # more than the largest half
    case(f"variance-halves{_name}", f"R.variance(R.tile(a, (1, 700)), axis=1{_more})",
         "2,100:float16")  # fmt: skip
case("reverse_reshape-allowzero", "R.Call(R.op.get('contrib_reverse_reshape'), [a], "
     "R.reshape(a, (0, 5), allowzero=True).attrs)", "2,0")  # fmt: skip
case("mean-halves", "R.mean(R.tile(a, (1, 700)), axis=1)", "2,100:float16:1:2")
case("l2_normalize-halves", "R.nn.l2_normalize(R.tile(a, (1, 700)), 1e-5, [1])",
     "2,100:float16:100:200",
     oracle="R.cast(R.nn.l2_normalize(R.cast(R.tile(a, (1, 700)), 'float32'), 1e-5, [1]), "
     "'float16')")  # fmt: skip
case("variance-all", "R.variance(a)", "2,3,4:float64")
case("logsumexp-keep", "R.logsumexp(a, axis=(0, 1), keepdims=True)", "2,3,4")
case("l2_normalize-all", "R.nn.l2_normalize(a, 1e-6)", "2,6,4")
for _t in FLOATS:
    case(f"softmax-{_t}", "R.nn.softmax(a, axis=-1)", f"2,6,3:{_t}")
    case(f"log_softmax-{_t}", "R.nn.log_softmax(a, axis=-1)", f"2,6:{_t}")
case("softmax-first", "R.nn.softmax(a, axis=0)", "5,3")
case("fast_softmax-axis", "R.nn.fast_softmax(a, axis=1)", "2,6,3")
case("batch_norm-nchw", "R.nn.batch_norm(a, b, c_, d, e)[0]", "2,4,3,5", "4", "4", "4",
     "4:float32:0.5:2")  # fmt: skip
case("batch_norm-nhwc", "R.nn.batch_norm(a, b, c_, d, e, axis=-1, scale=False)[0]", "2,3,5,4", "4", "4",
     "4", "4:float32:0.5:2")  # fmt: skip
case("batch_norm-no-center", "R.nn.batch_norm(a, b, c_, d, e, center=False).astuple()", "2,4", "4", "4",
     "4", "4:float32:0.5:2")  # fmt: skip
case("batch_norm-f16", "R.nn.batch_norm(a, b, c_, d, e)[0]", "2,4,3:float16", "4:float16", "4:float16",
     "4:float16", "4:float16:0.5:2")  # fmt: skip
case("layer_norm-f16", "R.nn.layer_norm(a, b, c_)", "2,3,8:float16", "8:float16", "8:float16")
case("layer_norm-2d", "R.nn.layer_norm(a, b, c_, epsilon=0.1)", "3,4", "4", "4")
case("instance_norm", "R.nn.instance_norm(a, b, c_)", "2,3,4,5", "3", "3")
case(
    "instance_norm-plain",
    "R.nn.instance_norm(a, b, c_, center=False, scale=False)",
    "2,3,4",
    "3",
    "3",
)
case("group_norm-one", "R.nn.group_norm(a, b, c_, 1, epsilon=0.01)", "2,6,4,3", "6", "6")
case("lrn-wide", "R.nn.lrn(a, 5)", "2,6,4,4")
case("lrn-last", "R.nn.lrn(a, 3, 3, 2.0, 0.1, 0.75)", "2,4,4,6")
for _reduction in "mean none".split():
    case(f"nll_loss-{_reduction}", f"R.nn.nll_loss(a, b, c_, '{_reduction}', -100)", "5,4",
         "5:int32:0:3", "4:float32:0.1:1")  # fmt: skip

for _t in "float16 int32 int64 uint8".split():
    _high = "1" if _t[0] == "f" else "9"
    if _t != "uint8":
        case(f"sort-{_t}", "R.sort(a)", f"3,9:{_t}:0:{_high}")
        case(f"argsort-{_t}", "R.argsort(a, axis=0)", f"9,3:{_t}:0:{_high}")
    case(f"topk-{_t}", "R.topk(a, 4).astuple()", f"3,9:{_t}:0:{_high}")
case("topk-indices", "R.topk(a, 2, axis=0, ret_type='indices')", "5,4")
for _op in "cumsum cumprod".split():
    case(f"{_op}-f64", f"R.{_op}(a, axis=-1)", "3,5:float64")
    case(f"{_op}-int32", f"R.{_op}(a, axis=0)", "3,5:int32:1:4")
    case(f"{_op}-bool", f"R.{_op}(a, axis=0, dtype='int32')", "3,5:bool")
case("cumsum-flat", "R.cumsum(a)", "3,5")
case("searchsorted-rows", "R.searchsorted(R.sort(a), b, dtype='int64')", "3,9", "3,4")
for _sorted in (True, False):
    case(f"unique-{_sorted}", "(lambda u: R.Tuple([R.strided_slice(u[i], [0], [3]) for i in (0, 1, 4)] "
         f"+ [u[2], u[3]]))(R.unique(R.cast(a, 'int32'), is_sorted={_sorted}, return_counts=True))",
         "19:float32:0:4")  # fmt: skip

for _mode in "clip wrap fast".split():
    case(f"take-{_mode}-int64", f"R.take(a, b, axis=-1, mode='{_mode}')", "3,4:int8:-9:9",
         "2:int64:0:3")  # fmt: skip
case("take-batch-2", "R.take(a, b, axis=2, batch_dims=2)", "2,3,4", "2,3,2:int32:0:3")
case("gather-first", "R.gather(a, 0, b)", "5,4", "2,4:int64:0:4")
case("gather-last", "R.gather(a, -1, b)", "2,3,4", "2,3,1:int32:0:3")
case("gather_nd-batch", "R.gather_nd(a, b, batch_dims=1)", "2,3,4", "1,2,2:int32:0:2")
case("gather_nd-full", "R.gather_nd(a, b)", "3,4", "2,5:int64:0:2")
case("adv_index-one", "R.adv_index([a, b])", "3,4,2", "2,2:int64:0:2")
case("argwhere-bool", "R.argwhere(a)", "3,4,2:bool")
case("argwhere-1d", "R.argwhere(a)", "9:float32:0:0")
_INDEX = "c([[0, 2, 1], [1, 1, 0]], 'int64')"
for _mode in "update add mul min max".split():
    _kind = "int32:-9:9" if _mode != "update" else "float32"
    case(f"scatter_elements-{_mode}-1", "R.scatter_elements(a, c([[0, 2], [1, 0]], 'int64'), b, 1, "
         f"'{_mode}')", f"2,3:{_kind}", f"2,2:{_kind}")  # fmt: skip
for _mode in "add mul min max".split():
    case(f"scatter_elements-{_mode}-twice", f"R.scatter_elements(a, {_INDEX}, b, 0, '{_mode}')", "3,3",
         "2,3")  # fmt: skip
    case(f"scatter_nd-{_mode}-rows", f"R.scatter_nd(a, c([[0, 2, 0]], 'int64'), b, '{_mode}')", "3,4",
         "3,4")  # fmt: skip
case("scatter_nd-int", "R.scatter_nd(a, c([[0, 2], [1, 0]], 'int64'), b, 'add')", "3,3:int32:-9:9",
     "2:int32:-9:9")  # fmt: skip
case("reverse_sequence-int", "R.reverse_sequence(a, b, 2, 0)", "3,2,4:int32:-9:9", "3:int32:1:4")
case("strided_slice-axes-2", "R.strided_slice(a, (1, -1), (6, 0), (2, -2), axes=(2, 0))", "6,5,7")
case("strided_slice-far", "R.strided_slice(a, (0, -99), (99, 99))", "6,7:int8:-9:9")
case("strided_slice-one-stride", "R.strided_slice(a, (0, 1), (6, 7), (2,))", "6,7")
case("matrix_set_diag-batch", "R.matrix_set_diag(a, b, 1)", "2,3,4", "2,3")
case(
    "sparse_to_dense-scalar", "R.sparse_to_dense(c([1, 3], 'int64'), (5,), c(2.5), c(0.0)) + a", "5"
)
case("unravel_index-int64", "R.unravel_index(a, c([3, 8], 'int64'))", "6:int64:0:23")
case("stft-two-sided", "R.stft(a, 8, 4, 8, b, False, False)", "2,40", "8")
case("stft-normalized", "R.stft(a, 8, 4, 8, b, True, True)", "2,40", "8")
case("dft-forward", "R.dft(a, b, False).astuple()", "3,8", "3,8")
for _axis, _x, _buffer in ((0, "2,3,4", "5,3,4"), (1, "2,2,4", "2,4,4"), (2, "2,3,1", "2,3,6")):
    case(f"fifo_buffer-{_axis}", f"R.nn.fifo_buffer(a, b, {_axis})", _x, _buffer)
case("fifo_buffer-long", "R.nn.fifo_buffer(a, b, 0)", "5,3", "5,3")

CSR = "(c([1.0, 2.0, 3.0]), c([0, 2, 1], 'int32'), c([0, 2, 2, 3], 'int32'))"
BSR = ("(c([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[1.5, 2.5], [3.5, 4.5]]]), "
       "c([0, 2, 1], 'int32'), c([0, 2, 2, 3], 'int32'))")  # fmt: skip
case("sparse_dense-bsr", f"R.nn.sparse_dense(a, {BSR})", "2,6")
case("sparse_dense-lhs", f"R.nn.sparse_dense(a, {CSR}, True)", "4,3")
case("sparse_add", f"R.nn.sparse_add(a, {CSR})", "3,3")
case("sparse_transpose", f"R.nn.sparse_dense(a, R.nn.sparse_transpose({CSR}))", "2,3")
case("sparse_conv2d", "R.op.nn._make.sparse_conv2d(a, *(c([[[1.0], [2.0]], [[3.0], [4.0]]]), c([0, 1], 'int32'), "
     "c([0, 1, 2], 'int32')), 'NHWC', (1, 1))", "1,3,4,2")  # fmt: skip
case("sparse_reshape", "R.sparse_reshape(c([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], "
     "'int32'), c([2, 3, 6], 'int32'), c([9, -1], 'int32')).astuple()")  # fmt: skip
case("sparse_fill_empty_rows", "R.sparse_fill_empty_rows(c([[0, 1], [0, 3], [2, 0], [3, 1]], 'int64'), "
     "a, c([6, 5], 'int64'), c(10, 'int64'))", "4:int64:-9:9")  # fmt: skip
