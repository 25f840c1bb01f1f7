"""Operators that rearrange or cut out blocks of images."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, i32, operator_test

X = f32(2, 3, 6, 5)
CHANNELS = "needs to know the number of channels"
WINDOWS = [
    {"kernel": (2, 3)},
    {"kernel": (2, 2), "stride": (2, 1), "pad": (1, 0)},
    {"kernel": (2, 2), "dilate": (2, 1)},
]
CASES = [
    *(
        case("depth_to_space", x, block_size=2)
        for x in (f32(2, 8, 2, 3), f64(1, 4, 3, 2), f16(1, 4, 2, 2))
    ),
    case("depth_to_space", i32(1, 4, 2, 2), block_size=2).but(gap="DepthToSpace of int32"),
    case("depth_to_space", f32(1, 9, 2, 3), block_size=3),
    *(case("space_to_depth", x, block_size=2) for x in (f32(2, 3, 4, 6), f64(1, 4, 2, 2))),
    case("space_to_depth", i32(1, 2, 4, 4), block_size=2).but(gap="SpaceToDepth of int32"),
    case("space_to_depth", f32(1, 2, 6, 3), block_size=3),
    case("Crop", X, num_args=1, h_w=(2, 3)),
    case("Crop", X, num_args=1, h_w=(2, 3), offset=(1, 2)),
    case("Crop", X, num_args=1, h_w=(3, 2), center_crop=True),
    case("Crop", X, f32(1, 1, 4, 2), num_args=2),
    case("Crop", X, f32(1, 1, 4, 2), num_args=2, offset=(1, 2)),
    case("Crop", X, f32(1, 1, 3, 2), num_args=2, center_crop=True),
    *(case("im2col", X, **a).but(fixed=CHANNELS) for a in WINDOWS),
    *(
        case("col2im", f32(2, 3 * n, s), output_size=(6, 5), **a)
        for a, n, s in zip(WINDOWS, (6, 4, 4), (15, 16, 16), strict=True)
    ),
]

test_blocks = operator_test(CASES)
