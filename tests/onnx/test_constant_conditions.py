"""An If whose condition is known becomes the branch it takes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.ir.graph import Graph
from serde.passes import drop_dead
from testing import directions
from testing.onnx_live import decode_text, ir_of, model_of

X = np.random.default_rng(0).standard_normal((1, 4)).astype(np.float32)
# What TorchScript writes for ``x.squeeze(0)``: a branch for each of the ranks it may give.
BRANCHES = """<then_branch = t () => (float[n] s) { s = Squeeze(x, ax) },
    else_branch = e () => (float[a,b] i) { i = Identity(x) }>"""
SQUEEZE = "y = If(c) " + BRANCHES
SIZE = "one = Constant<value_ints = [1]>() sh = Shape(x) d = Gather(sh, ax) c = Equal(d, one)"
CONDITIONS = {  # how the condition comes about, for x of shape (1, 4)
    "an initializer": ("", "bool c = {1}"),
    "an initializer of one axis": ("", "bool[1] c = {1}"),
    "a constant": ("c = Constant<value = bool {1}>()", ""),
    "folded": ("c = Not(f)", "bool f = {0}"),
    "a size": (SIZE, ""),
    "a rank": (
        "two = Constant<value_ints = [2]>() sh = Shape(x) r = Shape(sh) c = Equal(r, two)", ""),
    "several": (f"{SIZE.replace('c =', 'k =')} c = And(k, t)", "bool t = {1}"),
}  # fmt: skip
TARGETS = {
    **{f"opset {v}": {"opset": v} for v in (9, 11, 13, 17, 21)}, "relax": {"profile": "relax"},
}  # fmt: skip


def body(condition: str, shape: str = "1,4", output: str = "float[n] y") -> str:
    nodes, held = CONDITIONS[condition]
    more = f", {held}" if held else ""
    return f"g (float[{shape}] x) => ({output}) <int64[1] ax = {{0}}{more}> {{ {nodes} {SQUEEZE} }}"


def operators(graph: Graph) -> set[str]:
    return {node.op for node in drop_dead(graph).nodes}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_branch_taken_is_all_there_is(condition, target, tmp_path):
    onnx.save(model_of(body(condition), 16, 8), tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx", **TARGETS[target])
    done = onnx.load(tmp_path / "m.onnx")
    assert {n.op_type for n in done.graph.node} <= {"Squeeze", "Reshape"}
    assert [o.name for o in done.graph.output] == ["y"]
    session = onnxruntime.InferenceSession(done.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X[0])


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_other_formats(condition, form, tmp_path):
    onnx.save(model_of(body(condition), 16, 8), tmp_path / "source.onnx")
    path = tmp_path / directions.FILES[form]
    serde.convert(tmp_path / "source.onnx", path)
    (y,) = directions.RUN[form](path, {"x": X}, 100)
    np.testing.assert_array_equal(y, X[0])


def test_the_other_branch():
    graph = ir_of(body("a size", "3,4", "float[3,4] y"), 16)
    assert operators(graph) == {"Identity"}  # which gives the output its name
    assert graph.outputs[0].shape == (3, 4)


def test_a_branch_that_is_not_taken_may_be_anything():
    text = """g (float[1,4] x) => (float[1,4] y) <bool c = {1}> { y = If(c) <
        then_branch = t () => (float[1,4] a) { a = Relu(x) },
        else_branch = e () => (float[1,4] b) { b = NotAnOperator(x) }> }"""
    assert operators(ir_of(text, 16)) == {"Relu"}


def test_a_branch_in_a_branch():
    text = """g (float[1,4] x, bool d) => (float[1,4] y) <bool c = {0}> { y = If(d) <
        then_branch = t () => (float[1,4] a) { h = Neg(x) a = If(c) <
            then_branch = tt () => (float[1,4] p) { p = Relu(h) },
            else_branch = te () => (float[1,4] q) { q = Abs(h) }> },
        else_branch = e () => (float[1,4] b) { b = Exp(x) }> }"""
    (node,) = ir_of(text, 16).nodes
    assert [n.op for n in node.attrs["then_branch"].nodes] == ["Neg", "Abs"]


@pytest.mark.parametrize(
    ("compare", "holds"),
    [("Equal", True), ("Less", False), ("LessOrEqual", True), ("Greater", False),
     ("GreaterOrEqual", True)],
)  # fmt: skip
def test_a_size_by_name_compares_with_itself(compare, holds):
    text = f"""g (float[N,4] x, float[N] z) => (float[N,4] y) {{
        a = Shape<start = 0, end = 1>(x) b = Shape(z) c = {compare}(a, b) y = If(c) <
        then_branch = t () => (float[N,4] p) {{ p = Relu(x) }},
        else_branch = e () => (float[N,4] q) {{ q = Neg(x) }}> }}"""
    assert operators(ir_of(text, 16)) == {"Relu" if holds else "Neg"}


def test_a_size_by_name_that_may_be_one_stays_open(tmp_path):
    text = body("a size", "N,4", "float[?] y").replace("float[?] y", "float y")
    onnx.save(model_of(text, 16, 8), tmp_path / "source.onnx")
    assert "If" in operators(serde.load(tmp_path / "source.onnx"))
    fixed = serde.load(tmp_path / "source.onnx", inputs={"x": (1, 4)})
    assert operators(fixed) == {"Squeeze"}
    assert operators(serde.load(tmp_path / "source.onnx", static={"N": 1})) == {"Squeeze"}


def test_a_condition_that_is_computed_stays():
    text = "g (float[1,4] x, bool c) => (float[m] y) <int64[1] ax = {0}> { " + SQUEEZE + " }"
    assert "If" in operators(ir_of(text, 16))
    assert decode_text(text, 16).nodes[0].op == "If"
