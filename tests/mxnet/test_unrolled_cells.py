"""Recurrent cells unrolled with begin states of an open batch: in lists, loops and fused layers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from testing.mxnet_live import live_mxnet, run_symbol

TURNS, FEATURES, HIDDEN = 3, 4, 5
CELLS: dict[str, Callable[[Any], Any]] = {
    "rnn": lambda rnn: rnn.RNNCell(HIDDEN, input_size=FEATURES),
    "lstm": lambda rnn: rnn.LSTMCell(HIDDEN, input_size=FEATURES),
    "gru": lambda rnn: rnn.GRUCell(HIDDEN, input_size=FEATURES),
    "lstmp": lambda rnn: live_mxnet().gluon.contrib.rnn.LSTMPCell(HIDDEN, 3, input_size=FEATURES),
    "residual": lambda rnn: rnn.ResidualCell(rnn.GRUCell(FEATURES, input_size=FEATURES)),
    "zoneout": lambda rnn: rnn.ZoneoutCell(rnn.LSTMCell(HIDDEN, input_size=FEATURES), 0.2, 0.3),
    "bidirectional": lambda rnn: rnn.BidirectionalCell(
        rnn.LSTMCell(HIDDEN, input_size=FEATURES), rnn.GRUCell(HIDDEN, input_size=FEATURES)
    ),
}
LAYERS: dict[str, Callable[[Any], Any]] = {
    "lstm layers": lambda rnn: rnn.LSTM(HIDDEN, 2, input_size=FEATURES),
    "gru both ways": lambda rnn: rnn.GRU(HIDDEN, bidirectional=True, input_size=FEATURES),
    "projected": lambda rnn: rnn.LSTM(HIDDEN, 2, input_size=FEATURES, projection_size=3),
    "projected both ways": lambda rnn: rnn.LSTM(
        HIDDEN, bidirectional=True, input_size=FEATURES, projection_size=2
    ),
}
WAYS = ("list", "loop")
FRAMES = [
    (cell, way, begin, lengths)
    for cell, way, begin, lengths in product(CELLS, WAYS, ("zeros", "ones"), (False, True))
    if (cell, way) != ("bidirectional", "loop")  # which has no steps
]


def unrolled(cell: Any, way: str, begin: str, lengths: bool) -> Any:
    """The outputs and the states of a cell, of data whose batch is second."""
    mx = live_mxnet()
    states = cell.begin_state(func=getattr(mx.sym, begin))
    more = {"valid_length": mx.sym.var("lengths")} if lengths else {}
    data = mx.sym.var("data")
    if way == "list":
        outputs, ends = cell.unroll(
            TURNS, data, begin_state=states, layout="TNC", merge_outputs=True, **more
        )
    else:
        from mxnet.gluon.contrib.rnn.rnn_cell import dynamic_unroll

        outputs, ends = dynamic_unroll(cell, data, states, layout="TNC", **more)
    return mx.sym.Group([outputs, *ends])


def draw(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.7, 0.7, shape).astype("float32")


def compare(sym: Any, block: Any, batch: int | str, lengths: bool, tmp_path: Any) -> None:
    params = {n: draw(p.shape, i) for i, (n, p) in enumerate(block.collect_params().items())}
    shapes: dict[str, Any] = {"data": (TURNS, batch, FEATURES)}
    if lengths:
        shapes["lengths"] = (batch,)
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params=params, inputs=shapes)
    session = onnxruntime.InferenceSession(path)
    for count in (1, 3) if isinstance(batch, str) else (batch,):
        feeds = {"data": draw((TURNS, count, FEATURES))}
        if lengths:
            feeds["lengths"] = np.float32([2, 3, 1][:count])
        expected = run_symbol(sym.tojson(), params, feeds)
        for y, z in zip(session.run(None, feeds), expected, strict=True):
            assert y.shape == z.shape
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [2, "N"])
@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_cells(frame, batch, tmp_path) -> None:
    cell, way, begin, lengths = frame
    block = CELLS[cell](live_mxnet().gluon.rnn)
    compare(unrolled(block, way, begin, lengths), block, batch, lengths, tmp_path)


@pytest.mark.parametrize("batch", [2, "N"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, batch, tmp_path) -> None:
    mx = live_mxnet()
    block = LAYERS[name](mx.gluon.rnn)
    compare(block(mx.sym.var("data")), block, batch, False, tmp_path)


@pytest.mark.parametrize("inputs", [{}, {"data": ("T", "N", FEATURES)}], ids=str)
def test_states_that_are_inputs_are_verified(inputs, tmp_path) -> None:
    """Their batch is that of the data, by the name that it has or gets."""
    mx = live_mxnet()
    layer = mx.sym.RNN(
        mx.sym.var("data"), mx.sym.var("parameters"), mx.sym.var("state"), mx.sym.var("state_cell"),
        mode="lstm", state_size=HIDDEN, num_layers=1, state_outputs=True,
    )  # fmt: skip
    arrays = {"parameters": draw((4 * HIDDEN * (FEATURES + HIDDEN + 2),))}
    target = tmp_path / "m.onnx"
    report = serde.convert(layer, target, params=arrays, inputs=inputs, verify=True)
    assert report.ok and report.verification.done
