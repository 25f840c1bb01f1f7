"""Zeros of which the symbol leaves a size open: begin states of RNN cells that are unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from tests.mxnet_live import live_mxnet, run_symbol


def dense(s: Any, x: Any, name: str) -> Any:
    return s.FullyConnected(x, num_hidden=4, name=name)


def cell(s: Any, rows: Any, state: Any) -> Any:
    return s.tanh(dense(s, rows, "rows") + dense(s, state, "state"))


def kept_where_masked(s: Any) -> Any:
    """A zoneout: the state is kept where a mask is zero."""
    state, rows = s.zeros(shape=(0, 4)), s.var("data")
    new = cell(s, rows, state)
    return s.where(s.ones_like(new), new, state) + dense(s, state, "last")


def masked_rows(s: Any) -> Any:
    data = s.var("data")
    new = cell(s, data, s.zeros(shape=(0, 4)))
    return s.where(s.sum(data, axis=1) > 0, new, s.zeros(shape=(0, 0)))


def kept_where_masked_in_parts(s: Any) -> Any:
    """As GluonTS's LSTNet: the batch of the cell is not that of an input."""
    parts = s.reshape(s.tile(s.var("data"), reps=(3, 1)), shape=(3, -1, 5))
    rows = s.SliceChannel(parts, num_outputs=3, axis=0, squeeze_axis=True)[1]
    state = s.zeros(shape=(0, 4))
    new = cell(s, rows, state)
    return s.where(s.ones_like(new), new, state) + state


CELLS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda s: cell(s, s.var("data"), s.zeros(shape=(0, 4))),
    "sum": lambda s: dense(s, s.var("data"), "rows") + s.zeros(shape=(0, 0)),
    "masked": kept_where_masked,
    "masked_in_parts": kept_where_masked_in_parts,
    "chain": lambda s: cell(s, s.var("data"), s.tanh(s.zeros(shape=(0, 4)) * 2)),
    "mask_of_rows": masked_rows,
    "product": lambda s: s.zeros(shape=(0, 4)) * dense(s, s.var("data"), "rows") + 1,
}


@pytest.mark.parametrize("rows", [1, 3, "B"])
@pytest.mark.parametrize("name", CELLS)
def test_the_batch_of_a_begin_state(name, rows, tmp_path) -> None:
    sym = CELLS[name](live_mxnet().sym)
    rng = np.random.default_rng(5)
    count = rows if isinstance(rows, int) else 2
    shapes, _, _ = sym.infer_shape(data=(count, 5))
    named = dict(zip(sym.list_arguments(), shapes, strict=True))
    arrays = {n: rng.normal(0, 1, shape).astype("float32") for n, shape in named.items()}
    data = arrays.pop("data")
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params=arrays, inputs={"data": (rows, 5)})
    (got,) = onnxruntime.InferenceSession(path).run(None, {"data": data})
    (expected,) = run_symbol(sym.tojson(), arrays, {"data": data})
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
