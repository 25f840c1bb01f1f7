"""Feeds that MXNet does not compute on CPUs as they are meant: lengths, and baked batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from serde.bridges import mxnet as bridge
from testing.mxnet_live import live_mxnet

RNG = np.random.default_rng(9)
STATEMENT = "sequences that end early: MXNet ignores their lengths on CPUs"
SIZES = {"gru": 81, "lstm": 108}


def network(s, mode: str = "gru", lengths: Any = None, **options: Any) -> Any:
    """A recurrent layer of five steps; ``lengths`` makes those of a variable."""
    states = [s.var(f"s{i}") for i in range(2 if mode == "lstm" else 1)]
    length = s.var("len") if lengths is None else lengths(s.var("len"))
    x = s.transpose(s.var("data"), axes=(1, 0, 2))
    return s.RNN(
        x, s.var("p"), *states, sequence_length=length, use_sequence_length=True, state_size=3,
        num_layers=1, mode=mode, name="rnn", **options,
    )  # fmt: skip


def shapes_of(mode: str, batch: int | str = 2) -> dict[str, tuple[int | str, ...]]:
    states = {f"s{i}": (1, batch, 3) for i in range(2 if mode == "lstm" else 1)}
    return {"data": (batch, 5, 4), "len": (batch,), **states}


MADE: dict[str, tuple[str, Any]] = {
    "gru": ("gru", None),
    "lstm": ("lstm", None),
    "cast": ("gru", lambda v: v.astype("float32").reshape((-1,))),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("batch", [2, "N"])
def test_verified_on_full_lengths(name: str, batch, tmp_path) -> None:
    mode, lengths = MADE[name]
    symbol = network(live_mxnet().sym, mode, lengths)
    arrays = {"p": RNG.uniform(-1, 1, SIZES[mode]).astype("float32")}
    report = serde.convert(
        symbol, tmp_path / "m.onnx", params=arrays, inputs=shapes_of(mode, batch), verify=True,
        rename={"len": "lengths"},
    )  # fmt: skip
    assert report.ok and report.verification.done, report.verification
    assert STATEMENT in report.verification.not_compared


def test_lengths_that_are_given_are_filled_too(tmp_path) -> None:
    symbol = network(live_mxnet().sym)
    arrays = {"p": RNG.uniform(-1, 1, SIZES["gru"]).astype("float32")}
    shapes = shapes_of("gru")
    data = {n: RNG.uniform(-1, 1, s).astype("float32") for n, s in shapes.items()}
    data["len"] = np.float32([3, 1])
    report = serde.convert(
        symbol, tmp_path / "m.onnx", params=arrays, inputs=shapes, verify=True, data=data
    )
    assert report.ok and STATEMENT in report.verification.not_compared


def test_lengths_that_are_computed_are_told() -> None:
    symbol = network(live_mxnet().sym, lengths=lambda v: v * 2)
    complete = bridge.complete_feeds(symbol, params={"p": np.ones(81, "float32")})
    assert complete is not None
    feeds = {n: np.ones(s, "float32") for n, s in shapes_of("gru").items()}
    done, statement = complete(feeds)
    assert np.array_equal(done["len"], feeds["len"])
    assert statement == f"{STATEMENT}, and those of 'rnn' are computed: they may differ"


def test_other_models_take_any_feeds() -> None:
    s = live_mxnet().sym
    assert bridge.complete_feeds(s.relu(s.var("data"))) is None


@pytest.mark.parametrize("inputs", [{}, {"data": ("N", 5)}, {"data": (6, 5)}])
def test_a_batch_that_is_baked_in_is_compared_with_that(inputs, tmp_path) -> None:
    s = live_mxnet().sym
    symbol = s.FullyConnected(s.var("data"), num_hidden=12, name="fc").reshape((6, 3, 4)) * 2
    arrays = {"fc_weight": RNG.random((12, 5), "float32"), "fc_bias": RNG.random(12, "float32")}
    report = serde.convert(symbol, tmp_path / "m.onnx", params=arrays, inputs=inputs, verify=True)
    assert report.ok and report.verification.done, report.verification
    is_open = inputs.get("data") != (6, 5)
    told = [n for n in report.verification.not_compared if "another size than 6" in n]
    assert len(told) == is_open
    assert report.outputs[0]["shape"] == f"({'N' if is_open else 6}, 3, 4)"
