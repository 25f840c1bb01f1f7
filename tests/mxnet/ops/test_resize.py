"""Images at other sizes, and sampled along a grid."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, f64, operator_test, refuses

X = f32(2, 3, 5, 4)
DOWN = {"scale_height": 0.5, "scale_width": 0.7}
UP = {"scale_height": 2.5, "scale_width": 2}
AFFINE = {"transform_type": "affine", "sampler_type": "bilinear"}
ALONE = "has a size of 1, of which MXNet makes NaN"


def up(*xs, **attrs):
    return case("UpSampling", *xs, num_args=len(xs), **attrs)


CASES = [
    *(up(X, scale=n, sample_type="nearest") for n in (1, 2, 3)),
    up(f64(1, 2, 3, 3), scale=2, sample_type="nearest").but(gap="Resize of float64"),
    up(f32(2, 3, 4, 4), f32(2, 1, 2, 2), scale=2, sample_type="nearest"),
    up(f32(2, 3, 4, 4), f32(2, 3, 2, 2), scale=2, sample_type="nearest", multi_input_mode="sum"),
    *(
        up(X, f32(3, 1, k, k), scale=n, sample_type="bilinear", num_filter=3, workspace=256).but(
            params=(1,)
        )
        for n, k in ((1, 1), (2, 4), (3, 5), (4, 8))
    ),
    *(
        case("_contrib_BilinearResize2D", X, align_corners=c, **a)
        for c in (True, False)
        for a in (
            {"height": 7, "width": 3},
            {"height": 1, "width": 1},
            {"height": 5, "width": 4},
            DOWN,
            UP,
            *({"mode": m, **s} for m in ("odd_scale",) for s in (DOWN, UP)),
            *({"mode": f"to_{p}_{d}"} for p in ("even", "odd") for d in ("up", "down")),
        )
    ),
    case("_contrib_BilinearResize2D", X, f32(1, 1, 8, 3), mode="like"),
    case("_contrib_BilinearResize2D", f64(1, 1, 3, 3), height=5, width=6).but(
        gap="Resize of float64"
    ),
    *(
        case("_contrib_AdaptiveAvgPooling2D", f32(2, 3, 6, 7), **a)
        for a in (
            {},
            *(
                {"output_size": s}
                for s in (1, 2, 3, "(3,)", "(2, 7)", "(6, 3)", "(8, 10)", "(1, 1)", "(6, 7)")
            ),
        )
    ),
    case("_contrib_AdaptiveAvgPooling2D", f64(1, 2, 5, 5), output_size=2),
    *(
        refuses(op, f32(1, 2, 4, 4), requantized="True", says="unknown attribute requantized")
        for op in ("_contrib_AdaptiveAvgPooling2D", "_contrib_BilinearResize2D")
    ),
    case("GridGenerator", f32(2, 6), transform_type="affine", target_shape=(3, 4)),
    case("GridGenerator", f32(2, 2, 3, 4), transform_type="warp"),
    case("BilinearSampler", X, f32(2, 2, 3, 6, low=-1.3, high=1.3)),
    case("BilinearSampler", f32(1, 1, 4, 4), f32(1, 2, 4, 4, low=-1)),
    case(
        "SpatialTransformer",
        X,
        f32(2, 6),
        target_shape=(3, 4),
        transform_type="affine",
        sampler_type="bilinear",
    ),
    refuses(
        "UpSampling",
        X,
        scale=2,
        sample_type="cubic",
        num_args=1,
        says="sample_type='cubic' is unknown",
    ),
    refuses("_contrib_BilinearResize2D", X, mode="odd_scale", says="a scale is needed"),
    refuses(
        "GridGenerator",
        f32(2, 6),
        transform_type="affine",
        says="target_shape=(0, 0) leaves a size open",
    ),
    case("BilinearSampler", X, f32(2, 2, 1, 1, low=-2, high=2)),
    case("BilinearSampler", f32(1, 2, 1, 1), f32(1, 2, 2, 5, low=-1)),
    case("GridGenerator", f32(1, 2, 2, 5), transform_type="warp"),
    case("GridGenerator", f32(1, 2, 1, 3), transform_type="warp"),
    *(
        case("SpatialTransformer", f32(n, 3, 5, 4), f32(n, 6), target_shape=t, **AFFINE)
        for n, t in ((1, "(5, 4)"), (3, "(2, 2)"))
    ),
    case("SpatialTransformer", X, f32(2, 6), target_shape="(7, 3)", cudnn_off=True, **AFFINE),
    refuses("SpatialTransformer", X, f32(2, 6), target_shape="(1, 7)", **AFFINE, says=ALONE),
    refuses("GridGenerator", f32(1, 6), target_shape="(3, 1)", transform_type="affine", says=ALONE),
]

test_resampling = operator_test(CASES)
