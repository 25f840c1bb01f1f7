"""Operators that meant something else in files of older releases."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.mxnet.rules import changed_rules
from tests.mxnet.cases import Case, Refusal, f32, i8, i32, of, operator_test, u8
from tests.mxnet.recorded import in_release

FIRST, SECOND, THIRD, FOURTH = "0.9.5.post2", "1.0.0", "1.2.0", "1.4.0"
IMAGE, PLANE = f32(1, 3, 4, 5), f32(2, 7, 3, 3)


def detection(release: str, **attrs: object) -> Case:
    scores = f32(2, 4, 12, low=0.0)
    scores /= scores.sum(1, keepdims=True)
    corners = f32(1, 12, 2, low=0.1, high=0.5)
    anchors = np.concatenate([corners, corners + 0.3], axis=2)
    return in_release(release, "_contrib_MultiBoxDetection", scores, f32(2, 48), anchors, **attrs)


def theta(count: int, far: float) -> np.ndarray:
    """Affine maps that reach outside of all images but the last as far."""
    still = np.tile(of([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), (count, 1))
    more = far * f32(count, 6)
    more[-1] = 0  # MXNet 0.9.5 reads beyond the last image
    return (still + more).astype("float32")


def pool_case(release: str, *shape: int, **attrs: object) -> Case:
    return in_release(release, "Pooling", f32(*shape), **attrs)


SPATIAL = {"transform_type": "affine", "sampler_type": "bilinear"}
CASES = [
    *(in_release(r, "_contrib_MultiBoxPrior", IMAGE, **attrs).but(fixed=fixed)
      for r, fixed in ((FIRST, "the size of the image"), (SECOND, ""), (FOURTH, ""))
      for attrs in ({}, {"sizes": "(0.5, 0.25)", "ratios": "(1, 2, 0.5)"},
                    {"sizes": "(0.9,)", "ratios": "(2, 1)", "clip": True})),
    *(detection(r, **attrs) for r in (FIRST, THIRD, FOURTH)
      for attrs in ({"nms_topk": 5, "nms_threshold": 0.3}, {"nms_threshold": 0.3},
                    {"nms_topk": 3, "nms_threshold": 0.2, "force_suppress": True})),
    *(in_release(r, "LRN", PLANE, alpha=0.5, beta=b, knorm=k, nsize=n).but(fixed=fixed)
      for r, fixed in ((FIRST, "the number of channels"), (SECOND, ""))
      for n, b, k in ((3, 0.75, 2.0), (5, 0.5, 1.0), (7, 0.75, 1.0))),
    Refusal(in_release(FIRST, "LRN", f32(2, 2, 3, 3), nsize=5), "nsize=5 of 2 channels"),
    *(in_release(r, "SpatialTransformer", f32(n, 2, 5, 4), theta(n, far), target_shape="(3, 4)",
                 **SPATIAL).but(fixed=fixed)
      for r, fixed in ((FIRST, "the static shape"), (SECOND, "")) for n, far in ((2, 0.0), (3, 0.1))),
    *(in_release(r, "clip", x, a_min=low, a_max=high)
      for r in (FIRST, FOURTH) for x, low, high in (
          (u8(2, 3, high=255), -1, 300), (u8(8), 2, -2), (i32(2, 3), -2, 2), (f32(2, 3), -1, 1))),
    in_release(FOURTH, "clip", i8(8), a_min=-200, a_max=3),
    Refusal(in_release(FOURTH, "clip", i32(8), a_min=1, a_max="nan"), "before MXNet 1.6"),
    pool_case(SECOND, 2, 3, 6, 6, kernel="(3, 3)", global_pool=True, pool_type="avg"),
    Refusal(pool_case(SECOND, 2, 3, 6, 6, kernel="(2, 2)", pad="(1, 1)", global_pool=True,
                   pool_type="avg"), "before 1.2"),
    Refusal(pool_case(THIRD, 2, 3, 6, 6, kernel="(1, 1)", stride="(3, 3)", pool_type="avg",
                   pooling_convention="full"), "before MXNet 1.3"),
    pool_case(THIRD, 2, 3, 7, 6, kernel="(3, 2)", stride="(2, 2)", pool_type="avg",
           pooling_convention="full"),
]  # fmt: skip
test_old = operator_test(CASES)


@pytest.mark.parametrize(("number", "op"), [
    (905, "LRN"), (1000, "LRN"), (10200, "_contrib_MultiBoxDetection"), (10400, "clip"),
])  # fmt: skip
def test_releases_that_have_it_otherwise(number: int, op: str) -> None:
    assert op in changed_rules(number) and op not in changed_rules(10901)
