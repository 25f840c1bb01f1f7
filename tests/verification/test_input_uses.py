"""What inputs are used for."""

from __future__ import annotations

import pytest

from serde.verification.input_uses import readers_of, table_size
from testing.onnx_live import ir_of

CASES = {
    "(float[9] t, int64[4] i) => (y) { y = Gather(t, i) }": 9,
    "(float[9] t, float[4] i) => (y) { j = Cast<to=7>(i) k = Unsqueeze(j, a) y = Gather(t, k) }": 9,
    "(float[9,5] t, int64[4] i) => (y) { y = Gather<axis=1>(t, i) }": 5,
    "(float[9,5] t, int64[4,1] i) => (y) { y = GatherElements<axis=1>(t, i) }": 5,
    "(float[9,5] t, int64[4,2] i) => (y) { y = GatherND(t, i) }": 5,
    "(float[9,5] t, int64[4,1] i) => (y) { y = GatherND(t, i) }": 9,
    "(float[N,5] t, int64[4,1] i) => (y) { y = GatherND(t, i) }": "N",
    "(float[N,5] t, int64[4,2] i) => (y) { y = GatherND(t, i) }": 1,
    "(float[9] t, int64[4] i) => (y) { j = Add(i, i) y = Gather(t, j) }": None,
}


@pytest.mark.parametrize("text", CASES)
def test_the_table_of_an_index(text):
    graph = ir_of(f"g {text}".replace("=> (y) ", "=> (y) <int64[1] a = {0}> "))
    assert table_size(graph.inputs[1], readers_of(graph)) == CASES[text]
