"""Non-maximum suppression by TVM's operator, compared with ONNX Runtime and MXNet."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import model_of, run_model
from testing.relay.tvm_live import run

SUPPRESSED = """
g (float[{sizes},4] boxes, float[{batch},{classes}] scores{more}) => (int64[n,3] y)
{{
  {held}
  y = NonMaxSuppression <center_point_box = {center}> (boxes, scores, {operands})
}}"""
SIZES = {"B": 2, "C": 3, "N": 24}
NATIVE = "vision.all_class_non_max_suppression"


def draw_feeds(seed):
    """Boxes on a grid, with all overlaps, corners in any order; scores that are often the same."""
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 5, (2, 24, 4)).astype(np.float32)
    return {"boxes": boxes, "scores": rng.integers(-6, 7, (2, 3, 24)).astype(np.float32) / 4}


def model(sizes="B,N", classes="C,N", center=0, named=(), **operands):
    """A model; operands that are None are inputs, sizes that are not ``named`` are numbers."""
    kinds = {"most": "int64", "overlap": "float", "least": "float"}
    inputs = [f", {kinds[n]}[1] {n}" for n, v in operands.items() if v is None]
    held = [
        f"{n} = Constant <value_{'ints' if n == 'most' else 'floats'} = [{v}]> ()"
        for n, v in operands.items()
        if v is not None
    ]
    text = SUPPRESSED.format(
        sizes=sizes, batch="B", classes=classes, more="".join(inputs), held="\n  ".join(held),
        center=center, operands=", ".join(operands),
    )  # fmt: skip
    head, rest = text.split("=>", 1)
    for name in SIZES.keys() - set(named):
        head = head.replace(f"[{name},", f"[{SIZES[name]},").replace(f",{name}", f",{SIZES[name]}")
    return model_of(f"{head}=>{rest}")


def in_relay(proto, feeds):
    graph = from_ir(tidy(raise_to_ir(decode(proto))))
    module, weights = to_module(graph)
    text = to_json(module)
    taken = {v.name: feeds[v.name] for v in graph.inputs}
    return text, run("json", text, {**taken, **{n: t.load() for n, t in weights.items()}})


CASES = {
    "as TVM": {"most": 5, "overlap": 0.25, "least": 0.25},
    "scores below zero": {"most": 3, "overlap": 0.5, "least": -0.5},
    "all scores": {"most": 9, "overlap": 0.0},
    "middles": {"most": 24, "overlap": 0.5, "least": 0.0, "center": 1},
    "batches": {"most": 4, "overlap": 0.3, "least": 0.25, "named": ("B",)},
    "classes": {"most": 2**62, "overlap": 1 / 3, "least": 0.5, "named": ("B", "C"), "center": 1},
    "limits": {"most": None, "overlap": 0.25, "least": None},
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnx_runtime(name):
    proto = model(**CASES[name])
    for most in (0, 6) if name == "limits" else (6,):
        feeds = {**draw_feeds(len(name)), "most": np.array([most]), "least": np.float32([-0.25])}
        (expected,) = run_model(proto, feeds)
        text, (got,) = in_relay(proto, feeds)
        assert NATIVE in text
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        assert (len(expected) > 6) == bool(most)


def test_a_limit_of_nothing():
    text, (got,) = in_relay(model(most=0, overlap=0.5, least=0.0), draw_feeds(0))
    assert NATIVE not in text
    assert got.shape == (0, 3)


@pytest.mark.parametrize("attrs", [{}, {"force_suppress": True, "nms_topk": 9}], ids=str)
def test_a_detector_of_mxnet(tmp_path, attrs):
    mx = live_mxnet()
    x = mx.sym.var("x")
    kept = {"sizes": (0.2, 0.6), "ratios": (1, 2)}
    heads = [mx.sym.Convolution(x, kernel=(1, 1), num_filter=3 * n, name=f"h{n}") for n in (4, 3)]
    moves = mx.sym.flatten(mx.sym.transpose(heads[0], axes=(0, 2, 3, 1)))
    scores = mx.sym.transpose(heads[1], axes=(0, 2, 3, 1)).reshape((0, -1, 3))
    probable = mx.sym.softmax(mx.sym.transpose(scores, axes=(0, 2, 1)), axis=1)
    anchors = mx.sym.contrib.MultiBoxPrior(x, **kept)
    symbol = mx.sym.contrib.MultiBoxDetection(
        probable, moves, anchors, nms_threshold=0.3, threshold=0.3, **attrs
    )
    rng = np.random.default_rng(8)
    names = symbol.list_arguments()[1:]
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(x=(2, 5, 4, 4))[0], strict=True))
    params = {n: rng.normal(0, 0.6, shapes[n]).astype(np.float32) for n in names}
    feeds = {"x": rng.normal(size=(2, 5, 4, 4)).astype(np.float32)}
    (expected,) = run_symbol(symbol.tojson(), params, feeds)
    path = tmp_path / "ssd-symbol.json"
    path.write_text(symbol.tojson())
    mx.nd.save(
        f"{tmp_path}/ssd-0000.params", {f"arg:{n}": mx.nd.array(a) for n, a in params.items()}
    )
    module, weights = to_module(from_ir(serde.load(path, inputs={"x": feeds["x"]})))
    text = to_json(module)
    assert NATIVE in text
    (got,) = run("json", text, {**feeds, **{n: t.load() for n, t in weights.items()}})
    assert 3 < (expected[..., 0] >= 0).sum() < (expected[..., 1] >= 0).sum()
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_boxes_of_integers_are_refused(tmp_path):
    """No score is below all others there."""
    text = (
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 3, 6), int8], %n: Tensor[(1), int32],"
        " %i: Tensor[(1, 3), int32]) {\n"
        "  vision.non_max_suppression(%x, %n, %i, -1, 0.5f, return_indices=False)\n}\n"
    )
    (tmp_path / "m.relay").write_text(text)
    with pytest.raises(Unconvertible, match="boxes of int8: cast them to float32"):
        serde.convert(tmp_path / "m.relay", tmp_path / "m.onnx")
