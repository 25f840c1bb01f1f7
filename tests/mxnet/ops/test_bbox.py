"""Boxes of detectors: overlap, coding, anchors."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, f64, ints, operator_test, refuses


def boxes(*shape, seed=0, dtype="float32"):
    """Corners with the left upper one first, some alike."""
    generator = np.random.default_rng(seed)
    start = generator.uniform(0, 0.7, (*shape, 2))
    return np.concatenate([start, start + generator.uniform(0.05, 0.4, (*shape, 2))], -1).astype(
        dtype
    )


NOTHING = np.zeros((2, 4), "float32")
CASES = [
    *(
        case("_contrib_box_iou", a, b, format=f)
        for f in ("corner", "center")
        for a, b in (
            (boxes(5), boxes(3, seed=1)),
            (boxes(5), boxes(5)),
            (boxes(2, 5), boxes(3, seed=1)),
            (boxes(5), boxes(2, 3, seed=1)),
            (NOTHING, NOTHING),
            (boxes(4, dtype="float64"), boxes(2, dtype="float64", seed=1)),
        )
    ),
    *(
        case("_contrib_box_decode", f32(2, 5, 4), boxes(1, 5), format=f, **a)
        for f in ("corner", "center")
        for a in ({}, {"clip": 0.3}, {"std0": 0.1, "std1": 0.2, "std2": 0.3, "std3": 0.4})
    ),
    case("_contrib_box_decode", f64(1, 5, 4), boxes(1, 5, dtype="float64")),
    *(
        case("_contrib_MultiBoxPrior", f32(1, 3, 4, 5), **a)
        for a in (
            {},
            {"sizes": "(0.5, 0.25)", "ratios": "(1, 2, 0.5)"},
            {"sizes": "(0.9,)", "ratios": "(2, 1)", "clip": True},
            {"steps": "(0.3, 0.2)", "offsets": "(0.1, 0.7)"},
        )
    ),
    refuses(
        "_contrib_box_iou", boxes(2), boxes(2), format="polar", says="format='polar' is unknown"
    ),
    *(
        case(
            "_contrib_box_encode",
            f32(n, 3, low=-1, seed=s),
            ints(n, 3, high=1),
            boxes(n, 3),
            boxes(n, 2, seed=4),
            f32(4),
            f32(4, low=0.1),
        ).but(outputs=2)
        for n, s in ((1, 0), (2, 1), (2, 2))
    ),
    *(
        case("_contrib_bipartite_matching", f32(*s, low=0), **a).but(outputs=2)
        for s in ((3, 2), (2, 3, 4), (2, 2, 5, 3))
        for a in (
            {"threshold": 1e-12},
            {"threshold": 0.5, "is_ascend": True},
            {"threshold": 0.3, "topk": 1},
        )
    ),
]

test_boxes = operator_test(CASES)
