"""A format of images with channels last, bytes and subgraphs, by documented names only."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from serde_slate import FORMAT
from serde_slate.codec import FIRST_LINE

import serde
from serde import plugins
from serde.errors import MalformedFile, Unconvertible
from serde.plugins import targets
from testing.onnx_live import model_of, run_model

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 5, 4, 2)).astype(np.float32)
W, B = RNG.standard_normal((2, 3, 2, 3)).astype(np.float32), np.float32([0.5, 0, -0.5])


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder to work in, where the format is installed."""
    entries, load = plugins._entries, plugins._load
    mine = {**entries("serde.formats"), "slate": None}
    monkeypatch.setattr(
        plugins, "_entries", lambda group: mine if group == "serde.formats" else entries(group)
    )
    monkeypatch.setattr(
        plugins, "_load", lambda group, n: FORMAT if n == "slate" else load(group, n)
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, inputs, weights, nodes, outputs):
    """A file, written without serde."""
    offset, tables, data = 0, [], b""
    for name, array in weights.items():
        tables.append({"name": name, "type": "float32", "shape": array.shape, "offset": offset})
        data, offset = data + array.tobytes(), offset + array.nbytes
    table = {"inputs": inputs, "weights": tables, "nodes": nodes, "outputs": outputs}
    path.write_bytes(FIRST_LINE + json.dumps(table).encode() + b"\n" + data)


def node(op, inputs, output, graphs=(), **attrs):
    return {"op": op, "inputs": inputs, "outputs": [output], "attrs": attrs, "graphs": dict(graphs)}


def convolve(x, w):
    """Images and filters with channels last; no pads."""
    high, wide = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    y = np.zeros((len(x), high, wide, w.shape[3]), np.float32)
    for i in range(high):
        for j in range(wide):
            y[:, i, j] = np.tensordot(x[:, i : i + w.shape[0], j : j + w.shape[1]], w, 3)
    return y


IMAGE = {"name": "x", "type": "float32", "shape": [1, 5, 4, 2]}


def write_layers(path, scale=0.1, zero=3):
    nodes = [
        node("quantize", ["x"], "q", scale=scale, zero=zero),
        node("dequantize", ["q"], "d", scale=scale, zero=zero),
        node("conv", ["d", "w", "b"], "c"),
        node("relu", ["c"], "y"),
    ]
    write(path, [IMAGE], {"w": W, "b": B}, nodes, ["y"])


def compute_layers(x, scale=0.1, zero=3):
    q = np.clip(np.round(x / np.float32(scale)) + zero, -128, 127)
    return np.maximum(convolve((q - zero).astype(np.float32) * np.float32(scale), W) + B, 0)


@pytest.mark.parametrize("opset", [11, 21])
def test_layouts_and_bytes(folder, opset):
    write_layers(folder / "m.slate")
    report = serde.convert("m.slate", "m.onnx", opset=opset)
    assert report.source_format == "slate" and report.operators["Conv"] == 1
    (y,) = run_model(onnx.load("m.onnx"), {"x": X})
    np.testing.assert_allclose(y, compute_layers(X), rtol=1e-4, atol=1e-5)


def test_there_and_back(folder):
    write_layers(folder / "m.slate")
    serde.convert("m.slate", "m.onnx")
    serde.convert("m.onnx", "back.slate")
    serde.convert("back.slate", "again.onnx")
    (y,) = run_model(onnx.load("again.onnx"), {"x": X})
    np.testing.assert_allclose(y, compute_layers(X), rtol=1e-4, atol=1e-5)


def test_weights_stay_in_their_file(folder):
    write_layers(folder / "m.slate")
    graph = serde.load("m.slate")
    slices = [v.tensor.where for v in FORMAT.decode(folder / "m.slate").constants()]
    assert all(s is not None and s.path.endswith("m.slate") for s in slices)
    assert graph.list_files() <= {str(folder / "m.slate"), "m.slate"}


@pytest.mark.parametrize("flag", [True, False])
def test_subgraphs_read_what_is_around_them(folder, flag):
    inputs = [IMAGE, {"name": "c", "type": "bool", "shape": []}]
    graphs = {
        "then": {"nodes": [node("add", ["r", "x"], "a")], "outputs": ["a"]},
        "otherwise": {"nodes": [node("mul", ["r", "x"], "b")], "outputs": ["b"]},
    }
    nodes = [node("relu", ["x"], "r"), node("if", ["c"], "y", graphs)]
    write(folder / "m.slate", inputs, {}, nodes, ["y"])
    serde.convert("m.slate", "m.onnx")
    serde.convert("m.onnx", "back.slate")
    serde.convert("back.slate", "again.onnx")
    r = np.maximum(X, 0)
    for name in ("m.onnx", "again.onnx"):
        (y,) = run_model(onnx.load(name), {"x": X, "c": np.array(flag)})
        np.testing.assert_array_equal(y, r + X if flag else r * X)


def test_what_it_lacks_is_decomposed(folder):
    """Gelu became an operator of the standard later; it is made of others."""
    model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Gelu(x) }", 20, 10)
    onnx.save(model, "m.onnx")
    serde.convert("m.onnx", "m.slate")
    operators = {n.op for n in FORMAT.decode(folder / "m.slate").nodes}
    assert operators == {"erf", "div", "mul", "add"}
    serde.convert("m.slate", "back.onnx")
    (a,), (b,) = (run_model(m, {"x": X[0, :2, :3, 0]}) for m in (onnx.load("back.onnx"), model))
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_nothing_says_is_refused(folder):
    onnx.save(model_of("g (float[2,3] x) => (float[2,3] y) { y = Sin(x) }"), "m.onnx")
    with pytest.raises(Unconvertible, match="slate has no Sin"):
        serde.convert("m.onnx", "m.slate")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FIRST_LINE + b"{}\n", "m.slate, line 2: KeyError"),
        (FIRST_LINE + b'{"inputs": [], "weights": [{"name": "w", "type": "float32", '
         b'"shape": [9], "offset": 0}], "nodes": [], "outputs": []}\n1234', "beyond the end"),
        (FIRST_LINE + b"?", "line 2: JSONDecodeError"),
    ],
)  # fmt: skip
def test_bad_files(folder, text, why):
    (folder / "m.slate").write_bytes(text)
    with pytest.raises(MalformedFile, match=why):
        serde.load("m.slate")


def test_it_is_a_format_like_others(folder):
    assert "slate" in plugins.remainder_formats()
    assert targets.describe_next_step("slate", "m.slate", {}) == "slate run m.slate"
    write_layers(folder / "m.slate")
    split = serde.partition("m.slate", "tensorrt", format="slate")
    split.save("parts", remainder="slate")
