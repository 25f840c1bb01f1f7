"""Formats and bridges, found by entry point and chosen by content."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import serde
from serde import plugins
from serde.errors import MalformedFile, UnknownFormat, UsageError
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.plugins import Format
from testing.onnx_live import run_model
from testing.tflite import models


@dataclass(frozen=True)
class Entry:
    """An entry point that loads ``thing``."""

    name: str
    thing: Any
    value: str = "somewhere:FORMAT"

    def load(self):
        return self.thing


@dataclass(frozen=True)
class Installed:
    """Entry points of one group."""

    entries: list[Entry]

    def select(self, group):
        return self.entries


def a_format(name, suffixes, matches=lambda path: False):
    return Format(name, suffixes, matches, lambda path: None, lambda graph: graph)


@pytest.fixture
def with_formats(monkeypatch):
    """Replace the installed formats for a test."""

    def install(*formats):
        entries = {f.name: Entry(f.name, f) for f in formats}
        monkeypatch.setattr(plugins, "_entries", lambda group: entries)
        monkeypatch.setattr(plugins, "_load", lambda group, name: entries[name].load())

    return install


def test_the_built_in_plugins_come_through_the_same_door():
    assert {"mxnet", "onnx"} <= set(plugins.format_names())
    assert {"mxnet", "onnx"} <= set(plugins.bridge_names())
    for name in plugins.format_names():
        assert plugins.get_format(name).name == name
    for name in plugins.bridge_names():
        assert plugins.get_bridge(name).format in plugins.format_names()


def test_unknown_names_are_refused_with_those_installed():
    with pytest.raises(
        UnknownFormat, match="no format is called 'caffe'; installed: .*mxnet, onnx"
    ):
        plugins.get_format("caffe")
    assert plugins.get_bridge("caffe") is None


def test_two_plugins_of_one_name_are_refused(monkeypatch):
    two = [Entry("toy", None, "one:FORMAT"), Entry("toy", None, "two:FORMAT")]
    monkeypatch.setattr(plugins, "_load_entry_points", lambda: Installed(two))
    with pytest.raises(
        UnknownFormat, match="two plug-ins are called 'toy': one:FORMAT, two:FORMAT"
    ):
        plugins._entries.__wrapped__("serde.formats")
    same = [two[0], two[0]]  # a folder that is on the path twice
    monkeypatch.setattr(plugins, "_load_entry_points", lambda: Installed(same))
    assert plugins._entries.__wrapped__("serde.formats") == {"toy": two[0]}


@pytest.mark.parametrize(
    ("name", "expected"), [("a.onnx", "short"), ("a.v2.onnx", "long"), ("a-symbol.json", "json")]
)
def test_the_longest_suffix_tells_what_to_write(with_formats, name, expected):
    with_formats(
        a_format("short", (".onnx",)), a_format("long", (".v2.onnx",)), a_format("json", (".json",))
    )
    assert plugins.format_for_writing(Path(name)).name == expected


def test_a_suffix_nobody_writes_is_refused_with_those_known(with_formats):
    formats = a_format("one", (".one", ".uno")), a_format("two", (".two",))
    with_formats(*(replace(f, encode=print) for f in formats), a_format("read", (".read",)))
    with pytest.raises(UsageError, match=r"one of .one \(one\), .uno \(one\), .two \(two\)"):
        plugins.format_for_writing(Path("a.txt"))


def test_content_tells_what_to_read(with_formats, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"two: ...")
    with_formats(
        a_format("one", (".one",), lambda p: p.read_bytes().startswith(b"one")),
        a_format("two", (".two",), lambda p: p.read_bytes().startswith(b"two")),
    )
    assert plugins.format_of(path).name == "two"


def test_content_that_several_claim_is_refused(with_formats, tmp_path):
    path = tmp_path / "model.bin"
    path.touch()
    with_formats(*(a_format(n, (f".{n}",), lambda p: True) for n in ("one", "two")))
    with pytest.raises(UnknownFormat, match="could be one, two: say which with --from"):
        plugins.format_of(path)


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (b"no model", UnknownFormat, "is of no known format; installed: .*mxnet, onnx"),
        (b"", MalformedFile, "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", MalformedFile, "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", MalformedFile, "an HTML or XML page"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>", MalformedFile, "an HTML or XML page"),
    ],
)
def test_what_no_format_claims_is_told_for_what_it_is(tmp_path, content, kind, why):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(kind, match=why):
        plugins.format_of(path)


@pytest.mark.parametrize("name", ["m.pt2", "m.relay", "m.tflite", "m.json", "m.py"])
def test_what_its_name_tells_of_a_file_that_no_format_claims(tmp_path, name):
    """A file that broke off; ``.json`` may be of anything, and ``.py`` is written only."""
    (tmp_path / name).write_bytes(b"PK\x03\x04 cut")
    expected = "it may be cut off$" if name in ("m.pt2", "m.relay", "m.tflite") else "installed: "
    with pytest.raises(UnknownFormat, match=f"{name} is of no known format; .*{expected}"):
        plugins.format_of(tmp_path / name)


def test_a_folder_without_a_model_is_told(tmp_path):
    (tmp_path / "below").mkdir()
    with pytest.raises(UnknownFormat, match="no model is in this folder: serde migrate looks"):
        plugins.format_of(tmp_path)


def test_of_a_folder_the_models_in_it_are_named(tmp_path):
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1), float32]) { nn.relu(%x) }\n'
    (tmp_path / "net.relay").write_text(text)
    (tmp_path / "README").write_text("no model")
    with pytest.raises(UnknownFormat, match=r"is a folder: name the model in it: \S+net.relay$"):
        plugins.format_of(tmp_path)


def test_an_absent_path_is_told_before_any_format_is_asked(tmp_path, with_formats):
    with_formats(a_format("one", (".one",), lambda p: 1 / 0))
    with pytest.raises(MalformedFile, match="no such file, folder or prefix"):
        plugins.format_of(tmp_path / "nothing[1]")
    (tmp_path / "nothing[1]-symbol.json").touch()
    with pytest.raises(ZeroDivisionError):
        plugins.format_of(tmp_path / "nothing[1]")


def test_an_object_finds_its_bridge_by_the_module_of_its_class_or_of_a_base():
    import onnx

    assert plugins.bridge_for(onnx.ModelProto()).name == "onnx"
    mine = type("Symbol", (), {"__module__": "mxnet.symbol.symbol"})
    theirs = type("Net", (mine,), {"__module__": "my.models"})
    assert plugins.bridge_for(mine()).name == plugins.bridge_for(theirs()).name == "mxnet"
    with pytest.raises(
        UnknownFormat,
        match="no bridge takes a numpy.ndarray: a model is the path of a file, .* of one of .*mxnet",
    ):
        plugins.bridge_for(np.zeros(1))


def read_swish(g, x, *, beta: float = 1.0):
    return g.Mul(x, g.Sigmoid(g.Mul(x, beta)))


SWISHES = {  # a file with an operator of somebody else's, and its name
    "onnx": ("m.onnx", "my.domain::Swish"),
    "relay": ("m.relay", "nn.leaky_relu"),
    "mxnet": ("m-symbol.json", "my_swish"),
    "pt2": ("m.pt2", "leaky_relu"),
    "tflite": ("m.tflite", "LEAKY_RELU"),
}


def write_swish(folder, name):
    """A model of a format whose only operator has no rule, or another one."""
    path = folder / SWISHES[name][0]
    if name == "onnx":
        node = helper.make_node("Swish", ["x"], ["y"], domain="my.domain", beta=1.5)
        ends = [helper.make_tensor_value_info(n, 1, [2, 3]) for n in "xy"]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    elif name == "pt2":
        path.write_bytes((Path(__file__).parent / "data/pt2/leaky.pt2").read_bytes())
    elif name == "tflite":
        model = models.build(models.Case("LEAKY_RELU", [EXAMPLE], options={"alpha": 1.5}))
        model["subgraphs"][0]["tensors"][0]["name"] = "x"
        path.write_bytes(models.write(model))
    elif name == "relay":
        path.write_text(
            '#[version = "0.0.5"]\n'
            "def @main(%x: Tensor[(2, 3), float32]) { nn.leaky_relu(%x, alpha=1.5f) }\n"
        )
    else:
        nodes = [{"op": "null", "name": "x", "inputs": []},
                 {"op": "my_swish", "name": "y", "inputs": [[0, 0, 0]], "attrs": {"beta": "1.5"}}]  # fmt: skip
        text = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {}}
        path.write_text(json.dumps(text))
    return path


def read_leaky(g, x, *, alpha: float):
    return read_swish(g, x, beta=alpha)


def read_leaky_in_order(g, x, slope):
    return read_swish(g, x, beta=slope)


RULES = {"relay": read_leaky, "pt2": read_leaky_in_order, "tflite": read_leaky}
EXAMPLE = models.Operand(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("way", ["a plug-in", "the caller"])
@pytest.mark.parametrize("name", plugins.read_formats())
def test_rules_of_plugins_and_callers_are_read_by_every_format(monkeypatch, tmp_path, name, way):
    path, (_, op) = write_swish(tmp_path, name), SWISHES[name]
    rule = RULES.get(name, read_swish)
    if way == "a plug-in":
        entries, mine = plugins._entries, {f"serde.rules.{name}": {op: Entry(op, rule)}}
        monkeypatch.setattr(plugins, "_entries", lambda group: mine.get(group) or entries(group))
        monkeypatch.setattr(plugins, "_load", lambda group, n: plugins._entries(group)[n].load())
    own = {"rules": {op: rule}} if way == "the caller" else {}
    graph = serde.load(path, inputs={"x": (2, 3)}, **own)
    assert [n.op for n in graph.nodes] == ["Mul", "Sigmoid", "Mul"]
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    (y,) = run_model(to_proto(from_ir(graph, 17)), {"x": x})
    np.testing.assert_allclose(y, x / (1 + np.exp(-1.5 * x)), rtol=1e-5)


def test_a_format_that_takes_no_rules_is_told_of_those_of_plugins(monkeypatch):
    mine = {"serde.rules.old": {"swish": Entry("swish", read_swish)}}
    monkeypatch.setattr(plugins, "_entries", lambda group: mine.get(group) or {})
    with pytest.raises(UsageError, match="old takes no rules; a plug-in brings some: swish"):
        plugins.with_plugin_rules(a_format("old", (".old",)), {})


@pytest.mark.parametrize("name", plugins.bridge_names())
def test_models_of_a_bridge_that_runs_them_are_run(name):
    bridge = plugins.get_bridge(name)
    if bridge.can_run:
        assert plugins.get_runtime_bridge(bridge.format) is bridge


def test_a_written_format_that_is_not_read_says_what_to_convert(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = serde.trace(lambda x: x + 1, ((2, 3), "float32"))
    serde.save(graph, "net.py")
    with pytest.raises(
        UnknownFormat, match=r"net.py: PyTorch is written, not read: export the mod"
    ):
        serde.load("net.py")
    Path("train.py").write_text("import torch\n")
    with pytest.raises(UnknownFormat, match="train.py is of no known format") as caught:
        serde.load("train.py")
    assert "torch" not in str(caught.value).partition("installed: ")[2]
    for name in ("net.pt2", "net.foo"):
        with pytest.raises(UsageError) as refused:
            serde.save(graph, name)
        assert name == "net.pt2" or ".pt2" not in str(refused.value)


@pytest.mark.parametrize(
    "name, content, what",
    [
        ("a.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "a model of Keras: write it with tf.lite"),
        ("a.pth", b"PK\3\4" + b"\0" * 26 + b"a/data.pkl", "PyTorch has pickled: load it there"),
        ("a.pt", b"\x80\x02\x8a\nl\xfc\x9c", "PyTorch has pickled: load it there"),
        ("a.tar.xz", b"\xfd7zXZ\0" + b"\0" * 99, "an archive in which no model is found: unpack"),
        ("a.bin.gz", gzip.compress(b"no model", mtime=0), "an archive in which no model is found"),
        ("a.bin", b"no model", "installed: mxnet"),
        ("a.onnx", "größer\n".encode(), "it is text, and ONNX models are not: export or fetch"),
    ],
)
def test_what_people_hold_for_a_model_is_named_with_what_to_do(name, content, what, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnknownFormat, match=f"{name} is of no known format; .*{what}"):
        serde.load(tmp_path / name)
