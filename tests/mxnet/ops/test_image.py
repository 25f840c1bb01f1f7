"""Preparing photographs."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, f64, i32, operator_test, refuses, u8

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
    refuses("_image_resize", u8(*ONE), size="3", says="resizing uint8 pixels"),
    refuses("_image_resize", f32(*ONE), size="3", interp=3, says="interp=3"),
    *(
        case(op, x, interp=i, **a)
        for i in (0, 1, 2)
        for x in (f32(4, 3, 3), f32(7, 9, 1))
        for op, a in (
            ("_cvimresize", {"w": 5, "h": 6}),
            ("_cvimresize", {"w": 2, "h": 3}),
            ("_image_resize", {"size": "(5, 6)"}),
        )
    ),
    case("_cvimresize", u8(4, 3, 3), w=5, h=7, interp=0),
    refuses("_cvimresize", u8(4, 3, 3), w=5, h=7, says="resizing uint8 pixels"),
    *(
        case("_cvcopyMakeBorder", x, top=1, bot=2, left=1, right=0, type=t, value=7)
        for t in (0, 1, 4)
        for x in (u8(4, 3, 3), f32(4, 3, 1))
    ),
    *(
        case("_cvcopyMakeBorder", x, top=1, bot=0, left=0, right=2, values="(1, 2.5, 3)")
        for x in (f32(4, 3, 3), u8(2, 2, 3))
    ),
    refuses("_cvcopyMakeBorder", u8(4, 3, 3), top=1, bot=2, left=1, right=0, type=3, says="type=3"),
    *(
        case("_image_adjust_lighting", x, alpha="(0.1, 0.2, -0.3)")
        for x in (f32(4, 3, 3), u8(4, 3, 3, high=255), f64(2, 2, 3))
    ),
    *(
        case("_image_normalize", make(1, 4, 5), mean="(2.5,)", std="(1.5,)")
        for make in (i32, u8, f64)
    ),
    refuses(
        "_cvcopyMakeBorder",
        f32(4, 3, 1),
        top=7,
        bot=1,
        left=1,
        right=0,
        type=4,
        says="a border of 7 mirrored from 4",
    ),
    refuses("_image_resize", np.ones((4, 3, 1), bool), size=(5, 6), says="resizing booleans"),
    refuses("_image_crop", f32(4, 5, 3), x=-1, y=0, width=2, height=3, says="x=-1"),
    refuses(
        "_cvcopyMakeBorder", f32(4, 3, 3), top=1, bot=-1, left=1, right=0, says="a border of -1"
    ),
    refuses(
        "_cvcopyMakeBorder",
        f32(4, 3, 1),
        top=1,
        bot=1,
        left=1,
        right=0,
        values=(1, 2, 3),
        says="values=(1.0, 2.0, 3.0) for 1 channels",
    ),
]

test_images = operator_test(CASES)
