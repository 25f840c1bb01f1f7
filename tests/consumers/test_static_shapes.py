"""Consumers whose every size is a number."""

from __future__ import annotations

import pytest

from serde.errors import UsageError
from serde.formats.onnx.consumers.static_shapes import require_static_shapes
from testing.onnx_live import ir_of

STATIC = ir_of("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
NAMED = ir_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
COUNTED = ir_of("g (float[2,3] x) => (int64[2,n] y) { y = NonZero(x) }")


def test_numbers_pass():
    assert require_static_shapes(STATIC).outputs == STATIC.outputs


@pytest.mark.parametrize(
    ("graph", "why"),
    [(NAMED, r"input 'x' is \(N, 3\): give its sizes"), (COUNTED, r"'y' \(NonZero\) is \(2, ")],
    ids=["an input", "a result"],
)
def test_others_are_refused(graph, why):
    with pytest.raises(UsageError, match=why):
        require_static_shapes(graph)
