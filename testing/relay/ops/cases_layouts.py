"""Convolutions, pools and products in every layout, type and grouping."""

from __future__ import annotations

from .cases import case

P = "padding=1"
# Convolutions: (name, attributes, x, w)
case("conv1d-f16", "R.nn.conv1d(a, b)", "1,3,9:float16", "4,3,3:float16")
case("conv2d-f16", f"R.nn.conv2d(a, b, {P})", "1,3,6,6:float16", "4,3,3,3:float16")
case("conv2d-groups", f"R.nn.conv2d(a, b, groups=2, {P})", "2,4,6,7", "6,2,3,3")
case("conv2d-depthwise", f"R.nn.conv2d(a, b, groups=4, {P})", "2,4,6,7", "4,1,3,3")
case("conv2d-hwcn", "R.nn.conv2d(a, b, data_layout='HWCN', kernel_layout='HWIO')", "6,7,3,2",
     "3,3,3,4")  # fmt: skip
case("conv2d-nhwc-oihw", "R.nn.conv2d(R.layout_transform(a, 'NHWC', 'NCHW'), b, channels=4, "
     "kernel_size=(3, 2))", "2,6,7,3", "4,3,3,2")  # fmt: skip
case("conv2d-nhwc-groups", "R.nn.conv2d(a, b, groups=2, data_layout='NHWC', kernel_layout='HWIO', "
     "channels=6, kernel_size=(3, 3))", "2,6,7,4", "3,3,2,6")  # fmt: skip
case("conv2d-hwoi-one", "R.nn.conv2d(a, b, groups=4, channels=4, kernel_size=(3, 3), "
     "data_layout='NHWC', kernel_layout='HWOI', padding=(1, 1))", "2,6,7,4", "3,3,4,1")  # fmt: skip
case("conv2d-nhwc-strides", "R.nn.conv2d(a, b, strides=(2, 1), padding=(1, 0, 1, 2), dilation=(1, 2), "
     "data_layout='NHWC', kernel_layout='HWIO')", "2,9,9,3", "3,3,3,4")  # fmt: skip
case("conv2d-nhwc-int8", "R.nn.conv2d(a, b, data_layout='NHWC', kernel_layout='HWIO', "
     "out_dtype='int32')", "1,5,6,3:int8:-128:127", "3,3,3,4:int8:-128:127")  # fmt: skip
case("conv2d-u8-i8", "R.nn.conv2d(a, b, out_dtype='int32')", "1,3,5,5:uint8:0:255",
     "4,3,3,3:int8:-128:127")  # fmt: skip
case("conv2d-int32", "R.nn.conv2d(a, b)", "1,3,5,5:int32:-999:999", "4,3,3,3:int32:-999:999")
case("contrib_conv2d_NCHWc", "R.nn.contrib_conv2d_nchwc(a, b, padding=(1, 1), channels=8, "
     "kernel_size=(3, 3), data_layout='NCHW4c', kernel_layout='OIHW4i4o')", "1,2,6,7,4",
     "2,2,3,3,4,4")  # fmt: skip
case("contrib_conv2d_NCHWc-out", "R.nn.contrib_conv2d_nchwc(a, b, strides=(2, 2), channels=8, "
     "kernel_size=(3, 3), data_layout='NCHW4c', kernel_layout='OIHW4i8o', out_layout='NCHW8c')",
     "1,2,6,7,4", "1,2,3,3,4,8")  # fmt: skip
case("contrib_depthwise_conv2d_NCHWc", "R.nn.contrib_depthwise_conv2d_nchwc(a, b, padding=(1, 1), "
     "channels=8, groups=8, kernel_size=(3, 3), data_layout='NCHW4c', kernel_layout='OIHW1i4o')",
     "1,2,6,7,4", "2,1,3,3,1,4")  # fmt: skip
# Kernels TVM transforms for schedules of other processors; here it runs the plain ones
for _tile in (4, 2):
    _weight = f"R.nn.contrib_conv2d_winograd_weight_transform(b, {_tile})"
    case(f"winograd-{_tile}", "R.nn.contrib_conv2d_winograd_without_weight_transform(a, "
         f"{_weight}, {_tile}, channels=4, kernel_size=(3, 3), padding=(1, 1))", "1,3,8,8",
         "4,3,3,3", oracle="R.nn.conv2d(a, b, padding=1)")  # fmt: skip
case("winograd-3d", "R.nn.contrib_conv3d_winograd_without_weight_transform(a, "
     "R.nn.contrib_conv3d_winograd_weight_transform(b, 2), 2, channels=4, kernel_size=(3, 3, 3), "
     "padding=(1, 1, 1))", "1,3,8,8,4", "4,3,3,3,3",
     oracle="R.nn.conv3d(a, b, padding=1)")  # fmt: skip
case("gemm", "R.nn.contrib_conv2d_gemm_without_weight_transform(a, "
     "R.nn.contrib_conv2d_gemm_weight_transform(b, 4, 16), channels=4, kernel_size=(3, 3), "
     "padding=(1, 1), data_layout='NHWC', kernel_layout='HWIO')", "1,8,8,3", "3,3,3,4",
     oracle="R.nn.conv2d(a, b, padding=1, data_layout='NHWC', kernel_layout='HWIO')")  # fmt: skip
case("conv3d-groups", "R.nn.conv3d(a, b, groups=2, padding=(1, 0, 1), dilation=(1, 2, 1))",
     "1,4,5,6,5", "6,2,3,2,3")  # fmt: skip
case("conv3d-depthwise", f"R.nn.conv3d(a, b, groups=3, {P})", "1,3,4,5,6", "3,1,3,3,3")
case("conv3d-ndhwc-strides", "R.nn.conv3d(a, b, data_layout='NDHWC', kernel_layout='DHWIO', "
     "strides=(2, 1, 2), padding=(1, 1, 1, 0, 0, 0))", "2,5,6,7,2", "3,3,3,2,3")  # fmt: skip
case("conv1d_transpose-plain", "R.nn.conv1d_transpose(a, b)", "2,3,6", "3,4,3")
case("conv1d_transpose-ow", "R.nn.conv1d_transpose(a, b, strides=(3,), padding=(0, 1), "
     "output_padding=(2,))", "1,2,5", "2,3,4")  # fmt: skip
case("conv2d_transpose-strides", "R.nn.conv2d_transpose(a, b, strides=(2, 2), padding=(1, 1), "
     "output_padding=(1, 1))", "2,3,4,5", "3,2,3,3")  # fmt: skip
case("conv2d_transpose-depthwise", "R.nn.conv2d_transpose(a, b, groups=4, channels=4, "
     "kernel_size=(3, 3), strides=(2, 2))", "1,4,4,5", "4,1,3,3")  # fmt: skip
case("conv2d_transpose-nhwc-hwoi", "R.nn.conv2d_transpose(a, b, data_layout='NHWC', "
     "kernel_layout='HWOI', channels=2, kernel_size=(2, 3), strides=(2, 1))", "1,4,5,3",
     "2,3,2,3")  # fmt: skip
case("conv2d_transpose-f16", "R.nn.conv2d_transpose(a, b)", "1,3,4,5:float16", "3,2,3,3:float16")
case("conv2d_transpose-int8", "R.nn.conv2d_transpose(a, b, strides=(2, 2), padding=(1, 1), "
     "out_dtype='int32')", "1,3,4,5:int8:-128:127", "3,2,3,3:int8:-128:127")  # fmt: skip
case("conv3d_transpose-padding", "R.nn.conv3d_transpose(a, b, strides=(1, 2, 1), "
     "padding=(0, 1, 1), output_padding=(0, 1, 0))", "1,2,3,4,3", "2,2,3,3,3")  # fmt: skip
case("deformable-nhwc", "R.nn.deformable_conv2d(a, b, c_, padding=(1, 1), channels=3, "
     "kernel_size=(3, 3), data_layout='NHWC', kernel_layout='HWIO')", "1,5,6,4",
     "1,5,6,18:float32:-2:2", "3,3,4,3")  # fmt: skip

# Pools
for _n, _shape, _layout in ((1, "2,9,3", "NWC"), (2, "2,9,8,3", "NHWC"), (3, "1,7,6,5,2", "NDHWC")):
    for _kind in "avg max".split():
        case(f"{_kind}_pool{_n}d-{_layout}",
             f"R.nn.{_kind}_pool{_n}d(a, {(3,) * _n}, {(2,) * _n}, padding={(1,) * _n}, "
             f"layout='{_layout}')", _shape)  # fmt: skip
for _kind in "avg max".split():
    case(f"{_kind}_pool2d-packed", f"R.nn.{_kind}_pool2d(a, (2, 2), (2, 2), layout='NCHW4c')",
         "1,2,6,6,4")  # fmt: skip
    case(f"{_kind}_pool2d-f16", f"R.nn.{_kind}_pool2d(a, (3, 3), (2, 2))", "1,2,7,7:float16")
    case(f"{_kind}_pool2d-asymmetric", f"R.nn.{_kind}_pool2d(a, (3, 2), (1, 2), padding=(0, 1, 2, 0))",
         "1,2,7,7")  # fmt: skip
    case(f"global_{_kind}_pool2d", f"R.nn.global_{_kind}_pool2d(a)", "2,3,5,6")
    case(f"global_{_kind}_pool2d-packed", f"R.nn.global_{_kind}_pool2d(a, 'NCHW2c')", "2,3,5,6,2")
    case(f"global_{_kind}_pool2d-int32", f"R.nn.global_{_kind}_pool2d(a)", "2,3,5,6:int32:-99:99")
    case(f"adaptive_{_kind}_pool2d-one", f"R.nn.adaptive_{_kind}_pool2d(a, (1, 1))", "2,3,5,6")
    case(f"adaptive_{_kind}_pool2d-nhwc",
         f"R.nn.adaptive_{_kind}_pool2d(a, (3, 2), layout='NHWC')", "2,7,6,3")  # fmt: skip
    case(f"adaptive_{_kind}_pool2d-even", f"R.nn.adaptive_{_kind}_pool2d(a, (3, 2))", "2,3,6,8")
    case(f"adaptive_{_kind}_pool1d-one", f"R.nn.adaptive_{_kind}_pool1d(a, 1)", "2,3,7")
    case(f"adaptive_{_kind}_pool3d-one", f"R.nn.adaptive_{_kind}_pool3d(a, (1, 1, 1))", "1,2,3,4,5")
case("global_max_pool2d-nhwc", "R.nn.global_max_pool2d(a, layout='NHWC')", "1,5,6,3")
case(
    "max_pool2d-uint8", "R.nn.max_pool2d(a, (3, 3), (2, 2), padding=(1, 1))", "1,2,6,6:uint8:0:255"
)
case("max_pool2d-int32", "R.nn.max_pool2d(a, (3, 3), (2, 2))", "1,2,6,6:int32:-9999:9999")

# Layouts
case("layout-unpack", "R.layout_transform(a, 'NCHW4c', 'NCHW')", "1,2,3,4,4")
case("layout-repack", "R.layout_transform(a, 'NCHW4c', 'NCHW8c')", "1,2,3,4,4")
case("layout-plain", "R.layout_transform(a, 'NHWC', 'NCHW')", "2,3,4,5:int8:-9:9")
case("layout-kernel-back", "R.layout_transform(a, 'OIHW2i4o', 'HWIO')", "2,2,3,3,2,4")
case("layout-3d", "R.layout_transform(a, 'NCDHW', 'NDHWC')", "1,2,3,4,5")
for _mode in "DCR CRD".split():
    case(f"depth_to_space-{_mode}-nchw", f"R.nn.depth_to_space(a, 2, 'NCHW', '{_mode}')", "2,8,3,2")
case("space_to_depth-nchw", "R.nn.space_to_depth(a, 3, 'NCHW')", "2,2,6,9")
case("space_to_batch-1d", "R.nn.space_to_batch_nd(a, (3,), ((0, 1),))", "2,5,2")
case("batch_to_space-1d", "R.nn.batch_to_space_nd(a, (3,), ((0, 1),))", "6,2,2")
case("mirror_pad-int", "R.nn.mirror_pad(a, ((1, 2), (2, 0)), 'SYMMETRIC')", "3,4:int32:-9:9")
case("pad-reflect", "R.nn.pad(a, ((0, 0), (1, 2), (2, 1)), pad_mode='reflect')", "2,4,4")
for _t in "int8 uint8 int32 int64 float16 float64".split():
    _low = 0 if _t[0] == "u" else -9
    case(f"pad-{_t}", "R.nn.pad(a, ((1, 2), (0, 3)), pad_value=3)", f"2,3:{_t}:{_low}:9")

# Products
for _t in "float16 float64 int32".split():
    case(f"dense-{_t}", "R.nn.dense(a, b)", f"3,9:{_t}:-9:9", f"4,9:{_t}:-9:9")
case("dense-f16-f32", "R.nn.dense(a, b, out_dtype='float32')", "3,9:float16", "4,9:float16")
case("dense-u8-i8", "R.nn.dense(a, b, out_dtype='int32')", "3,9:uint8:0:255", "4,9:int8:-128:127")
for _a in (True, False):
    for _b in (True, False):
        case(f"batch_matmul-{_a}-{_b}",
             f"R.nn.batch_matmul(a, b, transpose_a={_a}, transpose_b={_b})",
             "2,4,3" if _a else "2,3,4", "2,5,4" if _b else "2,4,5")  # fmt: skip
        case(f"matmul-{_a}-{_b}", f"R.nn.matmul(a, b, transpose_a={_a}, transpose_b={_b})",
             "4,3" if _a else "3,4", "5,4" if _b else "4,5")  # fmt: skip
case("batch_matmul-one", "R.nn.batch_matmul(a, b)", "2,3,4", "1,5,4")
case("batch_matmul-int8", "R.nn.batch_matmul(a, b, out_dtype='int32')", "2,3,9:int8:-128:127",
     "2,4,9:int8:-128:127")  # fmt: skip
case("contrib_dense_pack", "R.nn.contrib_dense_pack(a, b, 'NC8n')", "3,9", "2,9,8")
case("bias_add-first", "R.nn.bias_add(a, b)", "2,3,4,4", "3")
case("bias_add-int", "R.nn.bias_add(a, b, axis=1)", "2,3,4:int32:-9:9", "3:int32:-9:9")
for _eq, _shapes in {
    "bij,bjk->bik": ("2,3,4", "2,4,5"), "ii->i": ("3,3",), "ij->ji": ("3,4",),
    "ij,ij->": ("3,4", "3,4"), "i,j->ij": ("3", "4"), "abc,cd->abd": ("2,3,4", "4,5"),
}.items():  # fmt: skip
    _names = "a, b"[: 3 * len(_shapes) - 2]
    case(f"einsum-{_eq.replace('->', '_').replace(',', '.')}",
         f"R.einsum(({_names},), '{_eq}')", *_shapes)  # fmt: skip
for _type in ("int8", "uint8", "int16", "int32", "int64"):
    _low = 0 if _type[0] == "u" else -100
    for _kind in ("avg", "max"):
        for _n, _shape in ((1, "2,3,7"), (2, "1,3,8,6"), (3, "1,2,5,4,4")):
            for _name, _sizes in (("parts", (3, 4, 2)), ("one", (1, 1, 1))):
                _op, _size = f"adaptive_{_kind}_pool{_n}d", _sizes[:_n]
                case(f"{_op}-{_type}-{_name}", f"R.nn.{_op}(a, {_size})",
                     f"{_shape}:{_type}:{_low}:100")  # fmt: skip
        case(f"adaptive_{_kind}_pool2d-{_type}-even", f"R.nn.adaptive_{_kind}_pool2d(a, (2, 3))",
             f"1,3,8,6:{_type}:{_low}:100")  # fmt: skip
    case(f"global_avg_pool2d-{_type}-large", "R.nn.global_avg_pool2d(a)",
         f"1,3,8,15:{_type}:80:100")  # fmt: skip
    case(f"mean-{_type}-large", "R.mean(a, axis=1)", f"3,90:{_type}:80:100")
for _layout, _shape in (("NCHW", "1,8,4,12"), ("NHWC", "1,4,3,8")):
    case(f"depth_to_space-cdr-{_layout}", f"R.nn.depth_to_space(a, 2, '{_layout}', 'CDR')", _shape)
