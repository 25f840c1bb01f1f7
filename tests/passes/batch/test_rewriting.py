"""A graph is copied for another batch, and its sizes are compared with those of the analysis."""

from __future__ import annotations

import pytest

import serde
from serde.passes.batch.places import Place
from serde.passes.batch.rewriting import infer_again, write_batch
from serde.passes.change_batch import find_places
from testing.onnx_live import ir_of

TEXT = """g (float[1,4] x) => (float[1,8] y, float[1,3] z) <float[1,4] w = {1,2,3,4}, float[1,3] c = {1,2,3}>
  { h = Relu(x) y = Concat<axis=1>(h, w) z = Exp(c) }"""


@pytest.mark.parametrize("batch", [3, "N"])
def test_values_keep_their_names(batch):
    written = write_batch(find_places(ir_of(TEXT), batch), batch)
    assert [v.name for v in (*written.inputs, *written.outputs)] == ["x", "y", "z"]
    assert written.inputs[0].shape == (batch, 4) and written.outputs[0].shape == (batch, 8)
    graph = infer_again(written)
    assert [v.name for v in graph.outputs] == ["y", "z"]
    assert [v.shape for v in graph.outputs] == [(batch, 8), (batch, 3)]


def test_a_place_that_is_wrong_is_found():
    """Sizes are inferred from the operators, whatever the analysis says."""
    graph = ir_of("g (float[1,4] x) => (float[1,4] y) { h = Relu(x) y = Softmax(h) }")
    analysis = find_places(graph, "N")
    analysis.state.places[analysis.graph.outputs[0]] = Place(1)
    with pytest.raises(serde.Unconvertible, match=r"Softmax ×1.*\(31, 4\) in place of \(1, 31\)"):
        infer_again(write_batch(analysis, 31))


def test_nodes_that_are_not_rewritten_keep_their_sources():
    graph = ir_of(TEXT)
    names = {n.name for n in graph.nodes}
    assert {n.name for n in infer_again(write_batch(find_places(graph, 3), 3)).nodes} >= names - {
        "z"
    }
