"""Parts of images: regions of interest, deformed windows, correlation."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, live, of, operator_test, refuses

X = f32(2, 3, 8, 9)
ROIS = of(
    [[0, 0, 0, 7, 7], [1, 2, 1, 5.4, 6.6], [0, 3, 3, 3, 3], [1, 1.5, 2.5, 8, 7], [0, 0, 5, 2, 7]]
)
WIDE = ROIS[ROIS[:, 1] < ROIS[:, 3]].copy()
NONE = of(
    [[-1, 0, 0, 4, 4], [1, 2, 1, 5, 6], [-2, 1, 1, 3, 3], [-0.5, 0, 0, 5, 5], [1.9, 0, 0, 7, 7]]
)
KERNEL = {"kernel": (3, 2), "num_filter": 4}


def deformable(group=1, deform=1, modulated=False, bias=True, **attrs):
    x, w, b = f32(2, 4, 6, 7), f32(4, 4 // group, 3, 2), [f32(4)] if bias else []
    frame = {"stride": (1, 1), "pad": (0, 0), "dilate": (1, 1), **attrs}
    size = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(
            (6, 7), frame["pad"], frame["dilate"], (3, 2), frame["stride"], strict=True
        )
    ]
    offset, mask = f32(2, deform * 12, *size), [f32(2, deform * 6, *size, low=0.0)]
    op = (
        "_contrib_ModulatedDeformableConvolution" if modulated else "_contrib_DeformableConvolution"
    )
    xs = (x, offset, *(mask if modulated else []), w, *b)
    groups = {"num_group": group, "num_deformable_group": deform}
    return case(op, *xs, **KERNEL, **groups, no_bias=not bias, **attrs)


def as_on_a_gpu(case):
    """On a CPU MXNet leaves the numbers of a region of image -1 unwritten; on a GPU it zeros them."""
    x, rois = case.inputs
    there = np.trunc(rois[:, 0]) >= 0
    (y,) = live(case.but(inputs=(x, rois[there])))
    result = np.zeros((len(rois), *y.shape[1:]), y.dtype)
    result[there] = y
    return [result]


PLACES = of([[0, 0, 0, 16, 20], [1, 3.5, 7.4, 15, 9], [0, -5, 2, 40, 12], [1, 30, 30, 40, 40]])
TURNED = of(
    [[0, 8, 8, 10, 6, 30], [1, 3, 4, 12, 3, -75], [0, 0, 0, 30, 30, 10], [1, 14, 2, 0.5, 0.5, 180]]
)
CASES = [
    *(
        case("ROIPooling", X, ROIS, pooled_size=p, spatial_scale=s)
        for p in ((2, 2), (3, 1))
        for s in (1, 0.5)
    ),
    *(
        case(
            "_contrib_ROIAlign", X, WIDE, pooled_size=p, spatial_scale=s, aligned=a, sample_ratio=n
        )
        for p in ((2, 2), (3, 1))
        for s in (1, 0.5)
        for a in (True, False)
        for n in (-1, 2)
    ),
    case("ROIPooling", X, NONE, pooled_size=(2, 3), spatial_scale=1),
    case("_contrib_ROIAlign", X, NONE, pooled_size=(2, 3), spatial_scale=1).but(oracle=as_on_a_gpu),
    *(deformable(modulated=m) for m in (False, True)),
    *(deformable(modulated=m, stride=(2, 1), pad=(1, 1), dilate=(1, 2)) for m in (False, True)),
    *(deformable(modulated=m, group=2, deform=2, bias=False) for m in (False, True)),
    *(
        case("Correlation", X, f32(2, 3, 8, 9, seed=1), is_multiply=m, **a)
        for m in (True, False)
        for a in (
            {},
            {"max_displacement": 2, "pad_size": 2},
            {"kernel_size": 3, "max_displacement": 1, "pad_size": 2, "stride1": 2},
            {"max_displacement": 2, "pad_size": 3, "stride2": 2},
        )
    ),
    refuses(
        "_contrib_ROIAlign",
        X,
        ROIS,
        pooled_size=(2, 2),
        spatial_scale=1,
        position_sensitive=True,
        says="position_sensitive=True",
    ),
    refuses("Correlation", X, X, kernel_size=2, says="kernel_size=2 is even"),
    *(
        case(
            "_contrib_PSROIPooling",
            f32(2, 2 * p * p, 6, 7),
            PLACES,
            spatial_scale=s,
            output_dim=2,
            pooled_size=p,
            **a,
        )
        for p, s, a in ((2, 0.25, {}), (3, 0.5, {}), (1, 0.125, {}), (2, 1, {"group_size": 2}))
    ),
    refuses(
        "_contrib_PSROIPooling",
        f32(2, 8, 6, 7),
        PLACES,
        spatial_scale=1,
        output_dim=2,
        pooled_size=3,
        group_size=2,
        says="group_size=2 with pooled_size=3",
    ),
    *(
        case(
            "_contrib_DeformablePSROIPooling",
            f32(2, 4 * p * p, 6, 7),
            PLACES,
            *([] if parts is None else [f32(4, 2 * k, parts, parts)]),
            spatial_scale=s,
            output_dim=4,
            group_size=p,
            pooled_size=p * more,
            part_size=parts or 0,
            sample_per_part=n,
            trans_std=0.3,
            no_trans=parts is None,
        ).but(fixed="" if parts is None else "how many classes are moved")
        for p, more, s, n, parts, k in (
            (2, 1, 0.25, 2, None, 1),
            (3, 1, 0.5, 1, 3, 1),
            (2, 2, 0.25, 3, 2, 2),
            (1, 3, 0.4, 2, 3, 4),
            (2, 1, 1, 4, 3, 1),
        )
    ),
    *(
        case(
            "_contrib_RROIAlign",
            f32(2, 3, 6, 8),
            TURNED,
            spatial_scale=s,
            pooled_size=p,
            sampling_ratio=n,
        )
        for s, p, n in ((0.5, "(2, 2)", 2), (1, "(3, 1)", 1), (0.25, "(1, 4)", 3))
    ),
    refuses(
        "_contrib_RROIAlign",
        X,
        TURNED,
        spatial_scale=1,
        pooled_size=(2, 2),
        says="the size of a region counts its points",
    ),
]

test_regions = operator_test(CASES)
