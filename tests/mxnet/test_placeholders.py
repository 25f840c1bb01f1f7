"""A check without weights: the shapes MXNet would infer, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile
from serde.formats.mxnet.bind.placeholders import add_placeholders
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.passes.cut_inputs import with_inputs
from testing.mxnet import written
from testing.mxnet.written import chain, params_bytes
from testing.mxnet_live import live_mxnet

SYMBOL, ARRAYS = written.network()
CONV = {"kernel": "(3, 2)", "num_filter": 4, "stride": "(2, 1)", "pad": "(1, 0)"}
PARAMS = {**written.PARAMETERS, "InstanceNorm": ("gamma", "beta"), "LeakyReLU": ("gamma",)}
RNN = {"state_size": 3, "num_layers": 2, "bidirectional": True}
# Operators one after the other, and the shape of the data.
MODELS: list[tuple[list[tuple[str, dict[str, Any]]], tuple[int, ...]]] = [
    ([("Convolution", CONV), ("BatchNorm", {}), ("Pooling", {"kernel": "(2, 2)"}),
      ("FullyConnected", {"num_hidden": 5})], (2, 3, 9, 8)),
    ([("Convolution", {**CONV, "num_group": 3, "num_filter": 6, "dilate": "(2, 1)"}),
      ("FullyConnected", {"num_hidden": 5, "no_bias": True})], (2, 3, 9, 8)),
    ([("Convolution", CONV), ("Pooling", {"kernel": "(2, 2)", "pooling_convention": "full",
                                          "stride": "(2, 2)"}),
      ("FullyConnected", {"num_hidden": 5})], (2, 3, 9, 8)),
    ([("Convolution", {"kernel": "(3,)", "num_filter": 4})], (2, 3, 9)),
    ([("Deconvolution", {**CONV, "num_group": 2, "no_bias": False})], (2, 4, 5, 6)),
    ([("FullyConnected", {"num_hidden": 5, "flatten": False}), ("LayerNorm", {})], (2, 3, 4)),
    ([("InstanceNorm", {}), ("BatchNorm", {"axis": 2})], (2, 3, 4)),
    ([("LeakyReLU", {"act_type": "prelu"}), ("Flatten", {}),
      ("FullyConnected", {"num_hidden": 2})], (2, 3, 4)),
    ([("Embedding", {"input_dim": 9, "output_dim": 4}),
      ("FullyConnected", {"num_hidden": 2})], (2, 3)),
    *(([("RNN", {**RNN, "mode": mode})], (5, 2, 4)) for mode in ("lstm", "gru", "rnn_tanh")),
    ([("RNN", {**RNN, "mode": "lstm", "projection_size": 2})], (5, 2, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("operators", "data"), MODELS, ids=str)
def test_shapes_are_those_that_mxnet_infers(operators, data) -> None:
    states = ("state", "state_cell")[: 2 if operators[0][1].get("mode") == "lstm" else 1]
    text = chain(*operators, params={**PARAMS, "RNN": ("parameters", *states)})
    graph = with_inputs(decode_symbol(parse_symbol(text), None, "m"), {"data": data})
    shapes = {v.name: v.shape for v in add_placeholders(graph).constants()}
    net = live_mxnet().sym.load_json(text)
    arguments, _, states = net.infer_shape(data=data)
    names = [*net.list_arguments(), *net.list_auxiliary_states()]
    expected = dict(zip(names, [*arguments, *states], strict=True))
    assert {n: expected[n] for n in shapes} == shapes
    weights = {*expected} - {"data", "rnn0_state", "rnn0_state_cell"}
    assert {*shapes} == weights


@pytest.mark.parametrize("inputs", [{}, {"data": (1, 2, 8, 8)}, {"data": ("N", 2, "H", "W")}])
def test_a_check_without_weights(tmp_path: Path, inputs: Any) -> None:
    (tmp_path / "net-symbol.json").write_text(SYMBOL)
    report = serde.check(tmp_path / "net", inputs=inputs)
    assert report.problems == []
    notes = [n for n in report.notes if "checked without 8 weights" in n]
    assert len(notes) == 1 and "no net-0000.params or the like in" in notes[0]


def test_what_does_not_convert_is_found_without_weights(tmp_path: Path) -> None:
    text = SYMBOL.replace('"global_pool": "True"', '"global_pool": "True", "invented": "7"')
    (tmp_path / "net-symbol.json").write_text(text)
    (problem,) = serde.check(tmp_path / "net").problems
    assert problem.op == "Pooling" and "invented" in problem.reason


def test_dense_layers_without_weights_or_shapes(tmp_path: Path) -> None:
    text = chain(*(("FullyConnected", {"num_hidden": n}) for n in (5, 4)))
    (tmp_path / "net-symbol.json").write_text(text)
    assert serde.check(tmp_path / "net").problems == []


def test_weights_that_a_file_lacks_are_missed_in_a_check_too(tmp_path: Path) -> None:
    (tmp_path / "net-symbol.json").write_text(SYMBOL)
    arrays = {n: a for n, a in ARRAYS.items() if n != "convolution0_bias"}
    (tmp_path / "net-0000.params").write_bytes(params_bytes(arrays))
    with pytest.raises(MalformedFile, match="1 parameter"):
        serde.check(tmp_path / "net")


def test_a_conversion_needs_the_weights(tmp_path: Path) -> None:
    (tmp_path / "net-symbol.json").write_text(SYMBOL)
    with pytest.raises(MalformedFile, match="8 parameter"):
        serde.convert(tmp_path / "net", tmp_path / "net.onnx")


def test_placeholders_take_no_memory() -> None:
    text = chain(("FullyConnected", {"num_hidden": 1 << 20, "no_bias": True}))
    graph = with_inputs(decode_symbol(parse_symbol(text), None, "m"), {"data": (1, 1 << 20)})
    (weight,) = add_placeholders(graph).constants()
    assert weight.shape == (1 << 20, 1 << 20) and weight.array()[-1, -1] == np.float32(1)
