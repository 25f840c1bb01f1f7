"""How older releases of TVM hold attributes in JSON, where that differs from TVM 0.17.

Sources: TVM_DECLARE_ATTRS in include/tvm/relay/attrs of each release. Attributes that changed
from a string in place to an object need no entry: an index is a number, and no such string is.
"""

from __future__ import annotations

from ..registry import PREFIX

Version = tuple[int, int]

# field → (the first release with today's kind, the kind before)
_EARLIER: dict[tuple[str, str], tuple[Version, str]] = {
    ("TopkAttrs", "k"): ((0, 7), "i"),
    ("NonMaximumSuppressionAttrs", "max_output_size"): ((0, 7), "i"),
    ("GetValidCountsAttrs", "score_threshold"): ((0, 8), "d"),
}

# fields and types that TVM 0.17 lacks, as ``registry.data`` has them
_RETIRED: dict[str, str] = {
    "AllocStorageAttrs": "device_id:i device_type:i",
    "Conv2DWinogradWeightTransformAttrs": "tile_size:i",
    "ConvGemmWeightTransformAttrs": "tile_rows:i tile_cols:i",
    "DequantizeAttrs": "input_zero_point:i input_scale:d",
    "DeviceCopyAttrs": "src_dev_type:i dst_dev_type:i",
    "NonMaximumSuppressionAttrs": "max_output_size:o iou_threshold:d",
    "OnDeviceAttrs": "device_type:i is_fixed:b",
    "PadAttrs": "pad_value:d",
    "QnnBinaryOpAttrs": "lhs_zero_point:i lhs_scale:d rhs_zero_point:i rhs_scale:d "
    "output_zero_point:i output_scale:d",
    "QnnConcatenateAttrs": "input_scales:o input_zero_points:o output_scale:d output_zero_point:i "
    "axis:i",
    "QnnConv2DAttrs": "input_zero_point:i kernel_zero_point:i input_scale:d kernel_scale:d "
    "strides:o padding:o dilation:o groups:i channels:o kernel_size:o data_layout:s "
    "kernel_layout:s out_layout:s out_dtype:t",
    "QnnDenseAttrs": "units:o out_dtype:t input_zero_point:i kernel_zero_point:i input_scale:d "
    "kernel_scale:d",
    "QuantizeAttrs": "output_zero_point:i output_scale:d",
    "RequantizeAttrs": "input_scale:d input_zero_point:i output_scale:d output_zero_point:i",
    "ReshapeAttrs": "reverse:b",
    "Resize3dAttrs": "size:o layout:s method:s coordinate_transformation_mode:s out_dtype:t",
    "ResizeAttrs": "size:o layout:s method:s align_corners:b coordinate_transformation_mode:s "
    "rounding_method:s bicubic_alpha:d bicubic_exclude:i out_dtype:t",
    "ScatterAddAttrs": "axis:o",
    "ScatterAttrs": "axis:o",
}


def find_legacy_kind(type_key: str, field: str, version: Version) -> str | None:
    """The kind (see ``registry.Field``) of a field in files of ``version``, if not today's."""
    key = type_key.removeprefix(PREFIX)
    changed = _EARLIER.get((key, field))
    if changed is not None and version < changed[0]:
        return changed[1]
    retired = dict(word.split(":") for word in _RETIRED.get(key, "").split())
    return retired.get(field)
