"""Regions that a network proposes."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, of, operator_test, refuses

IMAGES = ((48, 64, 1), (33, 60, 2), (48, 64, 1))
USUAL = {
    "rpn_pre_nms_top_n": 12, "rpn_post_nms_top_n": 5, "rpn_min_size": 4, "feature_stride": 16,
    "scales": "(2, 4, 8)", "ratios": "(1,)",
}  # fmt: skip


def operands(images, anchors, seed):
    n = len(images)
    scores = f32(n, 2 * anchors, 3, 4, low=0, seed=seed)
    return scores, f32(n, 4 * anchors, 3, 4, seed=seed) * 0.2, of(images)


def propose(images, seed=0, anchors=3, **attrs):
    op = "_contrib_Proposal" if len(images) == 1 else "_contrib_MultiProposal"
    base = case(op, *operands(images, anchors, seed), **{**USUAL, **attrs})
    return base.but(outputs=1 + ("output_score" in attrs))


CASES = [
    propose(IMAGES[:1], output_score=True),
    propose(IMAGES[:1], 1, rpn_post_nms_top_n=9, threshold=0.3),
    propose(IMAGES[:1], 2, anchors=6, ratios="(0.5, 2)", rpn_min_size=40),
    propose(((40, 50, 0.5),), 3, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=30),
    propose(IMAGES[:2], output_score=True),
    propose(IMAGES[:2], 1, rpn_post_nms_top_n=20, threshold=0.5),
    propose(IMAGES, 2),
    refuses("_contrib_Proposal", *operands(IMAGES[:1], 3, 0), iou_loss=True, says="iou_loss=True"),
]
test_proposals = operator_test(CASES)
