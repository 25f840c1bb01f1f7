"""Functions of a module as model-local functions of the file: which, with what, and the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.errors import UsageError
from serde.formats.relay.text.parser import parse_text
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph
from serde.passes import tidy
from testing.relay.running import assert_equal, graph_of, names, read_module

ARCHIVE = Path(__file__).with_name("corpus.zip")
V = "Tensor[(2), float32]"
X = np.array([0.5, -1.5], np.float32)

TWICE = f"def @twice(%y: {V}) {{ add(%y, %y) }}\n"
PROGRAMS = {  # the text, the functions of the file, what it computes
    "one function for two calls": (
        TWICE + f"def @main(%x: {V}) {{ @twice(exp(@twice(%x))) }}",
        ["twice"], 2 * np.exp(2 * X)),
    "one for each signature": (
        "def @twice(%y) { add(%y, %y) }\n"
        f"def @main(%x: {V}) {{ (@twice(%x), @twice(sum(%x))) }}",
        ["twice", "twice_1"], (2 * X, np.float32(2 * X.sum()))),
    "calls within calls": (
        TWICE + f"def @f(%a: {V}, %b: {V}) {{ tanh(@twice(multiply(%a, %b))) }}\n"
        f"def @main(%x: {V}) {{ @f(%x, exp(%x)) }}",
        ["twice", "f"], np.tanh(2 * X * np.exp(X))),
    "several results": (
        f"def @pair(%y: {V}) {{ (exp(%y), negative(%y)) }}\n"
        f"def @main(%x: {V}) {{ let %p = @pair(%x); (%p.0, add(%p.1, %p.0)) }}",
        ["pair"], (np.exp(X), np.exp(X) - X)),
    "what a closure is around": (
        f"def @main(%x: {V}) {{ let %a = exp(%x); let %f = fn (%y: {V}) {{ add(%a, tanh(%y)) }}; "
        "%f(%x) }",
        ["f"], np.exp(X) + np.tanh(X)),
    "a choice inside": (
        TWICE + f"def @f(%y: {V}, %k: {V}) {{ if (less(sum(%y), 0f)) {{ @twice(%k) }} else "
        f"{{ add(%y, %k) }} }}\ndef @main(%x: {V}) {{ @f(%x, exp(%x)) }}",
        ["twice", "f"], 2 * np.exp(X)),
    "a call in a loop": (
        TWICE + f"def @go(%k: int32, %y: {V}) {{ if (less(%k, 1)) {{ %y }} else "
        "{ @go(subtract(%k, 1), tanh(@twice(%y))) } }\n"
        f"def @main(%x: {V}, %n: int32) {{ @go(%n, %x) }}",
        ["twice"], np.tanh(2 * np.tanh(2 * X))),
    "functions are no operands": (
        TWICE + f"def @map(%f: fn ({V}) -> {V}, %y: {V}) {{ exp(%f(%y)) }}\n"
        f"def @main(%x: {V}) {{ @map(@twice, %x) }}",
        ["twice"], np.exp(2 * X)),
    "a constant of its own": (
        f"def @f(%y: {V}) {{ multiply(add(%y, 2f), 3f) }}\ndef @main(%x: {V}) {{ @f(@f(%x)) }}",
        ["f"], 3 * (3 * (X + 2) + 2)),
}  # fmt: skip


def graph(text: str) -> Graph:
    return tidy(to_ir(module_graph(parse_text('#[version = "0.0.5"]\n' + text))))


def export(ir: Graph, path: Path, **options: object) -> onnx.ModelProto:
    serde.save(ir, path, **{"opset": 17, **options})
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def numbers(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, again: bool, tmp_path: Path) -> None:
    text, functions, expected = PROGRAMS[name]
    path = tmp_path / "m.onnx"
    model = export(graph(text), path)
    assert [f.name for f in model.functions] == functions
    if again:  # the file is read as any other
        export(serde.load(path), tmp_path / "n.onnx", opset=21)
        path = tmp_path / "n.onnx"
    actual = numbers(path, {"x": X, "n": np.array(2, np.int32)})
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_parameters_keep_their_names(tmp_path: Path) -> None:
    text, _, _ = PROGRAMS["calls within calls"]
    twice, f = export(graph(text), tmp_path / "m.onnx").functions
    assert (list(twice.input), list(f.input)) == (["y"], ["a", "b"])
    assert f.domain == "relay"


@pytest.mark.parametrize("options", [{"functions": "inline"}, {"opset": 13}])
def test_inlined(options: dict[str, object], tmp_path: Path) -> None:
    text, _, expected = PROGRAMS["calls within calls"]
    model = export(graph(text), tmp_path / "m.onnx", **options)
    assert not model.functions
    (actual,) = numbers(tmp_path / "m.onnx", {"x": X})
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_refuses_what_is_no_choice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="functions='some' is not one of keep, all, inline"):
        export(graph(PROGRAMS["calls within calls"][0]), tmp_path / "m.onnx", functions="some")


@pytest.mark.parametrize(
    ("name", "keep", "first"),
    [
        ("byoc-MergeComposite", "keep", "mylib.conv_mul_add_relu"),
        ("pass-FuseOps0", "keep", None),
        ("pass-FuseOps0", "all", "fused_nn_conv2d"),
    ],
)
def test_partitions_and_fusions(name: str, keep: str, first: str | None, tmp_path: Path) -> None:
    assert name in names(ARCHIVE)
    case = read_module(ARCHIVE, name)
    model = export(graph_of(case, name, tmp_path), tmp_path / "m.onnx", functions=keep)
    assert [f.name for f in model.functions][:1] == ([first] if first else [])
    assert_equal(numbers(tmp_path / "m.onnx", case.feeds), case.outputs)


def test_layers_are_merged_across_the_functions_of_a_fusion(tmp_path: Path) -> None:
    case = read_module(ARCHIVE, "pass-FuseOps0")
    model = export(graph_of(case, "pass-FuseOps0", tmp_path), tmp_path / "m.onnx")
    assert "Gemm" in {n.op_type for n in model.graph.node}
    kept = export(graph_of(case, "pass-FuseOps0", tmp_path), tmp_path / "a.onnx", functions="all")
    bodies = [[n.op_type for n in f.node] for f in kept.functions]
    assert ["MatMul"] in bodies and not any("Gemm" in ops for ops in bodies)
