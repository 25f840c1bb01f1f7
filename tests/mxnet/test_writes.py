"""The IR written as MXNet and run by live MXNet: onnx's node tests, and whole networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serde.errors import SerdeError
from serde.formats.mxnet import FORMAT
from serde.formats.mxnet.decode import decode
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode
from serde.formats.onnx.reader import decode as decode_model
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from serde.passes.cut_inputs import with_inputs
from testing import networks
from testing.mxnet_live import live_mxnet, run_symbol
from testing.node_cases import all_cases, freeze

EACH = 6  # every sixth node test: all of them take two minutes
NETWORKS = ["squeezenet1.0", "resnet18_v2", "mobilenetv2_0.25", "lstm_bidirectional", "gru_states"]
HARDWARE = "FP16 gemm on cpu not implemented"


def write_symbol(graph, folder):
    """Write an IR graph to files; the symbol's text and the arrays."""
    text, params = encode(from_ir(graph), folder / "m-symbol.json")
    return Path(text).read_text(), networks.load_params(params)


@pytest.mark.parametrize("part", range(4))
def test_node_tests_are_right_or_refused(tmp_path, part):
    live_mxnet()
    outcomes = {"right": 0, "refused": 0}
    for case in all_cases()[part::4][::EACH]:
        if case.is_random:
            continue
        case = freeze(case) or case
        try:
            text, params = write_symbol(tidy(raise_to_ir(decode_model(case.model))), tmp_path)
        except SerdeError:
            outcomes["refused"] += 1
            continue
        held = {t.name for t in case.model.graph.initializer}
        names = [i.name for i in case.model.graph.input if i.name not in held]
        feeds, expected = case.data[0]
        read = set(live_mxnet().sym.load_json(text).list_inputs())
        inputs = {n: f for n, f in zip(names, feeds, strict=True) if n in read}
        try:
            got = run_symbol(text, params, inputs)
        except Exception as error:
            assert HARDWARE in str(error), case.name
            continue
        for a, b in zip(got, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape or (1,), b.dtype), case.name
            close = {"rtol": max(case.rtol, 1e-3), "atol": max(case.atol, 1e-5)}
            np.testing.assert_allclose(a, b, **close, err_msg=case.name)
        outcomes["right"] += 1
    assert outcomes["right"] >= 20


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_come_back(tmp_path, name):
    """MXNet → IR → MXNet: the numbers, and the names of inputs, outputs and weights."""
    size = networks.smallest(name) if name in networks.VISION else None
    network = networks.build(name, size)
    feeds = networks.feeds(network, 2)
    expected = networks.compute(network, feeds)
    symbol, _ = networks.export(network, tmp_path)
    source = decode(symbol)
    graph = tidy(FORMAT.to_ir(with_inputs(source, feeds)))
    text, params = write_symbol(graph, tmp_path)
    again = live_mxnet().sym.load_json(text)
    assert again.list_outputs() == [v.name for v in source.outputs]
    assert set(feeds) <= set(again.list_arguments())
    for a, b in zip(run_symbol(text, params, feeds), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * np.abs(b).max())


def test_statistics_are_auxiliary_states(tmp_path):
    network = networks.build("resnet18_v2", 32)
    symbol, _ = networks.export(network, tmp_path)
    graph = tidy(FORMAT.to_ir(with_inputs(decode(symbol), networks.feeds(network, 1))))
    text, _ = write_symbol(graph, tmp_path)
    states = live_mxnet().sym.load_json(text).list_auxiliary_states()
    assert states
    assert all(n.endswith(("running_mean", "running_var")) for n in states)


def test_what_mxnet_cannot_say_is_listed(tmp_path):
    case = next(c for c in all_cases() if c.name == "test_image_decoder_decode_png_rgb")
    with pytest.raises(SerdeError, match="ImageDecoder"):
        write_symbol(raise_to_ir(decode_model(case.model)), tmp_path)
    assert not list(tmp_path.iterdir())
