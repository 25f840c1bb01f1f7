"""Models in parts: what parts hold, what goes between them, and that they compute the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde import plugins
from serde.backends import judge
from serde.backends.manifest import read_manifest
from serde.backends.partition import partition
from serde.backends.parts import Partitioned
from serde.backends.verify import verify_parts
from serde.errors import MissingDependency, UsageError
from serde.formats.relay.io.params import read_params
from serde.ir.graph import DType, Graph, Node, Value
from serde.legalize.target import Target
from serde.spec.onnx_builder import OnnxBuilder
from testing import onnx_live
from testing.cpu_limit import limit_cpu
from testing.mxnet_live import live_mxnet
from testing.onnx_live import DIGITS, ir_of
from tests.tflite.litert_live import why_not as why_no_litert
from tests.torch.torch_live import why_not as why_no_torch


def target_of(*ops: str, opset: int = 21) -> Target:
    return Target("some", opset, {op: {} for op in ops})


def feeds_of(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        v.name: np.asarray(
            rng.random(v.shape) < 0.5 if v.dtype is DType.BOOL
            else rng.standard_normal(v.shape) if v.type.kind == "f" else rng.integers(1, 4, v.shape),
            v.type.numpy,
        )
        for v in graph.inputs
    }  # fmt: skip


def assert_parts_hold(result: Partitioned) -> None:
    """Parts are in order, and the backend's have operators that it takes only."""
    known = {v.name for v in result.graph.inputs}
    for part in result.parts:
        assert {v.name for v in part.graph.inputs} <= known
        known |= {v.name for v in part.graph.outputs}
        if part.kind == "accelerator":
            nodes = list(part.legalized.all_nodes())
            supports = result.backend.target.supports
            assert nodes and (supports is None or {n.op for n in nodes} <= supports.keys())
    assert {v.name for v in result.graph.outputs} <= known


def assert_same(graph: Graph, result: Partitioned, folder, remainder: str = "onnx") -> None:
    """The parts compute what the whole does."""
    assert_parts_hold(result)
    result.save(folder, remainder)
    feeds = feeds_of(graph)
    got = serde.run(folder, feeds)
    assert list(got) == [v.name for v in graph.outputs]
    for value, expected in zip(got.values(), onnx_live.run(graph, feeds), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
        assert value.dtype == expected.dtype and value.shape == expected.shape


TWO = (
    "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)\n b = Erf(a)\n c = Relu(b)\n y = Add(a, c) }"
)


def test_parts_are_in_order_and_typed(tmp_path):
    graph = ir_of(TWO)
    result = partition(graph, target_of("Relu", "Add"))
    assert [p.name for p in result.parts] == ["accelerator_0", "remainder_0", "accelerator_1"]
    assert [[n.op for n in p.graph.nodes] for p in result.parts] == [
        ["Relu"],
        ["Erf"],
        ["Relu", "Add"],
    ]
    assert [(e.value.name, e.source, e.target, e.bytes) for e in result.edges()] == [
        ("x", "", "accelerator_0", 24), ("a", "accelerator_0", "remainder_0", 24),
        ("b", "remainder_0", "accelerator_1", 24), ("a", "accelerator_0", "accelerator_1", 24),
        ("y", "accelerator_1", "", 24),
    ]  # fmt: skip
    assert result.bytes_moved == 5 * 24
    assert_same(graph, result, tmp_path / "parts")
    (relu, _, _) = read_manifest(tmp_path / "parts").parts
    assert (relu.operators, relu.inputs[0].dtype, relu.inputs[0].shape) == (
        {"Relu": 1},
        "float32",
        [2, 3],
    )


NOTHING, EVERYTHING = target_of("Erf"), "opset 13"
EDGE_CASES = {
    "an output that is an input": "g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }",
    "a constant output": "g (float[2] x) => (float[2] y, float[2] z) <float[2] z = {1, 2}> { y = Relu(x) }",
    "two readers outside": "g (float[2] x) => (float[2] y, float[2] z) "
    "{ a = Relu(x)\n y = Neg(a)\n z = Abs(a) }",
    "an optional operand": "g (float[2] x) => (float[2] y) <float m = {1}> { y = Clip(x, , m) }",
    "two results": "g (float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x)\n"
    "  c = Relu(a)\n y = Add(b, c) }",
    "a scalar": "g (float x) => (float y) { a = Relu(x)\n y = Neg(a) }",
    "bools": "g (bool[2] x) => (bool[2] y) { a = Not(x)\n y = And(a, x) }",
}  # fmt: skip


@pytest.mark.parametrize("case", EDGE_CASES)
@pytest.mark.parametrize("backend", [NOTHING, EVERYTHING, target_of("Relu", "Not", "Clip")])
def test_edge_cases(tmp_path, case, backend):
    graph = ir_of(EDGE_CASES[case])
    assert_same(graph, partition(graph, backend), tmp_path / "parts")


def test_limits_leave_small_pieces_in_the_remainder():
    graph = ir_of(TWO)
    backend = target_of("Relu", "Add")
    assert len(partition(graph, backend, min_nodes=2).accelerator_parts) == 1
    assert partition(graph, backend, min_nodes=3).accelerator_parts == ()
    assert partition(graph, backend, min_flops=1).accelerator_parts == ()
    assert partition(graph, backend, max_parts=0).accelerator_parts == ()
    (kept,) = partition(graph, backend, max_parts=1).accelerator_parts
    assert [n.op for n in kept.graph.nodes] == ["Relu", "Add"]
    with pytest.raises(UsageError, match="min_nodes=-1: the least is 1"):
        partition(graph, backend, min_nodes=-1)


def test_the_parts_with_the_most_multiply_adds_are_kept():
    graph = ir_of(
        "g (float[2,3] x, float[3,3] w) => (float[2,3] y)"
        "{ a = MatMul(x, w)\n b = Erf(a)\n c = Relu(b)\n d = Relu(c)\n y = Relu(d) }"
    )
    result = partition(graph, target_of("MatMul", "Relu"), max_parts=1)
    (kept,) = result.accelerator_parts
    assert [n.op for n in kept.graph.nodes] == ["MatMul"] and kept.multiply_adds == 18


IF = (
    "g (bool c, float[2] x) => (float[2] y) { a = Neg(x)\n b = If (c) <"
    "then_branch = t () => (float[2] p) { q = Relu(a)\n p = Erf(q) },"
    "else_branch = e () => (float[2] r) { r = Relu(x) }>\n y = Neg(b) }"
)
LOOP = (
    "g (float[2] x) => (float[2] y, float[3,2] s) <int64 m = {3}, bool go = {1}> { a = Neg(x)\n"
    "y, s = Loop (m, go, x) <body = b (int64 i, bool k, float[2] u) => (bool k2, float[2] v, float[2] w)"
    "{ k2 = Identity(k)\n p = Add(u, a)\n w = Erf(p)\n v = Relu(w) }> }"
)
SCAN = (
    "g (float[3,2] x, float[2] s) => (float[2] y, float[3,2] z) { y, z = Scan<num_scan_inputs=1,"
    "body = b (float[2] u, float[2] v) => (float[2] w, float[2] q)"
    "{ p = Add(u, v)\n w = Relu(p)\n q = Neg(w) }>(s, x) }"
)


@pytest.mark.parametrize("text", [IF, LOOP, SCAN])
@pytest.mark.parametrize("control_flow", ["whole", "inside"])
@pytest.mark.parametrize(
    "backend",
    ["opset 21", target_of("Relu", "Neg"), target_of("Relu", "Add", "If", "Loop", "Scan", "Erf", "Neg")],
)  # fmt: skip
def test_control_flow(tmp_path, text, control_flow, backend):
    graph = ir_of(text)
    result = partition(graph, backend, control_flow=control_flow)
    assert_same(graph, result, tmp_path / "parts")


def test_subgraphs_are_partitioned_inside(tmp_path):
    result = partition(ir_of(LOOP), target_of("Relu", "Neg"), control_flow="inside")
    control = next(p for p in result.parts if p.kind == "control")
    assert [p.kind for p in control.bodies["body"].parts] == ["remainder", "accelerator"]
    default = partition(ir_of(LOOP), target_of("Relu", "Neg"))
    assert [p.kind for p in default.parts] == ["accelerator", "remainder"]


def test_results_that_nothing_reads(tmp_path):
    graph = ir_of(
        "g (int64 m, float[2] x) => (float[2] y) { y, , = Loop (m, , x, x) <body = b (int64 i,"
        " bool k, float[2] u, float[2] t) => (bool k2, float[2] v, float[2] s, float[2] w)"
        "{ k2 = Identity(k)\n w = Erf(u)\n v = Relu(w)\n s = Relu(t) }> }"
    )
    result = partition(graph, target_of("Relu"), control_flow="inside")
    assert [p.kind for p in result.parts] == ["control"]
    result.save(tmp_path / "parts")
    x = np.array([1, -1], np.float32)
    got = serde.run(tmp_path / "parts", {"m": np.array(2), "x": x})
    np.testing.assert_allclose(got["y"], [math.erf(math.erf(1)), 0], rtol=1e-6)


def test_parts_say_the_versions_of_their_domains(tmp_path):
    text = (
        'ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2,2] x) => (float[2,2] y)'
        " { s = ai.onnx.ml.TreeEnsembleRegressor<n_targets=1, nodes_treeids=[0,0,0],"
        " nodes_nodeids=[0,1,2], nodes_featureids=[1,0,0], nodes_truenodeids=[1,0,0],"
        ' nodes_falsenodeids=[2,0,0], nodes_values=[0.0,0.0,0.0], nodes_modes=["BRANCH_LT",'
        ' "LEAF", "LEAF"], target_treeids=[0,0], target_nodeids=[1,2], target_ids=[0,0],'
        " target_weights=[2.0,3.0]>(x) r = Relu(x) y = Add(r, s) }"
    )
    onnx.save(onnx.parser.parse_model(f"<{text}"), tmp_path / "m.onnx")
    graph = serde.load(tmp_path / "m.onnx")
    partition(graph, target_of("Relu", "Add")).save(tmp_path / "parts")
    got = serde.run(tmp_path / "parts", {"x": np.float32([[1, -1], [5, 0]])})
    np.testing.assert_array_equal(got["y"], [[3, 2], [8, 3]])


@pytest.mark.parametrize("turns", [0, 2])
def test_a_loop_that_ends_early_gathers_what_it_ran(tmp_path, turns):
    graph = ir_of(
        "g (int64 m, bool go, float[2] x) => (float[2] y, float[n,2] s) {"
        "y, s = Loop (m, go, x) <body = b (int64 i, bool k, float[2] u) => "
        "(bool k2, float[2] v, float[2] w) { k2 = Identity(k)\n w = Erf(u)\n v = Relu(w) }> }"
    )
    partition(graph, target_of("Relu"), control_flow="inside").save(tmp_path / "parts")
    feeds = {"m": np.array(turns), "go": np.array(True), "x": np.array([1, -1], np.float32)}
    got = serde.run(tmp_path / "parts", feeds)
    expected = onnx_live.run(graph, feeds)
    for a, b in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
        assert a.shape == b.shape and a.dtype == b.dtype


OPERATORS = ("Relu", "Neg", "Add", "Mul", "Erf", "Transpose")


def random_graph(rng: random.Random, count: int, operators: Sequence[str] = OPERATORS) -> Graph:
    values = [Value(n, DType.FLOAT32, (2, 2)) for n in ("p", "q")]
    inputs, nodes = tuple(values), []
    for number in range(count):
        op = rng.choice(operators)
        operands = [rng.choice(values[-6:]) for _ in range(2 if op in ("Add", "Mul") else 1)]
        attrs = {"perm": (1, 0)} if op == "Transpose" else {}
        value = Value(f"v{number}", DType.FLOAT32, (2, 2))
        nodes.append(Node(op, tuple(operands), (value,), attrs, name=f"n{number}"))
        values.append(value)
    read = {v for n in nodes for v in n.inputs}
    return Graph("g", inputs, tuple(v for v in values if v not in read), tuple(nodes))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_and_operator_lists(tmp_path, seed):
    rng = random.Random(seed)
    graph = random_graph(rng, 25)
    ops = rng.sample(OPERATORS, rng.randint(1, 5))
    assert_same(graph, partition(graph, target_of(*ops)), tmp_path / "parts")


@pytest.mark.parametrize("size", [4, 200])
def test_nodes_that_share_a_constant_are_judged_once(monkeypatch, size):
    judged = []
    of_one = judge._judge
    monkeypatch.setattr(judge, "_judge", lambda n, *rest: judged.append(n) or of_one(n, *rest))
    builder = OnnxBuilder("g")
    value = builder.input("x", DType.FLOAT32, (size,))
    shared, own = (builder.const(np.arange(size, dtype=np.float32) + i) for i in range(2))
    for _ in range(20):
        value = builder.Mul(value, shared)
    graph = builder.build([builder.Mul(value, own)])
    verdicts = judge.judge_nodes(graph, target_of("Mul"))
    assert len(judged) == 2 and all(v.is_taken for v in verdicts.values())


def test_twenty_thousand_nodes_are_partitioned_in_seconds():
    rng = random.Random(0)
    graph = random_graph(rng, 20_000, ["Relu", "Neg", "Add", "Mul", "Transpose"] * 100 + ["Erf"])
    with limit_cpu(30):
        result = partition(graph, target_of("Relu", "Neg", "Add", "Mul", "Transpose"))
    assert len(result.accelerator_parts) > 10
    assert_parts_hold(result)


def test_every_format_that_is_written_and_run_can_be_the_remainder():
    formats = [f for f in plugins.installed_formats() if f.encode and f.runtime]
    assert [f.name for f in formats] == ["mxnet", "onnx", "relay", "tflite", "torch"]
    assert {f.name for f in formats} <= set(plugins.remainder_formats())


@pytest.mark.parametrize("remainder", ["onnx", "mxnet", "tflite", "torch"])
def test_a_model_of_mxnet(tmp_path, remainder):
    lacks = {"tflite": why_no_litert, "torch": why_no_torch}.get(remainder, str)()
    if lacks:
        pytest.skip(lacks)
    if remainder == "mxnet":
        live_mxnet()
    graph = serde.load(DIGITS, inputs={"data": (2, 1, 8, 8)})
    result = serde.partition(graph, target_of("Conv", "Relu", "Gemm"))
    assert len(result.accelerator_parts) == 4
    assert_same(graph, result, tmp_path / "parts", remainder)


def test_a_remainder_in_relay_runs_in_tvm(tmp_path):
    """TVM is in a process of its own here: it runs the part's file."""
    from testing.relay import tvm_live

    tvm_live.ask("ops")
    graph = serde.load(DIGITS, inputs={"data": (2, 1, 8, 8)})
    partition(graph, target_of("Conv", "Relu", "Gemm")).save(tmp_path / "parts", "relay")

    def load(path):
        weights = Path(path).with_suffix(".params")
        held = read_params(weights) if weights.exists() else {}
        arrays = {name: tensor.load() for name, tensor in held.items()}
        return lambda feeds: tvm_live.run("text", Path(path).read_text(), {**feeds, **arrays})

    feeds = feeds_of(graph)
    (got,) = serde.run(tmp_path / "parts", feeds, {"remainder": load}).values()
    np.testing.assert_allclose(got, onnx_live.run(graph, feeds)[0], atol=1e-5)


def test_parts_are_verified_without_the_framework_of_the_source(tmp_path, monkeypatch):
    def refuse():
        raise MissingDependency("MXNet is needed")

    monkeypatch.setattr("serde.bridges.mxnet.import_mxnet", refuse)
    monkeypatch.setattr("serde.bridges.mxnet._runs_here", lambda kernels="onednn": True)
    result = partition(DIGITS, target_of("Conv", "Relu"))
    result.save(tmp_path / "parts")
    done = verify_parts(DIGITS, result.graph, tmp_path / "parts")
    assert done.ok and done.source.startswith("the whole model in ONNX Runtime")
    hidden = "raise ModuleNotFoundError(\"No module named 'onnxruntime'\")"
    (tmp_path / "onnxruntime.py").write_text(hidden)
    monkeypatch.syspath_prepend(tmp_path)
    done = verify_parts(DIGITS, result.graph, tmp_path / "parts")
    assert not done.done and done.statement.startswith("not compared: neither")
