"""Branches and loops are subgraphs that compute what ONNX Runtime does, and read back the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.bridges.mxnet import run as run_mxnet
from serde.errors import Unconvertible
from serde.formats.tflite.from_ir import from_ir
from testing.mxnet_live import live_mxnet
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_onnx
from tests.mxnet.ops import test_control_flow as control
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
X = np.random.default_rng(7).standard_normal((2, 3)).astype(np.float32)
TURNS = [np.asarray(n, np.int64) for n in (0, 1, 5, 100)]
FLAGS = [np.asarray(b) for b in (True, False)]
LOOP = """g (int64 m, float[2,3] x) => (float[2,3] y) <float[3] w = {{1, 2, 3}}> {{
    k = Tanh(x)
    y = Loop(m, , x) <body = b (int64 i, bool go, float[2,3] s) => ({going} n, float[2,3] t) {{
        {body}
    }}>
}}"""
# A body, the operator that is written, what is fed to the first input, the operators of the file.
CASES = {
    "if": ("""g (bool c, float[2,3] x) => (float[2,3] y) {
        k = Tanh(x)
        y = If(c) <then_branch = a () => (float[2,3] p) { p = Add(x, k) },
                   else_branch = b () => (float[2,3] q) { q = Mul(k, k) }>
    }""", "IF", FLAGS),
    "if of constants and of values as they are": ("""g (bool c, float[2,3] x)
        => (float[2,3] y, float[2] z) {
        y, z = If(c) <
            then_branch = a () => (float[2,3] p, float[2] o)
                <float[2] one = {1, 1}> { p = Identity(x) o = Identity(one) },
            else_branch = b () => (float[2,3] q, float[2] r)
                <float[2] two = {2, 2}> { q = Neg(x) r = Identity(two) }>
    }""", "IF", FLAGS),
    "if within if": ("""g (bool c, float[2,3] x) => (float[2,3] y) <float[2,3] k = {1,2,3,4,5,6}> {
        y = If(c) <
            then_branch = a () => (float[2,3] p) {
                n = Not(c)
                p = If(n) <then_branch = d () => (float[2,3] e) { e = Add(x, k) },
                           else_branch = f () => (float[2,3] h) { h = Sub(x, k) }>
            },
            else_branch = b () => (float[2,3] q) { q = Mul(x, k) }>
    }""", "IF", FLAGS),
    "loop of a computed number of turns": (
        LOOP.format(going="bool", body="n = Identity(go) u = Add(s, k) t = Mul(u, k)"), "WHILE",
        TURNS,
    ),
    "loop that reads the number of the turn": (
        LOOP.format(going="bool", body="""n = Identity(go) f = Cast<to=1>(i) u = Add(s, f)
                    t = Mul(u, k)"""), "WHILE", TURNS,
    ),
    "loop that data ends": (
        LOOP.format(going="bool", body="""u = Add(s, w) t = Identity(u) a = ReduceSum<keepdims=0>(u)
                    l = Constant<value_float=30.0>() n = Less(a, l)"""), "WHILE", TURNS,
    ),
    "loop of a condition alone": ("""g (bool c, float[2,3] x) => (float[2,3] y) {
        y = Loop(, c, x) <body = b (int64 i, bool go, float[2,3] s) => (bool n, float[2,3] t) {
            t = Add(s, x) a = ReduceL1<keepdims=0>(t) l = Constant<value_float=50.0>()
            n = Less(a, l)
        }>
    }""", "WHILE", FLAGS),
    "loop of a condition and a number": ("""g (bool c, float[2,3] x) => (float[2,3] y, int64 k)
        <int64 m = {9}, int64 zero = {0}> {
        y, k = Loop(m, c, x, zero) <
            body = b (int64 i, bool go, float[2,3] s, int64 j) => (bool n, float[2,3] t, int64 o) {
                t = Mul(s, x) o = Add(j, i) a = ReduceMax<keepdims=0>(t)
                l = Constant<value_float=0.01>() n = Greater(a, l)
            }>
    }""", "WHILE", FLAGS),
    "long loop with stacked results": ("""g (float[3] w, float[2,3] x)
        => (float[2,3] y, float[80,2,3] r, int64[80] k) <int64 m = {80}> {
        y, r, k = Loop(m, , x) <
            body = b (int64 i, bool go, float[2,3] s) => (bool n, float[2,3] t, float[2,3] u, int64 o)
            { n = Identity(go) t = Mul(s, w) u = Add(t, x) o = Add(i, i) }>
    }""", "WHILE", [np.asarray([0.5, 1.0, -0.9], np.float32)]),
    "loop in a loop": ("""g (int64 m, float[2,3] x) => (float[2,3] y) {
        y = Loop(m, , x) <body = b (int64 i, bool go, float[2,3] s) => (bool n, float[2,3] t) {
            n = Identity(go)
            t = Loop(i, , s) <
                body = c (int64 j, bool on, float[2,3] p) => (bool o, float[2,3] q)
                { o = Identity(on) h = Add(p, x) q = Tanh(h) }>
        }>
    }""", "WHILE", TURNS[:3]),
    "if in a loop": ("""g (int64 m, float[2,3] x) => (float[2,3] y) <int64 two = {2}> {
        y = Loop(m, , x) <body = b (int64 i, bool go, float[2,3] s) => (bool n, float[2,3] t) {
            n = Identity(go)
            l = Less(i, two)
            t = If(l) <then_branch = a () => (float[2,3] p) { p = Add(s, x) },
                       else_branch = d () => (float[2,3] q) { q = Tanh(s) }>
        }>
    }""", "WHILE", TURNS[:3]),
    "convolution in a loop": ("""g (int64 m, float[1,2,4,4] x) => (float[1,2,4,4] y)
        <float[2,2,1,1] w = {0.5, 1, -1, 0.25}> {
        y = Loop(m, , x) <
            body = b (int64 i, bool go, float[1,2,4,4] s) => (bool n, float[1,2,4,4] t)
            { n = Identity(go) u = Conv(s, w) t = Relu(u) }>
    }""", "WHILE", TURNS[:3]),
    "integer layer in a loop": ("""g (int64 m, float[1,2,4,4] x) => (float[1,2,4,4] y)
        <int8[2,2,1,1] w = {0, 100, -100, 0}, float a = {0.02}, float u = {0.01}, int8 z = {3},
         int8 o = {0}> {
        y = Loop(m, , x) <
            body = b (int64 i, bool go, float[1,2,4,4] s) => (bool n, float[1,2,4,4] t) {
                n = Identity(go) q = QuantizeLinear(s, a, z) d = DequantizeLinear(q, a, z)
                k = DequantizeLinear(w, u, o) c = Conv(d, k) r = QuantizeLinear(c, a, z)
                t = DequantizeLinear(r, a, z)
            }>
    }""", "WHILE", TURNS[:3]),
    "short loop, unrolled": ("""g (float[3] w, float[2,3] x) => (float[2,3] y, float[3,2,3] r)
        <int64 m = {3}> {
        y, r = Loop(m, , x) <
            body = b (int64 i, bool go, float[2,3] s) => (bool n, float[2,3] t, float[2,3] u)
            { n = Identity(go) t = Mul(s, w) u = Add(t, x) }>
    }""", "MUL", [np.asarray([0.5, 1.0, -0.9], np.float32)]),
    "scan of many steps": ("""g (float[3] z, float[2000,3] x) => (float[3] y, float[2000,3] r) {
        y, r = Scan(z, x) <num_scan_inputs=1, scan_output_directions=[1],
            body = b (float[3] s, float[3] e) => (float[3] t, float[3] u)
            { a = Add(s, e) h = Sin(a) t = Mul(h, e) u = Neg(t) }>
    }""", "WHILE", [np.zeros(3, np.float32)]),
    "scan of many rows, without a state": ("""g (float[9999,2] x) => (float[9999,2] y) {
        y = Scan(x) <num_scan_inputs=1, body = b (float[2] e) => (float[2] u)
            { a = Softmax <axis=0> (e) u = Mul(a, e) }>
    }""", "WHILE", [np.linspace(-2, 2, 19998, dtype=np.float32).reshape(9999, 2)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


def feeds_of(graph, first):
    """An array for each input, the first one given."""
    rng = np.random.default_rng(3)
    later = {v.name: rng.standard_normal(v.static_shape).astype(np.float32) for v in graph.inputs}
    return {**later, graph.inputs[0].name: first}


@needs_litert
@pytest.mark.parametrize("name", CASES)
def test_control_flow_computes_what_onnx_runtime_does(name, worker, tmp_path: Path) -> None:
    body, op, firsts = CASES[name]
    graph = ir_of(body)
    path = tmp_path / "m.tflite"
    serde.save(graph, path)
    assert op in from_ir(graph).operators()
    again = serde.load(path)
    for first in firsts:
        feeds = feeds_of(graph, first)
        expected = run_onnx(graph, feeds)
        for got in (*run_both(worker, path, [*feeds.values()]), run_onnx(again, feeds)):
            for actual, wanted in zip(got, expected, strict=True):
                assert actual.dtype == wanted.dtype and actual.shape == wanted.shape
                np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


REFUSED = {
    "state that grows": ("""g (int64 m, float[2] x) => (float[k] y) {
        y = Loop(m, , x) <body = b (int64 i, bool go, float[j] s) => (bool n, float[l] t)
            { n = Identity(go) t = Concat<axis=0>(s, x) }>
    }""", "carries"),
    "stacked results of as many turns as data tells": ("""g (int64 m, float[2] x)
        => (float[2] z, float[k,2] y) {
        z, y = Loop(m, , x) <
            body = b (int64 i, bool go, float[2] s) => (bool n, float[2] t, float[2] u)
            { n = Identity(go) t = Neg(s) u = Add(t, x) }>
    }""", "stacked results"),
    "branches of other shapes": ("""g (bool c, float[2] x) => (float[k] y) {
        y = If(c) <then_branch = a () => (float[4] p) { p = Concat<axis=0>(x, x) },
                   else_branch = b () => (float[2] q) { q = Neg(x) }>
    }""", "branches that give"),
}  # fmt: skip


def test_layers_in_a_loop_are_integer_operators() -> None:
    written = from_ir(ir_of(CASES["integer layer in a loop"][0]))
    layers = [node for node in written.all_nodes() if node.op == "CONV_2D"]
    assert [node.outputs[0].type.name for node in layers] == ["INT8"]


MXNET = [  # networks, shapes of their inputs, and the operator that is written
    (control.chosen, [(3,), (3,)], "IF"), (control.chosen_twice, [(3,), (3,)], "IF"),
    (control.chosen_loop, [(4, 2), (2,)], "IF"), (control.until_the_end, [(1,), (1,)], "CONCATENATION"),
    (control.without_outputs, [(2, 3), (1, 3)], "WHILE"), (control.nested, [(80, 4), (1,)], "WHILE"),
    (control.running_sum, [(2000, 3), (3,)], "WHILE"),
]  # fmt: skip


@needs_litert
@pytest.mark.parametrize("case", MXNET, ids=lambda c: c[0].__name__)
def test_control_flow_of_mxnet(case, worker, tmp_path: Path) -> None:
    network, shapes, op = case
    mx = live_mxnet()
    rng = np.random.default_rng(5)
    feeds = {f"x{at}": rng.random(s).astype(np.float32) for at, s in enumerate(shapes)}
    heads = network(mx, *map(mx.sym.var, feeds))
    symbol = mx.sym.Group(heads) if isinstance(heads, list) else heads
    symbol.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0000.params"), {})
    graph = serde.load(tmp_path / "m-symbol.json", inputs={k: v.shape for k, v in feeds.items()})
    serde.save(graph, tmp_path / "m.tflite")
    assert op in from_ir(graph).operators()
    expected = run_mxnet(str(tmp_path / "m"), feeds)
    inputs = [feeds[v.name] for v in graph.inputs]
    for got in run_both(worker, tmp_path / "m.tflite", inputs):
        for actual, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


@needs_litert
def test_a_batch_by_name_stays_open_in_bodies(worker, tmp_path: Path) -> None:
    body = CASES["if in a loop"][0].replace("float[2,3]", "float[N,3]")
    graph = ir_of(body)
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (1, 4, 2):
        x = np.random.default_rng(batch).standard_normal((batch, 3)).astype(np.float32)
        feeds = {"m": np.asarray(4, np.int64), "x": x}
        (expected,) = run_onnx(graph, feeds)
        for (got,) in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_fixed_shape_is_refused(name: str) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(Unconvertible, match=reason):
        from_ir(ir_of(body))
