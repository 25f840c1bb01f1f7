"""Layers that oneDNN fused in MXNet 2.0."""

from __future__ import annotations

from testing.mxnet.cases import Case, Refusal, operator_test
from testing.mxnet.releases_live import SECOND, number_of
from tests.mxnet.ops.test_quantized_matmul import BIASED, CALIBRATED, POSITIVE, RELU, U, X, conv
from tests.mxnet.recorded import recall


def in_second(base: Case) -> Case:
    """A case as a file that MXNet 2.0 saved."""
    return base.but(release=number_of(SECOND), oracle=lambda c: recall(SECOND, c))


CLIP = ("clip", {"a_min": 0, "a_max": 6})
CASES = [
    in_second(conv([BIASED], U, **CALIBRATED)),
    in_second(conv([BIASED, RELU], U, with_relu=True, **POSITIVE)),
    in_second(conv([BIASED, CLIP], U, with_act=True, **POSITIVE)),
    Refusal(in_second(conv([BIASED], X, **CALIBRATED)), "int8 data"),
]
test_fused = operator_test(CASES)
