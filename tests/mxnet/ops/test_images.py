"""Preparing photographs."""

from __future__ import annotations

from tests.mxnet.cases import case, f32, operator_test, refused, u8

ONE, BATCH = (4, 5, 3), (2, 4, 5, 3)
CHANNELS = "mean="

CASES = [
    *(case("_image_to_tensor", make(*s)) for make in (u8, f32) for s in (ONE, BATCH)),
    case("_image_normalize", f32(3, 4, 5), mean="(0.1, 0.2, 0.3)", std="(1, 2, 3)").but(
        fixed=CHANNELS
    ),
    case("_image_normalize", f32(2, 3, 4, 5), mean="(0.1, 0.2, 0.3)", std="2").but(fixed=CHANNELS),
    case("_image_normalize", f32(2, 3, 4, 5), mean="(0.1,)", std="(2,)"),
    *(
        case("_image_crop", make(*s), x=1, y=0, width=2, height=3)
        for make in (u8, f32)
        for s in (ONE, BATCH)
    ),
    *(
        case("_image_resize", f32(*s), size=n)
        for n in ("(2, 3)", "3", "(7, 9)")
        for s in (ONE, BATCH)
    ),
    *(  # sizes are even: MXNet leaves the middle of others unset
        case(f"_image_flip_{way}", make(*s))
        for way in ("left_right", "top_bottom")
        for make, s in ((u8, (4, 6, 3)), (f32, (2, 4, 3)), (f32, (2, 2, 1)))
    ),
    refused("_image_resize", u8(*ONE), size="3", says="resizing uint8 pixels"),
    refused("_image_resize", f32(*ONE), size="3", interp=0, says="interp=0"),
]

test_images = operator_test(CASES)
