"""Quantised operators beyond ``cases_nn.py``: channels, layouts, types and simulated ones."""

from __future__ import annotations

from .cases import case

Q = "R.qnn."
S = "c(0.05), c(3, 'int32')"
case("qnn.quantize-uint8", f"{Q}quantize(a, c(0.02), c(128, 'int32'), out_dtype='uint8')",
     "99:float32:-4:4")  # fmt: skip
case("qnn.quantize-int16", f"{Q}quantize(a, c(0.001), c(0, 'int32'), out_dtype='int16')",
     "99:float32:-40:40")  # fmt: skip
case("qnn.quantize-int32", f"{Q}quantize(a, c(0.001), c(0, 'int32'), out_dtype='int32')", "99")
case("qnn.quantize-last", f"{Q}quantize(a, c([0.1, 0.2]), c([1, 2], 'int32'), -1, 'int8')", "3,2")
case("qnn.quantize-zeros", f"{Q}quantize(a, c(0.1), c([1, 2], 'int32'), 1, 'int8')", "3,2")
case("qnn.dequantize-uint8", f"{Q}dequantize(a, c(0.1), c(7, 'int32'))", "2,3,4:uint8:0:255")
case("qnn.dequantize-scalar-axis", f"{Q}dequantize(a, c(0.1), c(7, 'int32'), 5)", "9:uint8:0:255")
case("qnn.dequantize-int16", f"{Q}dequantize(a, c(0.01), c(7, 'int32'))", "9:int16:-9999:9999")
case("qnn.dequantize-far-zero", f"{Q}dequantize(a, c(0.1), c(300, 'int32'))", "9:int8:-128:127")
case("qnn.dequantize-last", f"{Q}dequantize(a, c([0.1, 0.2]), c([1, 2], 'int32'), -1)",
     "3,2:uint8:0:255")  # fmt: skip
case("qnn.dequantize-f16", f"{Q}dequantize(a, c(0.1), c(7, 'int32'), out_dtype='float16')",
     "9:int8:-128:127")  # fmt: skip
for _in, _out in (("int8", "uint8"), ("uint8", "int8"), ("int32", "int32"), ("int32", "int16")):
    _range = "0:255" if _in[0] == "u" else "-128:127" if _in == "int8" else "-30000:30000"
    case(f"qnn.requantize-{_in}-{_out}",
         f"{Q}requantize(a, c(0.37), c(2, 'int32'), c(0.21), c(3, 'int32'), out_dtype='{_out}')",
         f"99:{_in}:{_range}")  # fmt: skip
case("qnn.requantize-tiny", f"{Q}requantize(a, c(1e-6), c(0, 'int32'), c(0.01), c(0, 'int32'), "
     "out_dtype='int8')", "99:int32:-2000000:2000000")  # fmt: skip
case("qnn.requantize-up", f"{Q}requantize(a, c(9.0), c(0, 'int32'), c(0.7), c(0, 'int32'), "
     "out_dtype='int32')", "99:int32:-200:200")  # fmt: skip
case("qnn.requantize-exact", f"{Q}requantize(a, c(0.5), c(0, 'int32'), c(1.0), c(0, 'int32'), "
     "out_dtype='int8')", "99:int32:-250:250")  # fmt: skip
case("qnn.requantize-nearest-exact", f"{Q}requantize(a, c(0.5), c(0, 'int32'), c(1.0), c(0, 'int32'), "
     "rounding='TONEAREST', out_dtype='int8')", "99:int32:-250:250")  # fmt: skip
case("qnn.requantize-out-axis", f"{Q}requantize(a, c([0.3, 0.6, 1.9]), c(4, 'int32'), c(0.6), "
     "c(3, 'int32'), axis=-1, out_dtype='int8')", "33,3:int32:-300:300")  # fmt: skip
for _op in "add mul subtract".split():
    case(f"qnn.{_op}-same", f"{Q}{_op}(a, b, {S}, {S}, {S})", "40:uint8:0:255", "40:uint8:0:255")
    case(f"qnn.{_op}-broadcast", f"{Q}{_op}(a, b, {S}, c(0.02), c(-7, 'int32'), c(0.2), c(1, 'int32'))",
         "3,4:int8:-128:127", "4:int8:-128:127")  # fmt: skip
    case(f"qnn.{_op}-int32", f"{Q}{_op}(a, b, {S}, c(0.02), c(-7, 'int32'), c(0.2), c(1, 'int32'))",
         "9:int32:-999:999", "9:int32:-999:999")  # fmt: skip
case("qnn.concatenate-same", f"{Q}concatenate((a, b), (c(0.05), c(0.05)), (c(3, 'int32'), c(3, 'int32')), "
     f"{S}, 0)", "2,3:int8:-128:127", "1,3:int8:-128:127")  # fmt: skip
case("qnn.conv2d-channels", f"{Q}conv2d(a, b, c(3, 'int32'), c(0, 'int32'), c(0.1), "
     "c([0.2, 0.3, 0.4, 0.5]), (3, 3), 4, padding=(1, 1))", "1,3,6,6:uint8:0:255",
     "4,3,3,3:int8:-128:127")  # fmt: skip
case("qnn.conv2d-nhwc", f"{Q}conv2d(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "strides=(2, 2), data_layout='NHWC', kernel_layout='HWIO')", "1,7,6,3:uint8:0:255",
     "3,3,3,4:uint8:0:255")  # fmt: skip
case("qnn.conv2d-nhwc-depthwise", f"{Q}conv2d(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), (3, 3), "
     "3, padding=(1, 1), groups=3, data_layout='NHWC', kernel_layout='HWOI')", "1,6,6,3:uint8:0:255",
     "3,3,3,1:uint8:0:255")  # fmt: skip
case("qnn.conv2d-dilated", f"{Q}conv2d(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "padding=(2, 2), dilation=(2, 2))", "1,3,6,6:uint8:0:255", "4,3,3,3:uint8:0:255")  # fmt: skip
case("qnn.conv2d-groups", f"{Q}conv2d(a, b, c(3, 'int32'), c(0, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "groups=2)", "1,4,6,6:uint8:0:255", "4,2,3,3:int8:-128:127")  # fmt: skip
case("qnn.conv2d-zero-axis", f"{Q}conv2d(a, b, c(3, 'int32'), c([2, 1, 0, 5], 'int32'), c(0.1), "
     "c([0.2, 0.2, 0.3, 0.4]), (1, 1), 4)", "1,3,4,4:uint8:0:255", "4,3,1,1:uint8:0:255")  # fmt: skip
case("qnn.conv2d_transpose-padded", f"{Q}conv2d_transpose(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), "
     "c(0.2), strides=(2, 2), padding=(1, 1), kernel_size=(3, 3), channels=4, out_dtype='int32')",
     "1,3,4,4:int8:-128:127", "3,4,3,3:int8:-128:127")  # fmt: skip
case("qnn.dense-channels", f"{Q}dense(a, b, c(3, 'int32'), c(0, 'int32'), c(0.1), "
     "c([0.2, 0.3, 0.4, 0.5]), 4)", "2,9:int8:-128:127", "4,9:int8:-128:127")  # fmt: skip
case("qnn.dense-uint8", f"{Q}dense(a, b, c(130, 'int32'), c(120, 'int32'), c(0.1), c(0.2), 4)",
     "2,9:uint8:0:255", "4,9:uint8:0:255")  # fmt: skip
case("qnn.conv2d-deep", f"{Q}conv2d(a, b, c(121, 'int32'), c(139, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "padding=(1, 1))", "1,160,4,3:uint8:0:255", "4,160,3,3:uint8:0:255")  # fmt: skip
case("qnn.conv2d-deep-nhwc", f"{Q}conv2d(a, b, c(-5, 'int32'), c(7, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "data_layout='NHWC', kernel_layout='HWIO')", "1,4,3,160:int8:-128:127",
     "3,3,160,4:int8:-128:127")  # fmt: skip
case("qnn.conv2d_transpose-deep", f"{Q}conv2d_transpose(a, b, c(121, 'int32'), c(139, 'int32'), c(0.1), "
     "c(0.2), strides=(2, 2), padding=(1, 1), kernel_size=(3, 3), channels=4, out_dtype='int32')",
     "1,160,3,3:uint8:0:255", "160,4,3,3:uint8:0:255")  # fmt: skip
case("conv2d-canonical", "R.nn.conv2d(R.cast(a, 'int16') - c(121, 'int16'), R.cast(b, 'int16') - "
     "c(139, 'int16'), padding=(1, 0), groups=2, out_dtype='int32')", "2,640,3,4:uint8:0:255",
     "4,320,3,2:uint8:0:255")  # fmt: skip
case("conv2d-int64", "R.nn.conv2d(a, b, out_dtype='int64')", "1,2,3,4:int32:-99999:99999",
     "3,2,2,2:int32:-99999:99999")  # fmt: skip
for _type, _zero, _limits in (("int8", -5, "-128:127"), ("uint8", 130, "0:255")):
    case(f"dense-canonical-{_type}", f"R.nn.dense(R.cast(a, 'int16') - c({_zero}, 'int16'), "
         "R.cast(b, 'int32') - c(3, 'int32'), out_dtype='int32')", f"2,1600:{_type}:{_limits}",
         f"4,1600:{_type}:{_limits}")  # fmt: skip
case("dense-wrapped", "R.nn.dense(R.cast(a, 'int8') - c(100, 'int8'), b, out_dtype='int32')",
     "2,1600:int32:-128:127", "4,1600:int8:-128:127")  # fmt: skip
case("qnn.batch_matmul-zero", f"{Q}batch_matmul(a, b, c(0, 'int32'), c(0, 'int32'), c(0.1), c(0.2))",
     "2,3,9:int8:-128:127", "2,4,9:int8:-128:127")  # fmt: skip
case("qnn.avg_pool2d-int8", f"{Q}avg_pool2d(a, {S}, {S}, (3, 2), (2, 1), (0, 0), (1, 1), False, False, "
     "'NCHW')", "1,2,6,5:int8:-128:127")  # fmt: skip
case("qnn.avg_pool2d-nhwc", f"{Q}avg_pool2d(a, {S}, c(0.07), c(5, 'int32'), (2, 2), (2, 2), (0, 0), "
     "(1, 1), False, False, 'NHWC')", "1,6,4,2:uint8:0:255")  # fmt: skip
case("qnn.softmax-last", f"{Q}softmax(a, c(0.1), c(-3, 'int32'), c(0.00390625), c(-128, 'int32'))",
     "2,3,9:int8:-128:127")  # fmt: skip
for _code, _kind in ((0, "off"), (1, "int8"), (2, "uint8"), (3, "int32")):
    case(f"qnn.simulated_quantize-{_kind}",
         f"{Q}simulated_quantize(a, c(0.05), c(3, 'int32'), out_dtype=c({_code}, 'int32'))",
         "99:float32:-9:9")  # fmt: skip
    case(f"qnn.simulated_dequantize-{_kind}",
         f"{Q}simulated_dequantize(R.round(a), c(0.05), c(3, 'int32'), in_dtype=c({_code}, 'int32'))",
         "99:float32:-99:99")  # fmt: skip
case("qnn.simulated_quantize-axis", f"{Q}simulated_quantize(a, c([0.05, 0.1]), c([3, 4], 'int32'), 1, "
     "c(1, 'int32'))", "9,2:float32:-9:9")  # fmt: skip
case("fixed_point_multiply_per_axis", "R.op._make.fixed_point_multiply_per_axis(a, "
     "c([1288490189, 1073741824, 2000000000], 'int32'), c([0, 2, 0], 'int32'), c([3, 0, 0], 'int32'), "
     "True, True, (1,))", "9,3:int32:-5000:5000")  # fmt: skip
for _left in (True, False):
    for _right in (True, False):
        case(f"fixed_point_multiply_per_axis-{_left}-{_right}",
             "R.op._make.fixed_point_multiply_per_axis(a, c([1288490189, 1073741824, 2000000000], "
             "'int32'), c([0, 2, 1], 'int32'), c([3, 0, 2], 'int32'), "
             f"{_left}, {_right}, (1,))", "9,3:int32:-5000:5000")  # fmt: skip
case("qnn.contrib_dense_pack", f"{Q}op.contrib_dense_pack(a, b, c(3, 'int32'), c(0, 'int32'), c(0.1), "
     "c(0.2), 'NC32n4c', None, 'int32')", "2,8:uint8:0:255", "1,2,32,4:int8:-128:127",
     oracle=f"{Q}dense(a, R.reshape(R.transpose(b, (0, 2, 1, 3)), (32, 8)), c(3, 'int32'), "
     "c(0, 'int32'), c(0.1), c(0.2), 32)")  # fmt: skip
