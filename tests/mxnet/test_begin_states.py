"""Tensors of which the symbol leaves a size open, as begin states of RNN cells that are unrolled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from serde.errors import SerdeError
from testing.mxnet_live import live_mxnet, run_symbol


def dense(s: Any, x: Any, name: str) -> Any:
    return s.FullyConnected(x, num_hidden=4, name=name)


def cell(s: Any, rows: Any, state: Any) -> Any:
    return s.tanh(dense(s, rows, "rows") + dense(s, state, "state"))


def kept_where_masked(s: Any, rows: Any, n: int) -> Any:
    """A zoneout: the state is kept where a mask is zero."""
    state = s.zeros(shape=(n, 4))
    new = cell(s, rows, state)
    return s.where(s.ones_like(new), new, state) + dense(s, state, "last")


def masked_rows(s: Any, data: Any, n: int) -> Any:
    new = cell(s, data, s.zeros(shape=(n, 4)))
    return s.where(s.sum(data, axis=1) > 0, new, s.zeros(shape=(n, 4 if n else 0)))


def kept_where_masked_in_parts(s: Any, data: Any, n: int) -> Any:
    """As GluonTS's LSTNet: the batch of the cell is not that of an input."""
    parts = s.reshape(s.tile(data, reps=(3, 1)), shape=(3, -1, 5))
    rows = s.SliceChannel(parts, num_outputs=3, axis=0, squeeze_axis=True)[1]
    state = s.zeros(shape=(n, 4))
    new = cell(s, rows, state)
    return s.where(s.ones_like(new), new, state) + state


def turns(s: Any, data: Any) -> Any:
    """As Gluon's ``dynamic_unroll``: 5 turns of 3 numbers each, and the batch is second."""
    return s.transpose(s.reshape(s.tile(data, reps=(1, 3)), shape=(-1, 5, 3)), axes=(1, 0, 2))


def each_turn(s: Any, data: Any, n: int) -> Any:
    def body(rows: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        new = cell(s, rows, states[0])
        return new, [new]

    outputs, states = s.contrib.foreach(body, turns(s, data), [s.zeros((n, 4))])
    return s.Group([outputs, states[0]])


def created_in_the_body(s: Any, data: Any, n: int) -> Any:
    def body(rows: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        new = s.tanh(dense(s, rows, "rows") + s.ones((n, 4)))
        return new * s.ones((n, 4)), [s.concat(new, s.zeros((n, 2)), dim=1) + states[0]]

    outputs, states = s.contrib.foreach(body, turns(s, data), [s.ones((n, 6))])
    return s.Group([outputs, states[0]])


def while_below(s: Any, data: Any, n: int) -> Any:
    rows = dense(s, data, "rows")
    outputs, states = s.contrib.while_loop(
        lambda turn, state: turn < 3,
        lambda turn, state: ([state * 2], [turn + 1, dense(s, state, "state") + rows]),
        [s.zeros((1,)), s.full((n, 4), 0.5)],
        max_iterations=4,
    )
    return s.Group([s.slice_axis(outputs[0], axis=0, begin=0, end=3), states[1]])


def one_or_the_other(s: Any, data: Any, n: int) -> Any:
    rows, state = dense(s, data, "rows"), s.full((n, 4 if n else 0), 0.5)
    return s.contrib.cond(s.sum(data) > 0, lambda: rows + state, lambda: state * rows)


def two_layers(s: Any, data: Any, n: int) -> Any:
    """The batch of the second is known when that of the first is."""
    first = s.reshape(s.dot(s.expand_dims(data, axis=1), s.ones((5, 4))), shape=(-3, 0))
    return cell(s, first * s.ones((n, 4)), s.ones((n, 4)))


def steps(s: Any, data: Any, n: int) -> Any:
    how_many = {"stop": 2 + 0.5 * n} if n else {"infer_range": True}
    numbers = s._internal._arange(start=2, step=0.5, **how_many) + s.sum(data, axis=1)
    return s.broadcast_add(s.expand_dims(numbers, axis=1), data)


def read_twice(s: Any, data: Any, n: int) -> Any:
    state = s.ones((n, 5))
    return s.Group([state + data, state])


# The symbols, of data of 5 numbers for each sample; ``n`` samples, or 0.
CELLS: dict[str, Callable[[Any, Any, int], Any]] = {
    "dense": lambda s, x, n: cell(s, x, s.zeros(shape=(n, 4))),
    "sum": lambda s, x, n: dense(s, x, "rows") + s.zeros(shape=(n, 4 if n else 0)),
    "masked": kept_where_masked,
    "masked_in_parts": kept_where_masked_in_parts,
    "chain": lambda s, x, n: cell(s, x, s.tanh(s.zeros(shape=(n, 4)) * 2)),
    "mask_of_rows": masked_rows,
    "product": lambda s, x, n: s.zeros(shape=(n, 4)) * dense(s, x, "rows") + 1,
    "ones": lambda s, x, n: cell(s, x, s.ones(shape=(n, 4))),
    "full": lambda s, x, n: cell(s, x, s.full(shape=(n, 4), val=0.25)),
    "of_no_type": lambda s, x, n: s._internal._zeros_without_dtype(shape=(n, 5)) + x,
    "of_no_rank": lambda s, x, n: s.ones(shape=(n, 5) if n else ()) * x,
    "joined": lambda s, x, n: s.concat(x, s.ones((n, 3)), dim=1),
    "unary": lambda s, x, n: s.arcsinh(s.gamma(s.ones((n, 5)))) * x,
    "stacked": lambda s, x, n: s.stack(x + 1, s.ones((n, 5))),
    "reshaped": lambda s, x, n: s.reshape(s.ones((n, 5, 1)), shape=(-1, 5)) + x,
    "reshaped_in_place": lambda s, x, n: s.reshape(s.ones((n, 5, 1)), shape=(0, 5)) + x,
    "transposed": lambda s, x, n: s.transpose(s.ones((5, n))) * x,
    "read_twice": read_twice,
    "steps": steps,
    "foreach": each_turn,
    "foreach_body": created_in_the_body,
    "while_loop": while_below,
    "cond": one_or_the_other,
    "two_layers": two_layers,
}


# Shapes of parameters in bodies whose operands MXNet infers nothing of.
BODIES = ("while_loop", "cond")
IN_BODIES = {"rows_weight": (4, 5), "state_weight": (4, 4), "rows_bias": (4,), "state_bias": (4,)}


def make(name: str, count: int) -> tuple[Any, dict[str, np.ndarray], np.ndarray, list[np.ndarray]]:
    """A symbol with open sizes, parameters, data for ``count`` samples, and what it computes.

    That is what MXNet computes of the symbol in which all sizes are written out.
    """
    s = live_mxnet().sym
    data = s.var("data")
    sym, static = (CELLS[name](s, data, n) for n in (0, count))
    rng = np.random.default_rng(5)
    arguments = static.list_arguments()
    if name in BODIES:
        shapes = [(count, 5) if n == "data" else IN_BODIES[n] for n in arguments]
    else:
        shapes, _, _ = static.infer_shape(data=(count, 5))
    named = dict(zip(arguments, shapes, strict=True))
    arrays = {n: rng.normal(0, 1, shape).astype("float32") for n, shape in named.items()}
    rows = arrays.pop("data")
    return sym, arrays, rows, run_symbol(static.tojson(), arrays, {"data": rows})


@pytest.mark.parametrize("rows", [1, 3, "B"])
@pytest.mark.parametrize("name", CELLS)
def test_the_batch_of_a_begin_state(name, rows, tmp_path) -> None:
    sym, arrays, data, expected = make(name, rows if isinstance(rows, int) else 2)
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params=arrays, inputs={"data": (rows, 5)})
    got = onnxruntime.InferenceSession(path).run(None, {"data": data})
    assert_close(got, expected)


@pytest.mark.parametrize("name", ["foreach", "foreach_body", "cond", "joined"])
def test_the_batch_of_a_begin_state_in_mxnet_again(name, tmp_path) -> None:
    sym, arrays, data, expected = make(name, 2)
    path = tmp_path / "m-symbol.json"
    serde.convert(sym, str(path), params=arrays, inputs={"data": ("B", 5)})
    saved = tmp_path / "m-0000.params"
    params = live_mxnet().nd.load(str(saved)) if saved.exists() else {}
    held = {n.split(":", 1)[1]: v.asnumpy() for n, v in params.items()}
    assert_close(run_symbol(path.read_text(), held, {"data": data}), expected)


def assert_close(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for y, z in zip(got, expected, strict=True):
        assert y.shape == z.shape
        np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)


def test_a_state_that_nothing_reads_has_the_batch_of_the_data(tmp_path) -> None:
    s = live_mxnet().sym
    sym = s.Group([s.zeros((0, 4)) + s.var("data"), s.zeros((0, 3))])
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params={}, inputs={"data": ("N", 4)})
    data = np.ones((3, 4), "float32")
    _, got = onnxruntime.InferenceSession(path).run(None, {"data": data})
    np.testing.assert_array_equal(got, np.zeros((3, 3)))


def test_a_size_that_nothing_tells_is_refused(tmp_path) -> None:
    s = live_mxnet().sym
    sym = s.Group([s.var("data"), s.ones((0, 0))])
    with pytest.raises(
        serde.Unconvertible, match=r"the size 0 in shape=\(0, 0\) is one that MXNet"
    ):
        serde.convert(sym, str(tmp_path / "m.onnx"), params={}, inputs={"data": (2, 4)})


@pytest.mark.parametrize("rows", [2, "B"])
def test_noise_of_the_batch(rows, tmp_path) -> None:
    s = live_mxnet().sym
    sym = s.var("data") * 0 + s.random_uniform(2, 3, shape=(0, 4))
    path = str(tmp_path / "m.onnx")
    serde.convert(sym, path, params={}, inputs={"data": (rows, 4)}, random="onnx")
    (got,) = onnxruntime.InferenceSession(path).run(None, {"data": np.ones((2, 4), "float32")})
    assert got.shape == (2, 4) and (got >= 2).all() and (got <= 3).all()
    assert len(np.unique(got)) == 8


@pytest.mark.parametrize("dtype", ["2147483647", "13", "²", "٣", "none", ""])
def test_a_type_that_there_is_not_is_refused(dtype, tmp_path):
    """As well as numbers of types that MXNet writes."""
    path = tmp_path / "m-symbol.json"
    nodes = [{"op": "_zeros", "name": "z", "inputs": [],
              "attrs": {"shape": "(0, 4)", "dtype": dtype}}]  # fmt: skip
    path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [], "heads": [[0, 0, 0]]}))
    with pytest.raises(SerdeError):
        serde.convert(path, tmp_path / "m.onnx")
