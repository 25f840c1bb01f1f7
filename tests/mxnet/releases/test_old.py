"""Operators that meant something else in files of older releases."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.mxnet.rules import changed_rules
from testing.mxnet.cases import Case, Refusal, f32, i8, i32, of, operator_test, u8
from tests.mxnet.recorded import in_release

FIRST, SECOND, THIRD, FOURTH = "0.9.5.post2", "1.0.0", "1.2.0", "1.4.0"
FIFTH, SIXTH, SEVENTH = "1.5.1", "1.6.0", "1.7.0.post2"
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


def suppression(release: str, **attrs: object) -> Case:
    """Boxes of the classes -1 to 1 with scores from -1 to 1."""
    ids, scores = f32(20, 1, low=-1.5, high=1.5).round(), f32(20, 1, low=-1.0)
    corners = f32(20, 2, low=0.0, high=0.6)
    rows = np.concatenate([ids, scores, corners, corners + 0.3], axis=1)
    return in_release(release, "_contrib_box_nms", rows, **attrs)


WHOLE = of([1, 8, 1000, 2**24 + 1], "int32")
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
    # of one image: beyond it lies what is in memory, here zeros
    in_release(FIRST, "SpatialTransformer", f32(1, 2, 6, 5),
               of([[1.05, 0.02, 0.03, -0.02, 1.04, 0.02]], "float32"), target_shape="(4, 6)",
               **SPATIAL).but(fixed="the static shape"),
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
    *(suppression(r, **attrs) for r in (THIRD, FOURTH)
      for attrs in ({}, {"id_index": 0}, {"id_index": 0, "force_suppress": True, "topk": 7})),
    in_release(FOURTH, "_image_normalize", i32(1, 4, 5), mean="(2.5,)", std="(1.5,)"),
    *(in_release(FIFTH, "_image_normalize", x, mean="(0.1,)", std="(2,)").but(fixed=fixed)
      for x, fixed in ((f32(3, 4, 5), "the number of channels"), (f32(1, 4, 5), ""),
                       (f32(2, 3, 4, 5), "the number of channels"))),
    *(in_release(FIRST, "_cvcopyMakeBorder", x, top=1, bot=2, left=1, right=0, type=0,
                 value=7).but(fixed=fixed)
      for x, fixed in ((u8(4, 3, 3), "the number of channels"), (f32(4, 3, 1), ""))),
    in_release(SEVENTH, "LeakyReLU", f32(2, 3, 4), act_type="gelu"),
    *(in_release(SIXTH, f"_npi_arg{m}", f32(2, 3), axis=1).but(np_shape=True)
      for m in ("max", "min")),
    *(in_release(SIXTH, "SoftmaxOutput", f32(*shape), f32(*shape[:-1])) for shape in (
        (7, 1), (2, 3, 4, 5))),
    in_release("0.11.0", "expand_dims", f32(2, 3, 4), axis=-1),
    *(in_release(FIFTH, op, WHOLE) for op in ("floor", "rint", "exp", "log2", "sqrt")),
    in_release("0.11.0", "square", i32(5, low=4000, high=9000)),
    Refusal(in_release(FOURTH, "_unravel_index", f32(3, low=0, high=3).round(), shape="(-1, 2)"),
            "before 1.5"),
    pool_case(THIRD, 2, 3, 7, 6, kernel="(3, 2)", stride="(2, 2)", pool_type="avg",
           pooling_convention="full"),
]  # fmt: skip
test_old = operator_test(CASES)


@pytest.mark.parametrize(("number", "op"), [
    (905, "LRN"), (1000, "LRN"), (10200, "_contrib_MultiBoxDetection"), (10400, "clip"),
])  # fmt: skip
def test_releases_that_have_it_otherwise(number: int, op: str) -> None:
    assert op in changed_rules(number) and op not in changed_rules(10901)
