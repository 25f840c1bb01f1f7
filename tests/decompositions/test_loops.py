"""Control flow unrolled, for targets without it: compared with onnx's node tests and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.decompositions.loops import (
    LONGEST,
    MAX_UNROLLED,
    WITHOUT_CONTROL_FLOW,
    always_continues,
    count_unrolled,
    fill_zeros,
    most_iterations,
    reverse_rows,
)
from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to_target
from serde.rewrite.subgraphs import Body
from testing.decomposed import check_decomposed, compute, make_target
from testing.onnx_live import ir_of, model_of, run_model

X = np.float32([[1, 2], [3, -4], [-5, 6]])
TARGET = make_target(WITHOUT_CONTROL_FLOW)


@pytest.mark.parametrize("op", ["If", "Scan"])
def test_decomposed(op: str) -> None:
    check_decomposed(op, WITHOUT_CONTROL_FLOW)


def unroll(text: str, opset: int = 17) -> Graph:
    return lower_to_target(ir_of(text, opset), TARGET)


def check(text: str, **feeds: Any) -> None:
    """The same numbers without control flow as ONNX Runtime gives with it."""
    graph = unroll(text)
    assert not {n.op for n in graph.nodes} & {*WITHOUT_CONTROL_FLOW}
    arrays = {n: np.asarray(a) for n, a in feeds.items()}
    expected = run_model(model_of(text, 17, 8), arrays)
    for a, b in zip(run_model(to_proto(graph), arrays), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


LOOP = """g (float[3,2] x) => (float[3,2] y, float[m,3,2] rows) <int64 n = {{{turns}}}> {{
    {go} y, rows = Loop<body = b (int64 i, bool c, float[3,2] s) =>
        (bool d, float[3,2] t, float[3,2] r) {{
            {condition} f = Cast<to = 1>(i) r = Mul(s, f) t = Add(s, x) }}>({operands}, x) }}"""


@pytest.mark.parametrize(("go", "condition", "operands"), [
    ("", "d = Identity(c)", "n,"),
    ("true = Constant<value_int = 1>() g = Cast<to = 9>(true)", "d = Identity(c)", "n, g"),
    ("", "most = Constant<value_int = 1>() d = Less(i, most)", "n,"),
    ("", "most = Constant<value_int = 1>() d = Less(i, most)", ","),
], ids=["counted", "told to go on", "ended before", "ended by its condition"])  # fmt: skip
def test_loops_that_are_known_to_end(go: str, condition: str, operands: str) -> None:
    text = LOOP.format(turns=3, go=go, condition=condition, operands=operands)
    text = text if "n" in operands else text.replace("<int64 n = {3}>", "")
    check(text, x=X)


@pytest.mark.parametrize("turns", [0, LONGEST + 1])
def test_loops_of_other_lengths_are_refused(turns: int) -> None:
    text = LOOP.format(turns=turns, go="", condition="d = Identity(c)", operands="n,")
    with pytest.raises(Unconvertible, match=f"dynamic length, or of more than {LONGEST}"):
        unroll(text)


SCAN = """g (float[2] s, float[{rows},2] x) => (float[2] t, float[{rows},2] y) {{
    t, y = Scan<num_scan_inputs = 1, scan_input_directions = [{back}],
        scan_output_directions = [{turned}], body = b (float[2] a, float[2] e) =>
        (float[2] c, float[2] d) {{ c = Add(a, e) d = Mul(c, e) }}>(s, x) }}"""


@pytest.mark.parametrize(("back", "turned"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_scans_both_ways(back: int, turned: int) -> None:
    check(SCAN.format(rows=3, back=back, turned=turned), s=np.float32([1, -1]), x=X)


@pytest.mark.parametrize(("rows", "reason"), [
    ("N", "a Scan of dynamic length: give its size as a number"),
    (9999, f"a Scan of 9999 steps: they come to more than {MAX_UNROLLED} nodes"),
])  # fmt: skip
def test_scans_of_too_many_steps_are_refused(rows: Any, reason: str) -> None:
    with pytest.raises(Unconvertible, match=reason):
        unroll(SCAN.format(rows=rows, back=0, turned=0))


IF = """g (bool c, float[3,2] x) => (float[p,q] y) {{
    y = If<then_branch = t () => (float[3,2] a) {{ a = Neg(x) }},
           else_branch = e () => (float[p,q] b) {{ b = {other} }}>(c) }}"""


@pytest.mark.parametrize("chosen", [True, False])
def test_branches_of_one_shape_are_chosen_among(chosen: bool) -> None:
    check(IF.format(other="Abs(x)"), c=chosen, x=X)


def test_branches_of_two_shapes_are_refused() -> None:
    with pytest.raises(Unconvertible, match=r"\(3, 2\) and \(2, 3\): give numbers"):
        unroll(IF.format(other="Transpose(x)"))


def test_nodes_are_counted_through_loops() -> None:
    """As many times as a loop is known to turn; else as often as one may be unrolled."""
    text = LOOP.format(turns=3, go="", condition="d = Identity(c)", operands="n,")
    graph = ir_of(text, 17)
    (loop,) = (n for n in graph.nodes if n.op == "Loop")
    body = loop.attrs["body"]
    assert isinstance(body, Graph)
    count = len(body.nodes)
    assert count_unrolled(graph) == len(graph.nodes) + 3 * count
    assert always_continues(body)
    placed = Body(body, lambda *_: ())
    assert most_iterations(placed) == min(LONGEST, MAX_UNROLLED // (count + 1))


def test_zeros_stand_for_what_is_left_out() -> None:
    assert fill_zeros(None, 2) == (0, 0) and fill_zeros((1, 0), 2) == (1, 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_reversed(axis: int) -> None:
    for named in (False, True):
        (got,) = compute(lambda g, x: reverse_rows(g, x, axis), X, named=named)
        np.testing.assert_array_equal(got, np.flip(X, axis))
