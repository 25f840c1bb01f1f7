"""Neural-network, image, vision and quantised operators, as ``cases.py`` has the others."""

from __future__ import annotations

from .cases import case

case("conv1d", "R.nn.conv1d(a, b, strides=2, padding=(1, 2), dilation=2)", "1,3,12", "4,3,3")
case("conv1d-nwc", "R.nn.conv1d(a, b, data_layout='NWC', kernel_layout='WIO')", "1,12,3", "3,3,4")
case("conv2d-pads", "R.nn.conv2d(a, b, padding=(1, 0, 2, 3), strides=(1, 2))", "1,3,7,8", "4,3,3,3")
case("conv2d-out-layout", "R.nn.conv2d(a, b, data_layout='NHWC', kernel_layout='HWIO', padding=1)",
     "1,7,8,3", "3,3,3,4")  # fmt: skip
case("conv2d-hwoi", "R.nn.conv2d(a, b, groups=3, channels=6, kernel_size=(3, 3), data_layout='NHWC', "
     "kernel_layout='HWOI')", "1,7,8,3", "3,3,3,2")  # fmt: skip
case(
    "conv2d-mult",
    "R.nn.conv2d(a, b, groups=3, channels=6, kernel_size=(3, 3))",
    "1,3,7,8",
    "3,2,3,3",
)
case("conv2d-int8", "R.nn.conv2d(a, b, out_dtype='int32', padding=1)", "1,3,5,5:int8:-128:127",
     "4,3,3,3:int8:-128:127")  # fmt: skip
case("conv2d-int8-large", "R.nn.conv2d(a, b, out_dtype='int32', strides=(2, 2))",
     "1,256,6,6:int8:-128:127", "2,256,3,3:int8:-128:127")  # fmt: skip
case("conv2d-int16", "R.nn.conv2d(a, b, out_dtype='int32', groups=2, padding=(1, 2), dilation=(2, 1))",
     "2,4,7,6:int16:-999:999", "6,2,3,2:int16:-999:999")  # fmt: skip
case(
    "conv2d-f16-f32", "R.nn.conv2d(a, b, out_dtype='float32')", "1,3,5,5:float16", "4,3,3,3:float16"
)
case("conv3d", "R.nn.conv3d(a, b, padding=1, strides=2)", "1,2,5,6,7", "3,2,3,3,3")
case("conv3d-ndhwc", "R.nn.conv3d(a, b, data_layout='NDHWC', kernel_layout='DHWIO')", "1,4,5,6,2",
     "3,3,3,2,3")  # fmt: skip
case("conv1d_transpose", "R.nn.conv1d_transpose(a, b, strides=(2,), padding=(1, 0), output_padding=(1,))",
     "1,3,6", "3,4,3")  # fmt: skip
case("conv2d_transpose", "R.nn.conv2d_transpose(a, b, strides=(2, 3), padding=(1, 0, 0, 2), "
     "output_padding=(1, 0))", "1,3,4,5", "3,4,3,3")  # fmt: skip
case("conv2d_transpose-oihw", "R.nn.conv2d_transpose(a, b, kernel_layout='OIHW', channels=4, "
     "kernel_size=(3, 3))", "1,3,4,5", "4,3,3,3")  # fmt: skip
case("conv2d_transpose-groups", "R.nn.conv2d_transpose(a, b, groups=2, channels=6, kernel_size=(3, 3))",
     "1,4,4,5", "4,3,3,3")  # fmt: skip
case("conv2d_transpose-nhwc", "R.nn.conv2d_transpose(a, b, data_layout='NHWC', kernel_layout='HWOI', "
     "channels=4, kernel_size=(3, 3))", "1,4,5,3", "3,3,4,3")  # fmt: skip
case(
    "conv3d_transpose",
    "R.nn.conv3d_transpose(a, b, strides=2, padding=1)",
    "1,2,3,4,3",
    "2,3,3,3,3",
)
case("dense-int8", "R.nn.dense(a, b, out_dtype='int32')", "3,9:int8:-128:127", "4,9:int8:-128:127")
case("matmul-tt", "R.nn.matmul(a, b, transpose_a=True, transpose_b=True)", "4,3", "5,4")
case("batch_matmul", "R.nn.batch_matmul(a, b)", "2,3,4", "2,5,4")
case("bias_add-last", "R.nn.bias_add(a, b, axis=-1)", "2,3,4", "4")
case("deformable", "R.nn.deformable_conv2d(a, b, c_, padding=(1, 1), deformable_groups=2, channels=3, "
     "kernel_size=(3, 3))", "2,4,5,6", "2,36,5,6:float32:-2:2", "3,4,3,3")  # fmt: skip
case(
    "correlation", "R.nn.correlation(a, b, 3, 2, 2, 1, (3, 3), True, 'NCHW')", "1,3,8,9", "1,3,8,9"
)
case(
    "correlation-sub",
    "R.nn.correlation(a, b, 1, 4, 1, 2, (4, 4), False, 'NCHW')",
    "1,3,6,7",
    "1,3,6,7",
)

for _n, _shape in ((1, "1,2,9"), (2, "1,2,9,8"), (3, "1,2,7,6,5")):
    for _kind in "avg max".split():
        _more = ", count_include_pad={}" if _kind == "avg" else ""
        _op = f"R.nn.{_kind}_pool{_n}d(a, pool_size={(3,) * _n}, strides={(2,) * _n}"
        case(f"{_kind}_pool{_n}d-ceil", f"{_op}, padding={(1,) * _n}, ceil_mode=True)", _shape)
        case(f"{_kind}_pool{_n}d-pads", f"{_op}, padding={(0,) * _n + (1,) * _n})", _shape)
        if _kind == "avg":
            for _up in (False, True):
                case(f"avg_pool{_n}d-include-{_up}",
                     f"{_op}, padding={(1,) * _n}, ceil_mode={_up}, count_include_pad=True)",
                     _shape)  # fmt: skip
        case(f"adaptive_{_kind}_pool{_n}d",
             f"R.nn.adaptive_{_kind}_pool{_n}d(a, {(4, 3, 2)[:_n]})", _shape)  # fmt: skip
case(
    "max_pool2d-dilation", "R.nn.max_pool2d(a, (2, 3), dilation=(2, 1), padding=(1, 1))", "1,2,7,7"
)
case("avg_pool2d-dilation", "R.nn.avg_pool2d(a, (2, 3), dilation=(2, 1))", "1,2,7,7")
case("max_pool2d-int8", "R.nn.max_pool2d(a, (2, 2), (2, 2))", "1,2,6,6:int8:-128:127")
case(
    "avg_pool2d-int32", "R.nn.avg_pool2d(a, (2, 2), (2, 2), padding=(1, 1))", "1,2,6,6:int32:-99:99"
)
case("global_avg_pool2d-nhwc", "R.nn.global_avg_pool2d(a, layout='NHWC')", "1,5,6,3")

case("batch_norm-f", "R.nn.batch_norm(a, b, c_, d, e, axis=2, epsilon=0.01)[0]", "2,3,4,5", "4", "4",
     "4", "4:float32:0.5:2")  # fmt: skip
case("layer_norm-axis0", "R.nn.layer_norm(a, b, c_, axis=1)", "2,3,4", "3", "3")
case("layer_norm-plain", "R.nn.layer_norm(a, b, c_, center=False, scale=False)", "2,3,4", "4", "4")
case("instance_norm-last", "R.nn.instance_norm(a, b, c_, axis=2)", "2,3,4", "4", "4")
case("group_norm", "R.nn.group_norm(a, b, c_, 2)", "2,6,4", "6", "6")
case("group_norm-last", "R.nn.group_norm(a, b, c_, 2, axis=2)", "2,4,6", "6", "6")
case("l2_normalize", "R.nn.l2_normalize(a, 0.5, axis=[1])", "2,6,4")
case("lrn", "R.nn.lrn(a, 3, 1, 1.5, 0.3, 0.6)", "2,6,4,4")
case("prelu", "R.nn.prelu(a, b, axis=2)", "2,6,4,4", "4")
case("leaky", "R.nn.leaky_relu(a, 0.2)", "2,6")
case("softmax", "R.nn.softmax(a, axis=1)", "2,6,3")
case("log_softmax", "R.nn.log_softmax(a, axis=1)", "2,6,3")
case("dropout", "R.nn.dropout(a, 0.4)", "2,6,3")
case("cross_entropy", "R.nn.cross_entropy(a, b)", "2,6:float32:0.1:1", "2,6:float32:0.1:1")
case(
    "cross_entropy_with_logits", "R.nn.cross_entropy_with_logits(a, b)", "2,6", "2,6:float32:0.1:1"
)
case("nll_loss", "R.nn.nll_loss(a, b, c_, 'sum', 1)", "5,4", "5:int32:0:3", "4:float32:0.1:1")
case("fast_softmax", "R.nn.fast_softmax(a)", "2,6")
case("stft", "R.stft(a, 8, 3, 6, b, True, False)", "2,40", "6")
case("dft", "R.dft(a, b, True).astuple()", "3,8", "3,8")
case("sparse_dense", "R.nn.sparse_dense(a, (c([1.0, 2.0, 3.0]), c([0, 2, 1], 'int32'), "
     "c([0, 2, 2, 3], 'int32')))", "2,3")  # fmt: skip

MODES = "half_pixel align_corners asymmetric pytorch_half_pixel".split()
for _method in "nearest_neighbor linear cubic".split():
    for _mode in MODES:
        for _size in ("(7, 11)", "(3, 2)", "(10, 12)"):
            case(f"resize2d-{_method}-{_mode}-{_size}",
                 f"R.image.resize2d(a, {_size}, None, 'NCHW', '{_method}', '{_mode}')",
                 "1,2,5,6")  # fmt: skip
for _rounding in "round round_prefer_floor round_prefer_ceil floor ceil".split():
    for _mode in [*MODES, "tf_half_pixel_for_nn"]:
        case(f"resize2d-{_rounding}-{_mode}",
             f"R.image.resize2d(a, (7, 3), None, 'NCHW', 'nearest_neighbor', '{_mode}', '{_rounding}')",
             "1,2,5,6")  # fmt: skip
case("resize2d-roi", "R.image.resize2d(a, (7, 3), (0.1, -0.2, 0.9, 1.3), 'NCHW', 'linear', "
     "'tf_crop_and_resize', extrapolation_value=2.0)", "1,2,5,6")  # fmt: skip
case("resize2d-exclude", "R.image.resize2d(a, (7, 9), None, 'NCHW', 'cubic', 'half_pixel', "
     "cubic_alpha=-0.75, cubic_exclude=1)", "1,2,5,6")  # fmt: skip
case("resize2d-uint8", "R.image.resize2d(a, (7, 9), None, 'NHWC', 'linear')", "1,5,6,2:uint8:0:255")
for _method in "nearest_neighbor linear cubic".split():
    case(f"resize1d-{_method}", f"R.image.resize1d(a, (7,), None, 'NCW', '{_method}')", "1,2,5")
    case(
        f"resize3d-{_method}",
        f"R.image.resize3d(a, (7, 4, 3), None, 'NCDHW', '{_method}')",
        "1,2,5,4,3",
    )
case(
    "upsampling-bilinear",
    "R.nn.upsampling(a, 2, 1.5, method='bilinear', align_corners=True)",
    "1,2,4,6",
)
case("upsampling-bicubic", "R.nn.upsampling(a, 2, 3, method='bicubic')", "1,2,4,6")
case("upsampling3d", "R.nn.upsampling3d(a, 2, 1.5, 1, method='trilinear')", "1,2,4,6,3")
case("upsampling3d-near", "R.nn.upsampling3d(a, 2, 1.5, 1)", "1,2,4,6,3")
for _method in "bilinear nearest bicubic".split():
    for _pad in "zeros border reflection".split():
        for _align in (True, False):
            case(f"grid_sample-{_method}-{_pad}-{_align}",
                 f"R.image.grid_sample(a, b, '{_method}', 'NCHW', '{_pad}', {_align})", "2,2,5,6",
                 "2,2,3,4:float32:-1.3:1.3", slow=_method == "bicubic")  # fmt: skip
case("grid_sample-3d", "R.image.grid_sample(a, b, 'bilinear', 'NCDHW')", "1,2,4,5,6",
     "1,3,3,4,2:float32:-1.2:1.2")  # fmt: skip
case("affine_grid", "R.image.affine_grid(a, (4, 5))", "2,2,3")
case("crop_and_resize", "R.image.crop_and_resize(a, c([[0.1, 0.2, 0.8, 1.2], [0.5, 0.9, 0.1, 0.0]]), "
     "c([1, 0], 'int32'), (3, 4), 'NCHW', 'bilinear', 7.0)", "2,3,6,7")  # fmt: skip
case("crop_and_resize-near", "R.image.crop_and_resize(a, c([[0.1, 0.2, 0.8, 1.2], [0.5, 0.9, 0.1, 0.0]]),"
     " c([1, 0], 'int32'), (3, 4), 'NHWC', 'nearest_neighbor')", "2,6,7,3")  # fmt: skip
case("dilation2d", "R.image.dilation2d(a, b, (2, 1), (1, 1), (1, 2))", "1,2,6,7", "2,3,2")
case("dilation2d-nhwc", "R.image.dilation2d(a, b, data_layout='NHWC', kernel_layout='HWI')", "1,6,7,2",
     "3,2,2")  # fmt: skip

ROIS = "c([[0.0, 1.0, 2.0, 6.0, 7.0], [1.0, 0.0, 0.0, 15.0, 9.0], [0.0, 5.0, 5.0, 5.2, 5.1]])"
for _ratio in (-1, 2):
    case(f"roi_align-{_ratio}",
         f"R.vision.roi_align(a, {ROIS}, (3, 2), 0.5, {_ratio})", "2,2,8,8")  # fmt: skip
case("roi_align-max", f"R.vision.roi_align(a, {ROIS}, (3, 2), 0.5, 2, mode='max')", "2,2,8,8")
case("roi_align-nhwc", f"R.vision.roi_align(a, {ROIS}, (3, 2), 0.5, 2, layout='NHWC')", "2,8,8,2")
case("roi_pool", f"R.vision.roi_pool(a, {ROIS}, (3, 2), 0.5)", "2,2,8,8")
case("yolo_reorg", "R.vision.yolo_reorg(a, 2)", "1,8,4,6")
case(
    "multibox_prior",
    "R.vision.multibox_prior(a, (0.4, 0.2), (1.0, 2.0, 0.5), clip=True)",
    "1,2,3,4",
)
case("multibox_prior-steps", "R.vision.multibox_prior(a, (0.4,), (1.0, 2.0), (0.3, 0.2), (0.1, 0.7))",
     "1,2,3,4")  # fmt: skip
case(
    "get_valid_counts", "R.vision.get_valid_counts(a, 0.3, 0, 1).astuple()", "2,7,6:float32:-0.5:1"
)
BOXES = "R.concatenate([R.floor(a * c(2.0)), b, c_, c_ + d], 2)"
for _force in (True, False):
    for _keep in (True, False):
        case(f"nms-{_force}-{_keep}",
             f"R.vision.non_max_suppression({BOXES}, c([8, 5], 'int32'), c([[*range(8)]] * 2, 'int32'), "
             f"-1, 0.4, {_force}, -1, 2, 1, 0, {_keep}, {not _keep})"
             + (".astuple()" if _keep else ""),
             "2,8,1:float32:0:1", "2,8,1:float32:-0.2:1", "2,8,2:float32:0:1",
             "2,8,2:float32:0.5:1")  # fmt: skip
case("nms-top", f"R.vision.non_max_suppression({BOXES}, c([8, 5], 'int32'), c([[*range(8)]] * 2, "
     "'int32'), 2, 0.6, True, 6, 2, 1, 0, False, False)", "2,8,1:float32:0:1", "2,8,1:float32:-0.2:1",
     "2,8,2:float32:0:1", "2,8,2:float32:0.5:1")  # fmt: skip
case("nms-no-id", "R.vision.non_max_suppression(R.concatenate([b, c_, c_ + d], 2), c([8, 5], 'int32'), "
     "c([[*range(8)]] * 2, 'int32'), -1, 0.3, False, -1, 1, 0, -1, False, False)",
     "1", "2,8,1:float32:-0.2:1", "2,8,2:float32:0:1", "2,8,2:float32:0.5:1")  # fmt: skip

S = "c(0.05), c(3, 'int32')"
T = "c(0.07), c(5, 'int32')"
Q = "R.qnn."
case("qnn.quantize", f"{Q}quantize(a, c(0.5), c(3, 'int32'), out_dtype='int8')", "9:halves")
case("qnn.quantize-axis", f"{Q}quantize(a, c([0.1, 0.2, 0.3]), c([1, 2, 3], 'int32'), 1, 'uint8')",
     "2,3,4:float32:-9:40")  # fmt: skip
case("qnn.dequantize-axis", f"{Q}dequantize(a, c([0.1, 0.2, 0.3]), c([1, 2, 3], 'int32'), 1)",
     "2,3,4:int8:-128:127")  # fmt: skip
case("qnn.dequantize-int32", f"{Q}dequantize(a, c(0.1), c(7, 'int32'))", "2,3,4:int32:-9999:9999")
for _rounding in "UPWARD TONEAREST".split():
    for _compute in "int64 float32".split():
        case(f"qnn.requantize-{_rounding}-{_compute}",
             f"{Q}requantize(a, c(0.37), c(2, 'int32'), c(0.74), c(-3, 'int32'), "
             f"rounding='{_rounding}', compute_dtype='{_compute}', out_dtype='int8')",
             "99:int32:-300:300")  # fmt: skip
    case(f"qnn.requantize-axis-{_rounding}",
         f"{Q}requantize(a, c([0.3, 0.6, 1.9]), c(0, 'int32'), c(0.6), c(3, 'int32'), axis=1, "
         f"rounding='{_rounding}', out_dtype='uint8')", "33,3:int32:-300:300")  # fmt: skip
case("qnn.requantize-same", f"{Q}requantize(a, {S}, c(0.05), c(9, 'int32'), out_dtype='uint8')",
     "40:int8:-128:127")  # fmt: skip
for _op in "add subtract mul".split():
    case(f"qnn.{_op}", f"{Q}{_op}(a, b, {S}, {T}, c(0.11), c(9, 'int32'))", "40:uint8:0:255",
         "40:uint8:0:255")  # fmt: skip
    case(
        f"qnn.{_op}-int8", f"{Q}{_op}(a, b, {S}, {T}, {S})", "40:int8:-128:127", "40:int8:-128:127"
    )
case("qnn.concatenate", f"{Q}concatenate((a, b), (c(0.05), c(0.07)), (c(3, 'int32'), c(5, 'int32')), "
     f"{S}, 1)", "2,3:uint8:0:255", "2,4:uint8:0:255")  # fmt: skip
for _op in "tanh exp sqrt rsqrt erf sigmoid hardswish log abs".split():
    for _t, _low, _high in (("uint8", 0, 255), ("int8", -128, 127)):
        case(
            f"qnn.{_op}-{_t}",
            f"{Q}{_op}(a, {S}, c(0.02), c(5, 'int32'))",
            f"256:{_t}:{_low}:{_high}",
        )
case("qnn.leaky_relu", f"{Q}leaky_relu(a, 0.3, {S}, {T})", "256:uint8:0:255")
case(
    "qnn.leaky_relu-int8",
    f"{Q}leaky_relu(a, 0.01, {S}, c(0.04), c(-9, 'int32'))",
    "256:int8:-128:127",
)
case("qnn.softmax", f"{Q}softmax(a, c(0.06), c(3, 'int32'), c(0.00390625), c(-128, 'int32'), axis=1)",
     "4,9:int8:-128:127")  # fmt: skip
case("qnn.avg_pool2d", f"{Q}avg_pool2d(a, {S}, {T}, (2, 2), (1, 1), (1, 1), (1, 1, 1, 1), False, False, "
     "'NCHW')", "1,2,5,5:uint8:0:255")  # fmt: skip
case("qnn.conv2d", f"{Q}conv2d(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), (3, 3), 4, "
     "padding=(1, 1))", "1,3,6,6:uint8:0:255", "4,3,3,3:uint8:0:255")  # fmt: skip
case("qnn.conv2d-wide", f"{Q}conv2d(a, c(w(4, 256, 3, 3), 'int8'), c(3, 'int32'), c(0, 'int32'), c(0.1), "
     "c(0.2), (3, 3), 4, padding=(1, 1))", "1,256,6,6:uint8:0:255")  # fmt: skip
case("qnn.conv2d-int8-zero", f"{Q}conv2d(a, c(w(4, 256, 3, 3), 'int8'), c(0, 'int32'), c(0, 'int32'), "
     "c(0.1), c(0.2), (3, 3), 4, padding=(1, 1))", "1,256,6,6:int8:-128:127")  # fmt: skip
case("qnn.conv2d-depthwise", f"{Q}conv2d(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), (3, 3), 3, "
     "groups=3)", "1,3,6,6:uint8:0:255", "3,1,3,3:uint8:0:255")  # fmt: skip
case("qnn.conv2d_transpose", f"{Q}conv2d_transpose(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), "
     "strides=(2, 2), kernel_size=(3, 3), channels=4, out_dtype='int32')", "1,3,4,4:uint8:0:255",
     "3,4,3,3:uint8:0:255")  # fmt: skip
case("qnn.dense", f"{Q}dense(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2), 4)", "2,9:uint8:0:255",
     "4,9:int8:-128:127")  # fmt: skip
case("qnn.batch_matmul", f"{Q}batch_matmul(a, b, c(3, 'int32'), c(2, 'int32'), c(0.1), c(0.2))",
     "2,3,9:int8:-128:127", "2,4,9:int8:-128:127")  # fmt: skip
