"""Normalization layers."""

from __future__ import annotations

from testing.mxnet.cases import case, f16, f32, f64, operator_test, refuses

STATES = (1, 2, 3, 4)
CHANNELS = "needs to know the number of channels"
SHAPES = [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)]


def params(n, make=f32):
    return make(n, low=0.5, high=1.5), make(n), make(n, seed=1), make(n, low=0.5, high=1.5, seed=2)


CASES = [
    *(
        case("BatchNorm", f32(*s), *params(3), **a)
        for s in SHAPES
        for a in ({}, {"fix_gamma": False})
    ),
    *(
        case("BatchNorm", f32(2, 3, 4, 5), *params((2, 3, 4, 5)[a]), axis=a, fix_gamma=False)
        for a in (1, 2, 3, -1, -2)
    ),
    case("BatchNorm", f32(2, 3), *params(3), axis=-1, fix_gamma=False),
    case("BatchNorm", f32(2, 3, 4), *params(2), axis=0, fix_gamma=False),
    case(
        "BatchNorm",
        f32(2, 3, 4, 5),
        *params(3),
        eps=0.1,
        momentum=0.5,
        use_global_stats=True,
        fix_gamma=0,
        cudnn_off=1,
    ),
    case("BatchNorm", f64(2, 3, 4, 5), *params(3, f64), fix_gamma=0),
    case("BatchNorm", f16(2, 3, 4, 5), *params(3), fix_gamma=0),
    case("BatchNorm", f16(2, 3, 4, 5), *params(3)),
    *(case("LayerNorm", f32(*s), f32(s[-1]), f32(s[-1], seed=1)) for s in [(3,), *SHAPES]),
    *(
        case(
            "LayerNorm",
            f32(2, 3, 4, 5),
            f32((2, 3, 4, 5)[a]),
            f32((2, 3, 4, 5)[a]),
            axis=a,
            eps=0.1,
        )
        for a in (0, 1, 2, 3, -1, -3)
    ),
    case("LayerNorm", f16(2, 3, 4), f16(4), f16(4, seed=1)),
    case("LayerNorm", f64(2, 3, 4), f64(4), f64(4, seed=1)),
    *(case("InstanceNorm", f32(*s), f32(3), f32(3, seed=1)) for s in SHAPES[1:]),
    case("InstanceNorm", f32(2, 3, 4), f32(3), f32(3, seed=1), eps=0.1),
    *(case("LRN", f32(2, 7, 3, 3, low=0.0, high=3), nsize=n) for n in (1, 3, 5, 7)),
    case("LRN", f32(2, 7, 3, 3), nsize=5, alpha=0.1, beta=0.5, knorm=1),
    *(
        case("GroupNorm", f32(*s), f32(2), f32(2, seed=1), num_groups=2).but(fixed=CHANNELS)
        for s in [(2, 4, 3), (2, 4, 3, 2), (2, 4, 3, 2, 2)]
    ),
    case("GroupNorm", f32(2, 6, 3), f32(1), f32(1, seed=1)).but(fixed=CHANNELS),
    case("GroupNorm", f32(2, 6, 3), f32(6), f32(6, seed=1), num_groups=6, eps=0.1).but(
        fixed=CHANNELS
    ),
    case("GroupNorm", f64(2, 6, 3), f64(3), f64(3, seed=1), num_groups=3, eps=0.1).but(
        fixed=CHANNELS
    ),
    case("_contrib_SyncBatchNorm", f32(2, 3, 4, 5), *params(3), key="bn").but(params=STATES),
    case("_contrib_SyncBatchNorm", f32(2, 3, 4), *params(3), key="bn", fix_gamma=False, ndev=2).but(
        params=STATES
    ),
    case("BatchNorm_v1", f32(2, 3, 4, 5), *params(3)).but(params=STATES),
    case("BatchNorm_v1", f32(2, 3, 4, 5), *params(3), fix_gamma=False, eps=0.1).but(params=STATES),
    case("_contrib_BatchNormWithReLU", f32(2, 3, 4, 5), *params(3)).but(params=STATES),
    case("_contrib_BatchNormWithReLU", f32(2, 3, 4, 5), *params(3), fix_gamma=False, eps=0.1).but(
        params=STATES
    ),
    refuses("BatchNorm", f32(2, 3), *params(3), output_mean_var=True, says="output_mean_var=True"),
    *(
        case(op, f32(2, 3), *params(3), eps=0.1, **a).but(params=STATES)
        for op, a in (("BatchNorm_v1", {}), ("_contrib_SyncBatchNorm", {"key": "bn"}))
    ),
    case("_contrib_BatchNormWithReLU", f32(3, 2, 4, 4), *params(2), use_global_stats=True).but(
        params=STATES
    ),
    case("LayerNorm", f32(3, 0), f32(0), f32(0)).but(np_shape=True),
    refuses("LRN", f32(2, 7, 3, 3), nsize=4, says="runtimes take odd sizes only"),
    refuses("LRN", f32(2, 7, 3, 3), nsize=3, alpha=0.0, says="are to be above 0"),
    refuses("BatchNorm", f32(2, 3, 4), *(f32(4),) * 4, says="parameters for 4 channels"),
    *(
        case("L2Normalization", f32(*s), mode=m)
        for s in SHAPES[1:]
        for m in ("channel", "instance", "spatial")
    ),
    case("L2Normalization", f32(2, 3)),
    case("L2Normalization", f16(2, 3, 4)),
    case("L2Normalization", f64(2, 3, 4), eps=0.1),
    case("L2Normalization", f32(7), eps=0.1),
]
test_normalization = operator_test(CASES)
