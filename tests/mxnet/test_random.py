"""Random numbers: refused, drawn by the runtime, or made of noise that is given."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest

from serde.decompositions.random_source import REASON
from serde.errors import Unconvertible
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.ops.random.sampling import draws
from serde.formats.mxnet.passes.custom_ops import LASTING
from serde.formats.mxnet.to_ir import to_ir
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to
from serde.passes import tidy
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.cases import OPSETS
from testing.mxnet_live import live_mxnet, run_op, symbol_of
from tests.mxnet.draws import COUNT, DRAWN, Drawing

EACH = [(op, n) for op, some in DRAWN.items() for n in range(len(some))]
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
NEAR = 0.06  # of the spread: how far apart two samples of this size may be


def graph_of(op, drawing, random, name="N"):
    text = symbol_of(op, len(drawing.inputs), drawing.attrs, outputs=1, np_shape="_npi" in op)
    graph = decode_symbol(parse_symbol(text), None, "drawn")
    inputs = {}
    for i, x in enumerate(drawing.inputs):
        first = name if x.ndim and name and x.shape[0] > 1 else None
        inputs[f"x{i}"] = ((first, *x.shape[1:]) if first else x.shape, x.dtype)
    return tidy(to_ir(with_inputs(graph, inputs), random=random))


def noise(value):
    """What is given for an input of noise."""
    shape = [COUNT // 4 if isinstance(d, str) else d for d in value.shape]
    generator = np.random.default_rng(len(value.name))
    kind = generator.random if "uniform" in value.name else generator.standard_normal
    return kind(shape).astype("float32")


def run(graph, drawing, opset):
    onnxruntime.set_seed(11)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        to_proto(lower_to(graph, opset)).SerializeToString(), options
    )
    arrays = {f"x{i}": x for i, x in enumerate(drawing.inputs)}
    feeds = {v.name: arrays[v.name] if v.name in arrays else noise(v) for v in graph.inputs}
    return session.run(None, feeds)[0]


def rows(y, drawing):
    """The numbers of each distribution in a row of its own."""
    flat = y.reshape(-1) if y.size < 2 * COUNT else y.reshape(-1, COUNT)
    if y.ndim == 2 and y.shape[0] == COUNT:
        flat = y.T
    return np.atleast_2d(flat).astype("float64")


def assert_alike(ours, theirs):
    assert ours.shape == theirs.shape
    for mine, other in zip(ours, theirs, strict=True):
        spread = other.std() or 1.0
        assert abs(mine.mean() - other.mean()) < NEAR * spread
        assert abs(mine.std() - other.std()) < NEAR * spread
        for share in SHARES:  # a share of integers may lie on either side of a step
            low, high = np.quantile(other, [max(share - 0.02, 0), min(share + 0.02, 1)])
            assert low - 1e-6 <= np.quantile(mine, share) <= high + 1e-6


@pytest.mark.parametrize("op, number", EACH)
def test_distribution(op, number):
    drawing = DRAWN[op][number]
    live_mxnet().random.seed(5)
    (theirs,) = run_op(op, drawing.inputs, drawing.attrs, 1, np_shape="_npi" in op)[1]
    for random, name in (("input", ""), ("onnx", ""), ("onnx", "N")):
        if not name or any(x.ndim and x.shape[0] > 1 for x in drawing.inputs):
            graph = graph_of(op, drawing, random, name)
            for opset in OPSETS if random == "input" else OPSETS[1:2]:
                ours = run(graph, drawing, opset)
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                assert_alike(rows(ours, drawing), rows(theirs, drawing))


def test_every_sampler_is_drawn_from() -> None:
    """``LASTING`` has a test of its own below; MXNet 2.0 calls the multinomial categorical."""
    assert draws.rules["_sample_categorical"] is draws.rules["_sample_multinomial"]
    assert set(DRAWN) == set(draws.rules) - {LASTING, "_sample_categorical"}


@pytest.mark.parametrize("attrs", [{}, {"p": "0.2"}, {"p": "0.7", "axes": "(0,)"}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dropout_that_goes_on_after_training(attrs, dtype):
    x = np.tile(np.arange(1, 5, dtype=dtype), (500, 50, 1))
    drawing = Drawing((x,), {**attrs, "mode": "always"})
    live_mxnet().random.seed(5)
    wide = x.astype("float32")  # MXNet drops no halves on a CPU
    (theirs,) = run_op("Dropout", [wide], drawing.attrs, 1)[1]
    for random in ("onnx", "input"):
        y = run(graph_of("Dropout", drawing, random, ""), drawing, 17)
        assert y.dtype == x.dtype
        left = {*np.unique(np.round(y[..., 0].astype("float32"), 2))}
        assert left == {*np.unique(np.round(theirs[..., 0], 2))}
        assert abs((y == 0).mean() - (theirs == 0).mean()) < (0.06 if "axes" in attrs else 0.01)
        assert ("axes" in attrs) == bool((y == y[:1]).all())
    with pytest.raises(Unconvertible) as caught:
        graph_of("Dropout", drawing, "refuse")
    assert [p.reason for p in caught.value.problems] == [REASON]


@pytest.mark.parametrize("op", ["_random_normal", "_sample_multinomial"])
def test_refused(op):
    with pytest.raises(Unconvertible) as caught:
        graph_of(op, DRAWN[op][0], "refuse")
    assert [p.reason for p in caught.value.problems] == [REASON]


def test_noise_is_an_input():
    graph = graph_of("_random_normal_like", DRAWN["_random_normal_like"][1], "input")
    assert str(graph).splitlines()[0] == (
        "graph drawn(%x0: float32[N,4], %op/normal: float32[N,4]):"
    )


def test_shuffled_and_chosen_ones_are_different():
    for op, number in (("_shuffle", 0), ("_npi_choice", 1), ("_npi_choice", 4)):
        drawing = DRAWN[op][number]
        y = run(graph_of(op, drawing, "onnx"), drawing, 17)
        assert len(np.unique(y)) == COUNT


def test_probabilities():
    drawing = DRAWN["_sample_multinomial"][1]
    drawing = drawing._replace(attrs={**drawing.attrs, "get_prob": True})
    text = symbol_of("_sample_multinomial", 1, drawing.attrs, outputs=2)
    graph = with_inputs(
        decode_symbol(parse_symbol(text), None, "t"), {"x0": ((2, 3), np.dtype("float32"))}
    )
    graph = tidy(to_ir(graph, random="onnx"))
    model = to_proto(lower_to(graph, 17)).SerializeToString()
    places, logs = onnxruntime.InferenceSession(model).run(None, {"x0": drawing.inputs[0]})
    expected = np.log(np.take_along_axis(drawing.inputs[0], places.astype("int64"), 1))
    np.testing.assert_allclose(logs, expected, rtol=1e-6)


def test_noise_in_a_loop():
    """In a loop the runtime can draw, but an input would be one noise for all steps."""
    mx = live_mxnet()
    x, s = mx.sym.var("x0"), mx.sym.var("x1")
    out, _ = mx.sym.contrib.foreach(
        lambda item, s: (mx.sym.random.normal_like(item) * 0 + item, s), x, s
    )
    parsed = decode_symbol(parse_symbol(out.tojson()), None, "t")
    shapes = {"x0": ((3, 2), np.dtype("float32")), "x1": ((2,), np.dtype("float32"))}
    with pytest.raises(Unconvertible, match="in a loop or branch, which an input cannot be"):
        to_ir(with_inputs(parsed, shapes), random="input")
    graph = tidy(to_ir(with_inputs(parsed, shapes), random="onnx"))
    x0 = np.float32([[1, 2], [3, 4], [5, 6]])
    model = to_proto(lower_to(graph, 17)).SerializeToString()
    feeds = {"x0": x0, "x1": x0[0]}
    names = [v.name for v in graph.inputs]
    (y,) = onnxruntime.InferenceSession(model).run(None, {n: feeds[n] for n in names})
    np.testing.assert_array_equal(y, x0)
    assert json.loads(out.tojson())["nodes"][-1]["op"] == "_foreach"
