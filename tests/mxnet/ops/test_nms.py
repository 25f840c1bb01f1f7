"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, operator_test, refuses
from tests.mxnet.ops.test_bbox import boxes


def scene(*shape, classes=3, seed=0):
    """Rows of class, score and corners; some scores are negative, some classes -1."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(-1, classes, (*shape, 1))
    scores = generator.permutation(np.prod(shape)).reshape((*shape, 1)) / np.prod(shape) - 0.2
    return np.concatenate([ids, scores, boxes(*shape, seed=seed)], -1).astype("float32")


SETTINGS = [
    {},
    {"overlap_thresh": 0.3},
    {"id_index": 0},
    {"id_index": 0, "force_suppress": True},
    {"topk": 7},
    {"topk": 100},
    {"id_index": 0, "topk": 9, "valid_thresh": 0.3},
    {"id_index": 0, "background_id": 1},
    {"out_format": "center"},
    {"in_format": "center"},
    {"in_format": "center", "out_format": "corner"},
    {"valid_thresh": 2},
    {"overlap_thresh": 1},
]


def detection(batch, classes, anchors, seed=0, **attrs):
    generator = np.random.default_rng(seed)
    probable = generator.dirichlet(np.ones(classes), (batch, anchors)).transpose(0, 2, 1)
    moves = generator.normal(0, 0.5, (batch, anchors * 4))
    operands = (probable.astype("float32"), moves.astype("float32"), boxes(1, anchors, seed=seed))
    return case("_contrib_MultiBoxDetection", *operands, **attrs)


CASES = [
    *(case("_contrib_box_nms", scene(20, seed=i), **a) for i, a in enumerate(SETTINGS)),
    *(case("_contrib_box_nms", scene(2, 20), **a) for a in SETTINGS[:4]),
    case("_contrib_box_nms", scene(2, 2, 8), id_index=0),
    case(
        "_contrib_box_nms",
        scene(9)[:, [2, 3, 4, 5, 1, 0]].copy(),
        coord_start=0,
        score_index=4,
        id_index=5,
    ),
    *(
        detection(2, 4, 12, seed=i, **a)
        for i, a in enumerate(
            (
                {},
                {"nms_threshold": 0.2},
                {"force_suppress": True, "nms_threshold": 0.2},
                {"threshold": 0.5},
                {"clip": False, "variances": "(0.5, 0.5, 1, 1)"},
                {"nms_threshold": -1},
                {"background_id": 1},
                {"nms_topk": 5, "nms_threshold": 0.3},
                {"nms_topk": 50},
            )
        )
    ),
    refuses("_contrib_box_nms", scene(4), in_format="polar", says="in_format='polar'"),
    *(  # boxes whose corners stand in any order, and sides of any sign
        case("_contrib_box_nms", f32(2, 40, 6, low=0, high=1, seed=i), overlap_thresh=0.2, **a)
        for i in range(3)
        for a in ({}, {"topk": 20}, {"in_format": "center", "out_format": "center"})
    ),
    case("_contrib_box_nms", f32(2, 40, 6, low=0, high=1), overlap_thresh=1.5),
    refuses("_contrib_box_nms", f32(20, 6), overlap_thresh=-0.5, says="an overlap of -0.5"),
]

test_suppression = operator_test(CASES)
