"""All inputs of a model but labels are inputs of what it becomes, in order, read or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from serde.bridges import mxnet as bridge
from serde.formats.mxnet.io.params import read_params as read_arrays
from serde.formats.relay.io.params import read_params
from testing.mxnet_live import live_mxnet, run_symbol
from testing.relax.relax_live import run as run_relax
from testing.relay.tvm_live import run as run_relay

Shapes = dict[str, tuple[int, ...]]
RNG = np.random.default_rng(11)


def normalize(s: Any) -> Any:
    states = (s.var("mean"), s.var("var"))
    return s.BatchNorm(s.var("x"), s.var("gamma"), s.var("beta"), *states, fix_gamma=True)


def alike(op: str, **attrs: Any) -> Callable[[Any], Any]:
    return lambda s: getattr(s, op)(s.var("x"), s.var("y"), **attrs)


def of_one(op: str, **attrs: Any) -> Callable[[Any], Any]:
    return lambda s: getattr(s, op)(s.var("x"), **attrs)


def several(s: Any) -> Any:
    """Outputs of which each reads one input, and ``x`` in its size alone."""
    return s.Group([s.relu(s.var("z")), s.ones_like(s.var("x")), s.sqrt(s.var("y"))])


CHANNELS = dict.fromkeys(("gamma", "beta", "mean", "var"), (3,))
# What reads its operands in part, and the shapes of these.
MODELS: dict[str, tuple[Callable[[Any], Any], Shapes]] = {
    "gamma": (normalize, {"x": (2, 3, 4), **CHANNELS}),
    "arange_like": (lambda s: s.contrib.arange_like(s.var("x"), axis=1), {"x": (2, 3)}),
    "ones_like": (of_one("ones_like"), {"x": (2, 3)}),
    "zeros_like": (of_one("zeros_like"), {"x": (4,)}),
    "shape_array": (of_one("shape_array"), {"x": (2, 3, 4)}),
    "size_array": (of_one("size_array"), {"x": (5, 1)}),
    "slice_like": (alike("slice_like"), {"x": (4, 5), "y": (2, 3)}),
    "slice_like_axis": (alike("slice_like", axes=(1,)), {"x": (4, 5), "y": (7, 3)}),
    "broadcast_like": (alike("broadcast_like"), {"x": (1, 3), "y": (2, 3)}),
    "reshape_like": (alike("reshape_like"), {"x": (2, 6), "y": (3, 4)}),
    "several": (several, {"x": (2, 3), "y": (2,), "z": (1, 2)}),
}


@pytest.fixture(params=MODELS)
def model(request) -> Any:
    make, shapes = MODELS[request.param]
    sym = make(live_mxnet().sym)
    feeds = {n: RNG.uniform(0.5, 1.5, shapes[n]).astype("float32") for n in sym.list_inputs()}
    feeds = {n: np.ones_like(a) if n == "gamma" else a for n, a in feeds.items()}
    return sym, feeds, run_symbol(sym.tojson(), {}, feeds)


def names_of(feeds: dict[str, np.ndarray], named: bool) -> dict[str, Any]:
    """Shapes of the inputs, with names for their sizes or without."""
    return {n: tuple(f"{n}{i}" for i in range(a.ndim)) if named else a.shape
            for n, a in feeds.items()}  # fmt: skip


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("named", [False, True])
def test_onnx(model, named, opset, tmp_path) -> None:
    """ONNX Runtime is fed all of them by position."""
    sym, feeds, references = model
    path = str(tmp_path / "m.onnx")
    shapes = names_of(feeds, named and "gamma" not in feeds)
    serde.convert(sym, path, params={}, inputs=shapes, opset=opset)
    session = onnxruntime.InferenceSession(path)
    assert [i.name for i in session.get_inputs()] == list(feeds)
    for y, expected in zip(session.run(None, feeds), references, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        assert y.dtype == expected.dtype


def test_the_exporter_of_mxnet(model, tmp_path) -> None:
    sym, feeds, _ = model
    path = str(tmp_path / "m.onnx")
    bridge.export_model(sym, {}, [a.shape for a in feeds.values()], np.float32, path)
    session = onnxruntime.InferenceSession(path)
    assert {i.name: tuple(i.shape) for i in session.get_inputs()} == {
        n: a.shape for n, a in feeds.items()
    }


def test_relay(model, tmp_path) -> None:
    sym, feeds, references = model
    path = tmp_path / "m.relay"
    report = serde.convert(sym, path, params={}, inputs=names_of(feeds, False))
    assert [i["name"] for i in report.inputs] == list(feeds)
    weights = [read_params(f) for f in report.files if f.endswith(".params")]
    arrays = {**feeds, **{n: t.load() for held in weights for n, t in held.items()}}
    for y, expected in zip(run_relay("text", path.read_text(), arrays), references, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_relax(model, tmp_path) -> None:
    """TVM's importer of ONNX keeps parameters that nothing reads."""
    sym, feeds, references = model
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params={}, inputs=names_of(feeds, False), profile="relax")
    for y, expected in zip(run_relax(path, feeds), references, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_mxnet(model, tmp_path) -> None:
    """A symbol has those inputs alone that its outputs depend on, and the report tells others."""
    sym, feeds, references = model
    path = tmp_path / "m-symbol.json"
    report = serde.convert(sym, path, params={}, inputs=names_of(feeds, False))
    listed = live_mxnet().sym.load(str(path)).list_inputs()
    unread = [n for n in feeds if n not in listed]
    notes = [n for n in report.notes if n.startswith("no argument of the symbol")]
    assert bool(notes) == bool(unread) and all(f"'{n}'" in notes[0] for n in unread)
    held = read_arrays(tmp_path / "m-0000.params").by_name()
    params = {n: t.load() for n, t in held.items()}
    got = run_symbol(path.read_text(), params, {n: a for n, a in feeds.items() if n in listed})
    for y, expected in zip(got, references, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_a_block_takes_all_inputs() -> None:
    mx = live_mxnet()
    sym = mx.sym.slice_like(mx.sym.var("x"), mx.sym.var("y"))
    block = bridge.to_block(serde.load(sym, inputs={"x": (4, 5), "y": (2, 3)}))
    x, y = mx.nd.ones((4, 5)), mx.nd.zeros((2, 3))
    with pytest.warns(UserWarning, match="1-th input .* is not used"):  # MXNet's own
        assert block(x, y).shape == (2, 3)
