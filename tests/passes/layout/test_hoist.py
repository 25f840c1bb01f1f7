"""Images of a source with channels last: few Transposes are left, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.layout.hoist import hoist
from testing.onnx_live import ir_of, run

IN, OUT = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
CONSTANTS = {
    "zero": [0], "two": [2], "three": [3], "four": [4], "hw": [1, 2],
    "row": [1, 30, 4], "back": [1, 5, 6, 4], "pads": [0, 1, 0, 0, 0, 0, 2, 0],
}  # fmt: skip
BETWEEN = {  # what stands between two convolutions
    "an activation": "z = Relu(y)",
    "a sum with a row": "z = Add(y, c)",
    "a slope": "z = PRelu(y, s)",
    "a sum of two": "r = Relu(y) z = Add(r, y)",
    "means that keep axes": "m = ReduceMean<keepdims=1>(y, hw) z = Mul(y, m)",
    "a pad": "z = Pad(y, pads)",
    "a slice": "z = Slice(y, zero, three, two)",
    "parts joined": "r = Relu(y) z1 = Concat<axis=3>(r, y) z = Slice(z1, zero, four, three)",
    "a softmax over channels": "z = Softmax<axis=-1>(y)",
    "pixels in a row": "r = Reshape(y, row) m = Relu(r) z = Reshape(m, back)",
    "integers": "q = QuantizeLinear(y, unit, point) z = DequantizeLinear(q, unit, point)",
}


def build(body: str):
    constants = [
        f"int64[{len(v)}] {n} = {{{', '.join(map(str, v))}}}" for n, v in CONSTANTS.items()
    ]
    return ir_of(f"""g (float[1,6,5,4] x, float[4,4,3,3] w, float[4] c, float[1,1,4] s)
        => (float[n,h,w,c] end) <{", ".join(constants)}, float unit = {{0.05}}, int8 point = {{3}}> {{
        x1 = {IN}(x) y1 = Conv<pads=[1,1,1,1]>(x1, w, c) y = {OUT}(y1)
        {body}
        z2 = {IN}(z) y2 = Conv<pads=[1,1,1,1]>(z2, w, c) end = {OUT}(y2) }}""")


def feeds(graph) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(4)
    return {v.name: drawn.standard_normal(v.static_shape, np.float32) for v in graph.inputs}


def compare(graph, values) -> None:
    for expected, got in zip(run(graph, values), run(hoist(graph), values), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BETWEEN)
def test_transposes_of_images_are_left_at_the_ends(name: str) -> None:
    graph = build(BETWEEN[name])
    hoisted = hoist(graph)
    moves = [n for n in hoisted.nodes if n.op == "Transpose" and np.prod(n.outputs[0].shape) > 4]
    assert len(moves) == 2
    assert [v.shape for v in hoisted.outputs] == [v.shape for v in graph.outputs]
    compare(graph, feeds(graph))


def test_a_reshape_of_one_pixel_takes_what_is_channels_first() -> None:
    graph = ir_of(f"""g (float[1,4,1,1] x) => (float[1,4] z) {{
        y = Relu(x) y1 = {OUT}(y) k = Constant<value_ints=[1,4]>() z = Reshape(y1, k) }}""")
    assert [n.op for n in hoist(graph).nodes] == ["Relu", "Reshape"]


def test_subgraphs_do_not_lend_their_values() -> None:
    graph = ir_of(f"""g (bool c, float[1,6,5,4] x, float[4,4,1,1] w) => (float[1,6,5,4] r) {{
        y = If<then_branch = t () => (float[1,4,6,5] a) {{ a = {IN}(x) }},
               else_branch = e () => (float[1,4,6,5] b) {{ b0 = {IN}(x) b = Relu(b0) }}>(c)
        x1 = {IN}(x) x2 = Conv(x1, w) s = Add(x2, y) r = {OUT}(s) }}""")
    compare(graph, {**feeds(graph), "c": np.asarray(True)})
