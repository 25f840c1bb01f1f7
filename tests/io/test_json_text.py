"""Names as MXNet and TVM read them: their JSON has no ``\\u``."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import serde
from serde.formats.relay.json.reader import read_json
from serde.io.json_text import dump_line, make_writable, quote
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of
from testing.relay.tvm_live import ask

NAMES = ["é", "中文", "😀", "a/b", "a\tb", "a\nb", 'a"b', "a\\b", "\\u00e9", "\x7f", "\x85", "\u2028",
         "\ufeffa"]  # fmt: skip
WITHOUT_FORM = ["\x00", "\x08", "\x0b", "\x0c", "\x1b", "\x1f", "a\x1b\x1bb", "\ud800", "\udfff"]


@pytest.mark.parametrize("name", NAMES)
def test_what_has_a_form_keeps_it(name):
    assert make_writable(name) == name
    for text in (quote(name), dump_line(name)):
        assert json.loads(text) == name and "\\u" not in text.replace("\\\\", "")


@pytest.mark.parametrize("name", WITHOUT_FORM)
def test_what_has_none_is_replaced(name):
    for text in (quote(name), dump_line(name)):
        assert json.loads(text) == make_writable(name)
        assert make_writable(name).replace("_", "") in ("", "ab")


def test_values_of_all_kinds():
    value = {"a\x1b": [1, 2.5, None, True, "\x0c\\u0041"], "é": {}}
    expected = {"a_": [1, 2.5, None, True, "_\\u0041"], "é": {}}
    assert json.loads(dump_line(value)) == expected


def write(folder, name):
    model = model_of("g (float[1,4] x) => (float[1,4] y) { y = MatMul(x, w) }", 13, 8)
    weights = onnx.numpy_helper.from_array(np.eye(4, dtype="f"), f"{name}w")
    model.graph.initializer.append(weights)
    node = model.graph.node[0]
    node.name, node.input[:] = name, [f"{name}x", f"{name}w"]
    model.graph.input[0].name, node.output[0] = f"{name}x", f"{name}y"
    model.graph.output[0].name = f"{name}y"
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("name", [*NAMES, *WITHOUT_FORM[:7]])
def test_mxnet_reads_names(name, tmp_path):
    mx = live_mxnet()
    verify = name in NAMES
    report = serde.convert(write(tmp_path, name), tmp_path / "m-symbol.json", verify=verify)
    assert report.ok
    symbol = mx.sym.load(str(tmp_path / "m-symbol.json"))
    arrays = mx.nd.load(str(tmp_path / "m-0000.params"))
    assert {f"arg:{n}" for n in symbol.list_arguments()} >= arrays.keys()
    assert serde.load(tmp_path / "m-symbol.json", inputs={make_writable(f"{name}x"): (1, 4)})


def test_a_symbol_with_escapes_is_run(tmp_path):
    nodes = [{"op": "null", "name": "é", "inputs": []},
             {"op": "relu", "name": "中", "inputs": [[0, 0, 0]]}]  # fmt: skip
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    assert "\\u" in text
    (tmp_path / "m-symbol.json").write_text(text)
    live_mxnet()
    options = {"inputs": {"é": (2, 3)}, "verify": True}
    assert serde.convert(tmp_path / "m-symbol.json", tmp_path / "m.onnx", **options).ok


@pytest.mark.parametrize("name", [*NAMES, *WITHOUT_FORM[:7]])
def test_tvm_reads_names(name, tmp_path):
    """``tvm.ir.load_json`` of Python escapes those beyond ASCII itself, and fails on them then."""
    source = write(tmp_path, name)
    serde.convert(source, tmp_path / "m.json", to_format="relay")
    text = (tmp_path / "m.json").read_text("utf-8")
    assert "\\u" not in text.replace("\\\\", "")
    assert read_json(tmp_path / "m.json").functions
    assert not text.isascii() or name == "\x7f" or ask("text_of", ["json", text])
