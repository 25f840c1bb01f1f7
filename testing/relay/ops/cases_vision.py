"""Boxes, regions and images beyond ``cases_nn.py``, and what TVM makes of a model for its machine."""

from __future__ import annotations

from .cases import case

BOXES = "R.concatenate([b, b + c_], 2)"
case("all_class_nms", f"R.vision.all_class_non_max_suppression({BOXES}, a, 3, 0.4, 0.3)"
     ".astuple()", "1,2,6:float32:0:1", "1,6,2:float32:0:1", "1,6,2:float32:0.3:1", rows=4)  # fmt: skip
case("all_class_nms-batch", f"R.vision.all_class_non_max_suppression({BOXES}, a, 2, 0.5, 0.2)"
     ".astuple()", "2,3,7:float32:0:1", "2,7,2:float32:0:1", "2,7,2:float32:0.3:1", rows=8)  # fmt: skip
case("all_class_nms-below", f"R.vision.all_class_non_max_suppression({BOXES}, a, 3, 0.4, -0.5)"
     ".astuple()", "1,2,6:float32:-1:1", "1,6,2:float32:0:1", "1,6,2:float32:0.3:1", rows=3)  # fmt: skip
for _clip in (True, False):
    for _keep in (True, False):
        case(f"multibox_transform_loc-{_clip}-{_keep}",
             "R.vision.multibox_transform_loc(a, b, R.concatenate([c_, c_ + d], 2), "
             f"{_clip}, 0.3, keep_background={_keep})", "2,3,6:float32:0:1",
             "2,24:float32:-1:1", "1,6,2:float32:0:0.7", "1,6,2:float32:0.1:0.6")  # fmt: skip
case("multibox_prior-square", "R.vision.multibox_prior(a, (0.5,), (1.0, 3.0))", "2,1,3,3")
case("get_valid_counts-no-id", "R.vision.get_valid_counts(a, 0.0, -1, 0).astuple()",
     "2,7,5:float32:-0.5:1")  # fmt: skip
case("yolo_reorg-3", "R.vision.yolo_reorg(a, 3)", "1,9,6,6")
ROIS = "c([[0.0, 1.0, 2.0, 6.0, 7.0], [1.0, 0.0, 0.0, 15.0, 9.0]])"
case("roi_align-square", f"R.vision.roi_align(a, {ROIS}, (2, 2), 1.0, 3)", "2,3,9,9")
case("roi_pool-scale", f"R.vision.roi_pool(a, {ROIS}, (2, 4), 0.25)", "2,2,6,7")
for _method in "nearest_neighbor linear cubic".split():
    case(f"resize2d-nhwc-{_method}", f"R.image.resize2d(a, (7, 9), None, 'NHWC', '{_method}')",
         "2,5,6,3")  # fmt: skip
    case(f"resize2d-f16-{_method}", f"R.image.resize2d(a, (7, 9), None, 'NCHW', '{_method}')",
         "1,2,5,6:float16")  # fmt: skip
    case(f"resize2d-out-{_method}", f"R.image.resize2d(a, (7, 9), None, 'NCHW', '{_method}', "
         "out_dtype='float32')", "1,2,5,6:uint8:0:255")  # fmt: skip
    case(f"resize1d-{_method}-align", f"R.image.resize1d(a, (9,), None, 'NWC', '{_method}', "
         "'align_corners')", "1,5,2")  # fmt: skip
for _method in "nearest_neighbor linear".split():
    case(f"resize3d-{_method}-asymmetric", f"R.image.resize3d(a, (7, 8, 3), None, 'NDHWC', '{_method}', "
         "'asymmetric')", "1,5,4,3,2")  # fmt: skip
for _method in "nearest_neighbor bilinear bicubic".split():
    case(f"upsampling-{_method}-3", f"R.nn.upsampling(a, 3, 2, method='{_method}')", "2,2,4,6")
    case(f"upsampling-{_method}-nhwc",
         f"R.nn.upsampling(a, 2, 2, 'NHWC', method='{_method}')", "1,4,6,2")  # fmt: skip
case("upsampling-nearest-large", "R.nn.upsampling(a, 3, 7)", "1,1,37,53")
case("upsampling-int8", "R.nn.upsampling(a, 2, 2)", "1,2,4,6:int8:-128:127")
case("grid_sample-small", "R.image.grid_sample(a, b)", "1,1,4,4", "1,2,2,2:float32:-1:1")
case("affine_grid-batch", "R.image.affine_grid(a, (2, 3))", "3,2,3")
case("dilation2d-strides", "R.image.dilation2d(a, b, (2, 2), (1, 0, 0, 1))", "2,3,8,7", "3,3,3")
case("crop_and_resize-one", "R.image.crop_and_resize(a, c([[0.0, 0.0, 1.0, 1.0]]), c([0], 'int32'), "
     "(5, 5), 'NHWC', 'bilinear', 0.0)", "1,6,7,2")  # fmt: skip
case("correlation-nearest", "R.nn.correlation(a, b, 3, 4, 2, 2, (4, 4), True, 'NCHW')", "1,2,10,9",
     "1,2,10,9")  # fmt: skip

for _iou, _post in ((False, 9), (True, 40)):  # one image: TVM reads behind the sizes of more
    case(f"proposal-{_iou}", "R.vision.proposal(a, b, c([[77.0, 90.0, 1.0]]), (2.0, 4.0), "
         f"(0.5, 1.0, 2.0), 16, 0.6, 60, {_post}, 12, {_iou})", "1,12,5,6:float32:0:1",
         "1,24,5,6:float32:-0.7:0.7")  # fmt: skip
case("proposal-all", "R.vision.proposal(a, b, c([[90.0, 70.0, 1.5]]), (4.0,), (1.0,), 16, 0.3, -1, 20, 40, "
     "False)", "1,2,5,6:float32:0:1", "1,4,5,6:float32:-0.7:0.7")  # fmt: skip
for _most, _total in ((3, 8), (6, 30)):
    case(f"regular_nms-{_most}", f"R.vision.regular_non_max_suppression({BOXES}, a, {_most}, {_total}, 3, "
         "0.3, 0.4).astuple()", "2,7,4:float32:0:1", "2,7,2:float32:0:1",
         "2,7,2:float32:0.3:1")  # fmt: skip
case("regular_nms-flat", "R.vision.regular_non_max_suppression(a, R.round(b * c(4.0)), 9, 6, 2, 0.2, "
     "2.0).astuple()", "1,7,4:float32:0:1", "1,7,2:float32:0:1")  # fmt: skip
case("vm.shape_of", "R.op.vm.shape_of(a)", "2,3", oracle="R.shape_of(a, 'int64')")
case("vm.reshape_tensor", "R.op.vm.reshape_tensor(a, c([3, 2], 'int64'), (3, 2))", "2,3",
     oracle="R.reshape(a, (3, 2))")  # fmt: skip
