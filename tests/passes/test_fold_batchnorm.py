"""BatchNormalization folded into the layer before it computes the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.numpy_helper import from_array

import serde
from serde.ir.graph import Call, Source
from serde.passes.fold_batchnorm import fold_batchnorm
from testing.onnx_live import error, ir_of, run, run_model

LAYERS = {  # the layer, the shapes of its data, weights and bias, and whether it is folded
    "conv": ("Conv<group = 2>(x, w, b)", (2, 4, 6, 6), (6, 2, 3, 3), 6, True),
    "conv without bias": ("Conv(x, w)", (2, 4, 6), (6, 4, 3), 6, True),
    "transposed": ("ConvTranspose<group = 2>(x, w, b)", (2, 4, 6, 6), (4, 3, 3, 3), 6, True),
    "gemm": ("Gemm(x, w, b)", (3, 4), (4, 5), 5, True),
    "gemm transposed": ("Gemm<transB = 1>(x, w, b)", (3, 4), (5, 4), 5, True),
    "gemm scaled": ("Gemm<alpha = 0.5>(x, w, b)", (3, 4), (4, 5), 5, False),
    "another reader": ("Conv(x, w, b)", (2, 4, 6), (6, 4, 3), 6, False),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, tmp_path):
    layer, data, weights, channels, is_folded = LAYERS[name]
    size = ",".join("N" if i == 0 else str(d) for i, d in enumerate(data))
    more = name == "another reader"
    rank = ",".join("MCHW"[: len(data)])
    outputs = f"float[{rank}] y" + (f", float[{rank}] a" if more else "")
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[{size}] x) => ({outputs}) {{
        a = {layer}
        y = BatchNormalization(a, scale, shift, mean, var)
    }}"""
    model = parser.parse_model(text)
    draws = np.random.default_rng(0)
    held = {"w": draws.normal(size=weights), "b": draws.normal(size=channels)}
    held |= {n: draws.normal(size=channels) for n in ("scale", "shift", "mean")}
    held["var"] = draws.uniform(0.5, 2, channels)
    used = {i for n in model.graph.node for i in n.input}
    model.graph.initializer.extend(
        from_array(a.astype(np.float32), n) for n, a in held.items() if n in used
    )
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    new_model = onnx.load(tmp_path / "b.onnx")
    assert ("BatchNormalization" in {n.op_type for n in new_model.graph.node}) is not is_folded
    feeds = {"x": draws.normal(size=data).astype(np.float32)}
    for a, b in zip(run_model(model, feeds), run_model(new_model, feeds), strict=True):
        assert error(b, a) < 1e-6


def test_shared_weights_keep_their_own(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N,4,6] x) => (float[N,6,4] y, float[N,6,4] z) {
        a = Conv(x, w)
        y = BatchNormalization(a, s, s, s, s)
        z = Conv(x, w)
    }"""
    model = parser.parse_model(text)
    draws = np.random.default_rng(0)
    held = {"w": draws.normal(size=(6, 4, 3)), "s": draws.uniform(0.5, 2, 6)}
    model.graph.initializer.extend(from_array(a.astype(np.float32), n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    new_model = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in new_model.graph.node] == ["Conv", "Conv"]
    feeds = {"x": draws.normal(size=(2, 4, 6)).astype(np.float32)}
    for a, b in zip(run_model(model, feeds), run_model(new_model, feeds), strict=True):
        assert error(b, a) < 1e-6


def test_two_in_a_row(tmp_path):
    text = "g (float[N,3,4] x) => (float[N,2,2] y) { a = Conv(x, w)"
    text += " b = BatchNormalization(a, s, t, m, v) y = BatchNormalization(b, t, s, v, v) }"
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + text)
    draws = np.random.default_rng(0)
    held = {n: draws.uniform(0.5, 2, 2) for n in "stmv"} | {"w": draws.normal(size=(2, 3, 3))}
    model.graph.initializer.extend(from_array(a.astype(np.float32), n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    new_model = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in new_model.graph.node] == ["Conv"]
    feeds = {"x": draws.normal(size=(2, 3, 4)).astype(np.float32)}
    assert error(run_model(new_model, feeds)[0], run_model(model, feeds)[0]) < 1e-6


CHAINS = {  # what follows the layer, the shapes of the constants, and the nodes that are left
    "a product": ("y = Mul(a, f)", (5, 1, 1), "Conv"),
    "a product and a sum": ("c = Mul(f, a) y = Add(c, g)", (5, 1, 1), "Conv"),
    "a sum and a product": ("c = Add(g, a) y = Mul(c, f)", (1, 5, 1, 1), "Conv"),
    "single numbers": ("c = Mul(a, f) y = Add(c, g)", (1,), "Conv"),
    "numbers by column": ("c = Mul(a, f) y = Add(c, g)", (4,), "Conv Mul Add"),
    "a layer that others read": ("c = Mul(a, f) y = Add(a, c)", (5, 1, 1), "Add Conv Mul"),
}


@pytest.mark.parametrize("layer", ["Conv(x, w)", "Conv(x, w, b)"])
@pytest.mark.parametrize("name", CHAINS)
def test_products_and_sums_behind_a_layer(name, layer, tmp_path):
    body, shape, ops = CHAINS[name]
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[N,3,6,6] x) => (float[N,5,4,4] y) {{ a = {layer} {body} }}""")
    draws = np.random.default_rng(1)
    held = {"w": draws.normal(size=(5, 3, 3, 3)), "b": draws.normal(size=5)}
    held |= {n: draws.normal(size=shape) for n in "fg"}
    used = {i for n in model.graph.node for i in n.input}
    model.graph.initializer.extend(
        from_array(np.asarray(a, np.float32), n) for n, a in held.items() if n in used
    )
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    new_model = onnx.load(tmp_path / "b.onnx")
    assert sorted(n.op_type for n in new_model.graph.node) == sorted(ops.split())
    feeds = {"x": draws.normal(size=(2, 3, 6, 6)).astype(np.float32)}
    for a, b in zip(run_model(model, feeds), run_model(new_model, feeds), strict=True):
        assert error(b, a) < 1e-6


HALVES = {  # the product's factor, and the nodes that are left of float16
    "ordinary": (1.7, "Conv"),
    "beyond float16": (60_000, "Conv Mul Add"),
    "below float16": (1e-6, "Conv Mul Add"),
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_are_rounded_once(name, tmp_path):
    """The result is as near to that of float64 as without folding."""
    factor, ops = HALVES[name]
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float16[N,3,6,6] x) => (float16[N,5,4,4] y) {
        a = Conv(x, w) c = Mul(a, f) y = Add(c, g) }""")
    draws = np.random.default_rng(2)
    held = {
        "w": draws.uniform(-4, 4, (5, 3, 3, 3)), "f": np.full((5, 1, 1), factor),
        "g": draws.normal(size=(5, 1, 1)),
    }  # fmt: skip
    held["w"] *= 1e-3 if factor < 1 else 1
    held = {n: a.astype(np.float16) for n, a in held.items()}
    model.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    new_model = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in new_model.graph.node] == ops.split()
    if ops != "Conv":
        return
    x = draws.normal(size=(2, 3, 6, 6)).astype(np.float16)
    wide = {n: a.astype(np.float64) for n, a in {**held, "x": x}.items()}
    windows = np.lib.stride_tricks.sliding_window_view(wide["x"], (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, wide["w"]) * wide["f"] + wide["g"]
    before, after = (
        np.abs(run_model(m, {"x": x})[0] - expected).max() / np.abs(expected).max()
        for m in (model, new_model)
    )
    assert after < 2 * before < 4e-3


@pytest.mark.parametrize("shape", ["", "4"])
def test_operands_without_channels_stay(shape, tmp_path):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[{shape}] x) => (float[{shape}] y) {{
        two = Constant<value = float {{2}}>()
        a = Add(x, two)
        b = Abs(a)
        y = Mul(b, two)
    }}"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fold_batchnorm=True)
    feeds = {"x": np.full([int(size) for size in shape.split(",") if size], -3, np.float32)}
    assert np.all(run_model(onnx.load(tmp_path / "b.onnx"), feeds)[0] == 2)


def test_layers_of_two_functions_are_merged():
    body = ("g (float[1,2,4] x) => (float[1,2,2] y) {"
            " w = Constant<value = float[2,2,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()"
            " s = Constant<value = float[2] {1, 2}>()"
            " a = Conv(x, w)  y = BatchNormalization(a, s, s, s, s) }")  # fmt: skip
    graph = ir_of(body, 17)
    nodes = [replace(node, sources=(Source("relay", node.op, node.op, calls=(Call(node.op),)),))
             for node in graph.nodes]  # fmt: skip
    done = fold_batchnorm(replace(graph, nodes=tuple(nodes)))
    assert [node.op for node in done.nodes] == ["Conv"]
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(1, 2, 4)}
    for a, b in zip(run(graph, feeds), run(done, feeds), strict=True):
        assert error(b, a) < 1e-6
