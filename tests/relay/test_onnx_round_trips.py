"""Relay → ONNX → Relay → ONNX: numbers and names stay; nothing here needs TVM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode as decode_model
from serde.formats.relay.decode import decode
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.io.params import read_params
from serde.formats.relay.to_ir import to_ir
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.directions import TOLERANCE
from testing.node_cases import all_cases
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_onnx
from testing.relay.round_trips import there_and_back
from testing.relay.running import assert_equal, graph_of, names, read_module, run

ARCHIVE = Path(__file__).parent / "corpus.zip"
UNDEFINED = {"op-all_class_nms", "dyn-unique"}  # rows TVM leaves as they are in memory
CASES = [n for n in names(ARCHIVE) if n not in UNDEFINED]


def again(graph, folder, form):
    """A graph written as Relay and read back."""
    path, *params = encode(from_ir(graph), folder / f"m.{form}")
    return tidy(to_ir(decode(path, params=params[0] if params else None)))


@pytest.mark.parametrize("name", CASES)
def test_modules_come_back(tmp_path, name):
    case = read_module(ARCHIVE, name)
    graph = graph_of(case, name, tmp_path)
    back = again(graph, tmp_path, "json")
    assert [v.name for v in back.inputs] == [v.name for v in graph.inputs]
    assert [v.name for v in back.outputs] == [v.name for v in graph.outputs]
    assert_equal(run(back, case.feeds, 17, tmp_path), case.outputs)


@pytest.mark.parametrize("name", CASES[::4])
def test_text_comes_back(tmp_path, name):
    """Names are spelled as the text can hold them."""
    case = read_module(ARCHIVE, name)
    graph = graph_of(case, name, tmp_path)
    back = again(graph, tmp_path, "relay")
    feeds = dict(zip((v.name for v in back.inputs), map(case.feeds.get, [v.name for v in graph.inputs]), strict=True))  # fmt: skip
    assert [v.name for v in back.outputs] == [v.name for v in graph.outputs]
    assert_equal(run(back, feeds, 17, tmp_path), case.outputs)


@pytest.mark.parametrize("form", ["json", "relay"])
@pytest.mark.parametrize(
    "node",
    ["DepthToSpace<blocksize=1>(x)", "SpaceToDepth<blocksize=1>(x)", "TopK<axis=1>(x, none)"],
)
def test_forms_that_come_back(tmp_path, node, form):
    """Attributes that TVM leaves out as defaults, and a 0 that it takes for all."""
    y = "y, i" if node.startswith("TopK") else "y"
    ir = ir_of(
        f"g (float[2,4,1,1] x) => (float[a,b,c,d] y) <int64[1] none = {{0}}> {{ {y} = {node} }}"
    )
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(2, 4, 1, 1)}
    assert_equal(run_onnx(again(ir, tmp_path, form), feeds), run_onnx(ir, feeds))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_the_largest_uint64_comes_back(tmp_path, op):
    ir = ir_of(f"g (uint64[4] x) => (uint64[1] y) {{ y = {op} (x) }}")
    x = np.array([2**64 - 2, 2**63, 6, 3], np.uint64)
    (output,) = run_onnx(again(ir, tmp_path, "json"), {"x": x})
    assert output == [x.max() if op == "ReduceMax" else x.min()]


def test_scales_of_an_axis_come_back(tmp_path):
    """As an operand of so many elements that the run tells."""
    body = """g (uint8[2,3] x, float[2] s) => (float[2,3] y) <uint8[2] z = {1, 2}>
    { y = DequantizeLinear <axis: int = 0> (x, s, z) }"""
    ir = ir_of(body)
    feeds = {"x": np.arange(6, dtype=np.uint8).reshape(2, 3), "s": np.float32([0.5, 3])}
    assert_equal(run_onnx(again(ir, tmp_path, "json"), feeds), run_onnx(ir, feeds))


@pytest.mark.parametrize("sizes", [(3, 0), (3, 1), (1, 4)])
def test_expansion_to_dynamic_sizes_comes_back(tmp_path, sizes):
    ir = ir_of("g (float[n,1] x, int64[2] s) => (float[a,b] y) { y = Expand (x, s) }")
    feeds = {"x": np.ones((3, 1), np.float32), "s": np.array(sizes, np.int64)}
    assert_equal(run_onnx(again(ir, tmp_path, "json"), feeds), run_onnx(ir, feeds))


@pytest.mark.parametrize(
    "node", ['BitShift<direction="RIGHT">(x, y)', "Max(x, y)", "Mod(x, y)", "Div(x, y)"]
)
def test_large_uint64_come_back(tmp_path, node):
    """No signed type holds them."""
    body = f"g (uint64[4] x) => (uint64[4] z) <uint64[4] y = {{7, 22, 1, 13}}> {{ z = {node} }}"
    ir, feeds = ir_of(body), {"x": np.array([2**64 - 2, 2**63, 6, 0], np.uint64)}
    assert_equal(run_onnx(again(ir, tmp_path, "json"), feeds), run_onnx(ir, feeds))


@pytest.mark.parametrize("form", ["json", "relay"])
def test_no_constant_has_a_size_of_0_behind_another(tmp_path, form):
    """TVM fails to load one: ``Invalid DLTensor file format``."""
    graph = ir_of("g (float[2,0] x) => (float[2,0] y) <float[2,0] none = {}> { y = Add(x, none) }")
    path, *params = encode(from_ir(graph), tmp_path / f"m.{form}")
    assert not params and "zeros" in Path(path).read_text()
    feeds = {"x": np.ones((2, 0), np.float32)}
    assert_equal(run_onnx(again(graph, tmp_path, form), feeds), run_onnx(graph, feeds))


@pytest.mark.parametrize("name", ["byoc-MergeComposite", "cf-if-nested", "name-space"])
def test_modules_come_back_by_way_of_onnx(tmp_path, name):
    """conformance/round_trips.py takes all there are."""
    case = read_module(ARCHIVE, name)
    ir = graph_of(case, name, tmp_path)
    weights = read_params(tmp_path / "params.bin") if case.params else {}
    trip = there_and_back(ir, weights, case.feeds, case.outputs, tmp_path)
    assert max(trip[:2]) < TOLERANCE and trip[2] == []
    assert name != "byoc-MergeComposite" or weights


def test_weights_keep_their_names(tmp_path):
    case = read_module(ARCHIVE, "fe-onnx-lstm")
    graph = graph_of(case, "m", tmp_path)
    held = {v.name for v in graph.constants() if v.dtype.kind == "f" and v.shape}
    back = {v.name for v in again(graph, tmp_path, "json").constants()}
    assert len(held & back) >= len(held) - 1  # one is turned round on the way


def node_model(name):
    return next(c.model for c in all_cases() if c.name == name)


def test_what_relay_has_not_is_listed_at_once():
    """An input of strings and an operator that draws: two problems, with their names."""
    graph = raise_to_ir(decode_model(node_model("test_training_dropout")))
    with pytest.raises(Unconvertible, match="Dropout .*draws which elements it drops"):
        from_ir(graph)
    report = serde.check(node_model("test_equal_string"), to="relay")
    assert {(p.op, p.names) for p in report.problems} >= {("input", ("x",)), ("input", ("y",))}
    assert "strings" in report.problems[0].reason


def test_open_sizes_tvm_has_no_function_for_are_refused():
    from serde.ir.graph import DType
    from serde.spec.onnx_builder import OnnxBuilder

    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, ("N", 3))
    with pytest.raises(Unconvertible, match="nn.acos|acos of a tensor of dynamic size"):
        from_ir(g.build([g.Acos(x)]))
    y = g.emit("Dropout", [x, 0.5, True], {})
    with pytest.raises(Unconvertible) as caught:
        from_ir(g.build([g.Acos(x), y]))
    assert [p.op for p in caught.value.problems] == ["Dropout", "Acos"]
    assert "fast_erf" in {n.op for n in from_ir(g.build([g.Erf(x)])).nodes}
