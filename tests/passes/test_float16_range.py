"""Numbers that float16 lacks stay in float32: computed with a rounding after each node."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.onnxruntime import run
from serde.ir.graph import DType
from testing.onnx_live import PLAIN, model_of, run_at
from tests.passes.float16_chains import SOURCES, make_chain
from tests.passes.float16_decoders import make_decoder
from tests.passes.float16_networks import FAMILIES, make
from tests.passes.float16_placements import PLACEMENTS

SEEDS = 4
SHARES = {"convolutions": 1.0, "transformers": 0.85}  # of nodes in float16, at least


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_random_networks(family, placement, tmp_path):
    """What ONNX Runtime computes of the source in float32, as verification says too."""
    for seed in range(SEEDS):
        model, feeds = make(family, seed)
        model = PLACEMENTS[placement](model)
        feeds = {**feeds, "chosen": np.array(bool(seed % 2))}
        onnx.save(model, tmp_path / "a.onnx")
        report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, verify=True)
        (expected,) = run_at(PLAIN, model, feeds)
        (got,) = run(tmp_path / "b.onnx", feeds, rounded=True)
        assert np.abs(got - expected).max() < 2e-2 * np.abs(expected).max(), seed
        assert report.ok, seed


@pytest.mark.parametrize("family", SHARES)
def test_ordinary_networks_are_float16(family, tmp_path):
    for seed in range(SEEDS):
        onnx.save(make(family, seed)[0], tmp_path / "a.onnx")
        graph = serde.load(tmp_path / "a.onnx", fp16=True)
        floats = [n for n in graph.nodes if n.op not in ("Cast", "Clip")]
        halves = [n for n in floats if n.outputs[0].dtype is DType.FLOAT16]
        assert len(halves) >= SHARES[family] * len(floats)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_decoders(placement, tmp_path):
    """Angles are float32, and what norms compute of squares; layers are float16."""
    for seed in range(SEEDS):
        model, feeds = make_decoder(seed)
        model = PLACEMENTS[placement](model)
        feeds = {**feeds, "chosen": np.array(bool(seed % 2))}
        onnx.save(model, tmp_path / "a.onnx")
        report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, verify=True)
        (expected,) = run_at(PLAIN, model, feeds)
        (got,) = run(tmp_path / "b.onnx", feeds, rounded=True)
        assert np.abs(got - expected).max() < 1e-2 * np.abs(expected).max() and report.ok
        nodes = list(serde.load(tmp_path / "b.onnx").all_nodes())
        singles = [n for n in nodes if n.op == "MatMul" and n.outputs[0].dtype is DType.FLOAT32]
        assert len(singles) <= 2  # the angles, of both branches


KEPT = {  # text, the operators that stay in float32
    "angles of an activation": ("(float[2,4] x) => (float[2,4] y) { a = Relu(x) b = Mul(a, w) "
                                "s = Sin(b) y = Sigmoid(s) }", {"Relu", "Mul", "Sin"}),
    "small angles": ("(float[2,4] x) => (float[2,4] y) { a = Sigmoid(x) b = Mul(a, w) "
                     "s = Sin(b) y = Relu(s) }", {"Sin"}),
    "bytes": ("(uint8[2,4] x) => (float[2,4] y) { a = Cast<to = 1>(x) b = Mul(a, w) y = Relu(b) }",
              set()),
    "counts": ("(int32[2,4] x) => (float[2,4] y) { a = Cast<to = 1>(x) b = Mul(a, w) y = Tanh(b) }",
               {"Mul", "Tanh"}),
    "truth values": ("(bool[2,4] x) => (float[2,4] y) { a = Cast<to = 1>(x) y = Mul(a, w) }", set()),
    "counts within a range": (
        "(int64[2,4] x) => (float[2,4] y) <int64 l = {0}, int64 h = {100}> { c = Clip(x, l, h) "
        "a = Cast<to = 1>(c) b = Mul(a, w) y = Relu(b) }", set()),
    "a square of an activation": ("(float[2,4] x) => (float[2,4] y) { a = Relu(x) b = Mul(a, a) "
                                  "c = MatMul(b, v) y = Tanh(c) }", set()),
    "a square whose root is taken": ("(float[2,4] x) => (float[2,4] y) { b = Mul(x, x) "
                                     "c = Sqrt(b) y = Relu(c) }", {"Mul", "Sqrt"}),
    "numbers that are added to places": (
        "(float[2,4] x, int64[2,4] i) => (float[2,4] y) { a = Tanh(x) "
        "b = ScatterElements<reduction = \"add\">(a, i, a) y = Relu(b) }", {"ScatterElements"}),
    "numbers that are put to places": (
        "(float[2,4] x, int64[2,4] i) => (float[2,4] y) { a = Tanh(x) "
        "b = ScatterElements(a, i, a) y = Relu(b) }", set()),
    "an operand of no type": ("(float[2,4] x) => (float[2,4] y) { a = com.acme.Foo(x) "
                              "y = Mul(a, w) }", {"Mul"}),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_stays(case, tmp_path):
    text, kept = case
    constants = "<float[4] w = {0.5, 1.5, 2, 3}, float[4,4] v = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}"
    end = text.index(")", text.index("=>")) + 1
    rest = text[end:].lstrip()
    rest = f", {rest[1:]}" if rest.startswith("<") else f"> {rest}"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>\n'
        f"g {text[:end]} {constants}{rest}"
    )
    onnx.save(model, tmp_path / "a.onnx")
    graph = serde.load(tmp_path / "a.onnx", fp16=True)
    floats = (n for n in graph.nodes if n.op not in ("Cast", "Clip") and not n.domain)
    assert {n.op for n in floats if n.outputs[0].dtype is not DType.FLOAT16} == kept


@pytest.mark.parametrize(("operator", "factor"), [("Div", 1e7), ("Mul", 1e-7)])
def test_products_that_are_scaled_by_what_float16_lacks(operator, factor, tmp_path):
    """The number tells that they are large: they stay in float32 up to it."""
    model = model_of(
        f"""g (float[2,64] x) => (float[2,2] y) {{
        f = Constant<value_float = 500.0>() s = Constant<value_float = {factor}>()
        a = Mul(x, f) b = Transpose(a) p = MatMul(a, b) d = {operator}(p, s) y = Tanh(d) }}""",
        17,
        8,
    )
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, verify=True)
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 64), np.float32)}
    (expected,) = run_at(PLAIN, model, feeds)
    (got,) = run(tmp_path / "b.onnx", feeds, rounded=True)
    assert np.abs(got - expected).max() < 1e-3
    assert report.ok


@pytest.mark.parametrize("source", SOURCES)
def test_random_chains(source, tmp_path):
    """But for chains that change as much once inputs change in their last digits."""
    compared = 0
    for seed in range(30):
        model, feeds = make_chain(source, seed)
        (expected,) = run_at(PLAIN, model, feeds)
        largest = np.abs(expected).max()
        if not np.isfinite(largest) or not largest or is_unstable(model, feeds, expected):
            continue
        onnx.save(model, tmp_path / "a.onnx")
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
        (got,) = run(tmp_path / "b.onnx", feeds, rounded=True)
        assert np.abs(got - expected).max() < 2e-2 * largest, seed
        compared += 1
    assert compared > 20


def is_unstable(model, feeds, expected):
    signs = np.random.default_rng(1)
    moved = {
        n: x * (1 + signs.choice([-1, 1], x.shape) * 2.0**-18).astype("f") if x.dtype == "f" else x
        for n, x in feeds.items()
    }
    return np.abs(run_at(PLAIN, model, moved)[0] - expected).max() > 2e-3 * np.abs(expected).max()


LONG = {  # bodies of thousands of nodes that are followed back, and products of all before
    "sums": ("s{j} = Add(s{i}, x)", 3000, "y = Identity(s{n})"),
    "products": ("s{j} = MatMul(s{i}, s{i})", 200, "y = Div(s{n}, tiny)"),
    "factors": ("s{j} = MatMul(s{i}, x)", 2000, "y = Div(s{n}, tiny)"),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_chains_are_followed(name, tmp_path):
    step, count, end = LONG[name]
    steps = "\n".join(step.format(i=i, j=i + 1) for i in range(count))
    body = f"b (int64 i, bool c, float[2,2] s0) => (c2, y) {{ c2 = Identity(c)\n{steps}\n{end.format(n=count)} }}"
    text = "g (float[2,2] x) => (float[2,2] z) <float tiny = {0.00000001}, int64 m = {3}>"
    loop = f"z = Loop<body = {body}>(m, , x)"
    onnx.save(model_of(f"{text} {{ {loop} }}"), tmp_path / "a.onnx")
    graph = serde.load(tmp_path / "a.onnx", fp16=True)
    kept = [n for n in graph.all_nodes() if n.op in ("Add", "MatMul", "Div")]
    assert len(kept) >= count and all(n.outputs[0].dtype is DType.FLOAT32 for n in kept)
