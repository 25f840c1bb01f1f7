"""What a file holds, by its content."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError
from serde.formats.relay.decode import read_module
from serde.formats.relay.io.magic import VM_MAGIC, kind_of, matches
from serde.plugins import format_of

DATA = Path(__file__).with_name("data")
TEXT = b"def @main(%x) { %x }"
GRAPH = (
    b'{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "f"}], '
    b'"arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"storage_id": []}, "node_row_ptr": [0, 1]}'
)
SYMBOL = (
    b'{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], '
    b'"node_row_ptr": [0, 1], "heads": [[0, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}'
)


def npz():
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("lib0.o"))
    return file.getvalue()


FILES = {
    "text": (TEXT, "text"),
    "text with a header": (b'\n#[version = "0.0.5"]\n', "text"),
    "text of 0.6": (b"v0.0.4\ndef @main", "text"),
    "text behind a mark and comments": (b"\xef\xbb\xbf/* a */ // b\ntype A[B] { C }", "text"),
    "function": (b"fn (%x: int8) { %x }", "text"),
    "expression": (b"free_var %x: int8;\n%x", "text"),
    "packed text": (gzip.compress(TEXT, mtime=0), "text"),
    "json": ((DATA / "tup-one.json").read_bytes(), "json"),
    "packed json": (gzip.compress((DATA / "tup-one.json").read_bytes(), mtime=0), "json"),
    "parameters": ((DATA / "dyn-batch-conv.params").read_bytes(), "params"),
    "arrays": (npz(), "params"),
    "library": (b"\x7fELF\x02\x01\x01", "compiled"),
    "archive": (tar(), "compiled"),
    "packed archive": (gzip.compress(tar(), mtime=0), "compiled"),
    "machine code": (struct.pack("<QQ", VM_MAGIC, 9) + b"0.17.dev0", "compiled"),
    "graph": (GRAPH, "compiled"),
    "lowered module": (b'#[version = "0.0.5"]\n@f = primfn(a: handle) -> () {}', "compiled"),
    "MXNet's symbol": (SYMBOL, None),
    "nothing": (b"", None),
    "words": (b"default settings", None),
    "damaged gzip": (b"\x1f\x8b\x08garbage", None),
    "zip": (b"PK\x03\x04garbage", None),
}


@pytest.mark.parametrize(("raw", "kind"), FILES.values(), ids=FILES)
def test_kind(raw, kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(raw)
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    "name", ["text", "function", "expression", "packed text", "json", "packed json"]
)
def test_module_is_read(name, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(FILES[name][0])
    assert "main" in read_module(path).functions


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (GRAPH, "a graph executor's JSON: compiled code, .* save the module before it is built"),
        (FILES["library"][0], "a library: compiled code"),
        (FILES["packed archive"][0], "an archive of libraries: compiled code"),
        (FILES["machine code"][0], "a virtual machine's executable: compiled code"),
        (FILES["lowered module"][0], "a lowered module: compiled code"),
        (FILES["parameters"][0], "give the module's file as well"),
        (b"<!DOCTYPE html>", "HTML"),
        (b"", "the file is empty"),
        (b"hello", "neither Relay's text nor its JSON"),
        (gzip.compress(TEXT * 99, mtime=0)[:-9], "packed with gzip and damaged"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_says_what_it_is_instead(raw, reason, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(raw)
    with pytest.raises(MalformedFile, match=reason):
        read_module(path)


@pytest.mark.parametrize(
    ("kind", "name", "claimed"),
    [
        ("text", "m.txt", True),
        ("packed json", "m.json.gz", True),
        ("parameters", "p.params", True),
        ("machine code", "vm.ro", True),
        ("graph", "graph.json", True),
        ("library", "lib.so", True),
        ("library", "program", False),
        ("archive", "lib.tar", False),
        ("packed archive", "lib.tar.gz", False),
        ("arrays", "a.npz", False),
        ("MXNet's symbol", "m-symbol.json", False),
    ],
)
def test_claims_what_is_nobody_elses(kind, name, claimed, tmp_path):
    (tmp_path / name).write_bytes(FILES[kind][0])
    assert matches(tmp_path / name) is claimed


@pytest.mark.parametrize("kind", ["packed text", "packed json"])
@pytest.mark.parametrize("name", ["model", "model.gz", "model.json.gz"])
def test_packed_modules_are_of_one_format(kind, name, tmp_path):
    (tmp_path / name).write_bytes(FILES[kind][0])
    assert format_of(tmp_path / name).name == "relay"
    assert serde.load(tmp_path / name).outputs


def test_folders_and_missing_files(tmp_path):
    assert kind_of(tmp_path) is None
    assert kind_of(tmp_path / "nothing") is None


@pytest.mark.parametrize("call", [
    'cast(%x, dtype="")', 'reinterpret(%x, dtype="")', 'arange(0f, 3f, 1f, dtype="")',
])  # fmt: skip
def test_an_element_type_that_is_empty_is_refused_where_one_is_needed(call, tmp_path):
    text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{ {call} }}'
    (tmp_path / "m.relay").write_text(text)
    with pytest.raises(SerdeError, match="'' is not an element type. Enter one in the module"):
        serde.load(tmp_path / "m.relay")
