"""Pipes, devices and endless files, wherever a file is read."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.backends import manifest
from serde.backends.description import read_backend
from serde.errors import MalformedFile, SerdeError
from serde.frontends.wrap import find_function
from serde.io.arrays import read_npy, read_npz
from serde.io.sniff import open_regular, read_regular, split_member
from serde.ir.budget import BYTES, within_budget
from serde.passes.set_inputs import parse_setting
from testing.onnx_live import DIGITS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no such files")
SECONDS = 20
READERS = {
    "open_regular": open_regular,
    "read_regular": lambda path: read_regular(path, 10),
    "read_npy": read_npy,
    "read_npz": read_npz,
    "--set-input": lambda path: parse_setting(f"x={path}"),
    "--backend": lambda path: read_backend(Path(path)),
    "--pre": lambda path: find_function(f"{path}:f"),
    "hash_file": lambda path: manifest.hash_file(Path(path)),
    "load": serde.load,
    "params": lambda path: serde.load(DIGITS, params=path),
}
KINDS = {
    "a pipe": os.mkfifo if os.name == "posix" else None,
    "an endless device": lambda path: os.symlink("/dev/zero", path),
    "a terminal": lambda path: os.symlink("/dev/tty", path),
    "a socket": lambda path: make_socket(path),
    "a file without a size": lambda path: os.symlink("/proc/self/maps", path),
    "the memory of a process": lambda path: os.symlink("/proc/self/mem", path),
}


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        made.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")  # a short name
        os.close(folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, reader, kind):
    suffix = {"--set-input": ".npy", "--pre": ".py"}.get(reader, "")
    path = str(tmp_path / f"f{suffix}")
    KINDS[kind](path)
    with pytest.raises((SerdeError, OSError)) as error:
        READERS[reader](path)
    assert reader != "open_regular" or "not a regular file" in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_is_a_regular_file(tmp_path, kind):
    KINDS[kind](tmp_path / "manifest.json")
    with pytest.raises((MalformedFile, OSError)):
        manifest.read_manifest(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        "check DIGITS --backend PIPE", "convert DIGITS -o o.onnx --data PIPE",
        "convert DIGITS -o o.onnx --expected PIPE", "convert DIGITS -o o.onnx --params PIPE",
        "convert DIGITS -o o.onnx --set-input data=PIPE", "compare DIGITS DIGITS --data PIPE",
        "wrap DIGITS -o o.onnx --pre PIPE.py:f", "repair PIPE -o o.onnx", "inspect PIPE",
        "verify-hash PIPE", "run PIPE --data PIPE -o o.npz", "migrate PIPE -o out --jobs 1",
        "partition DIGITS -o parts --backend PIPE",
    ],
)  # fmt: skip
def test_no_command_waits_for_a_pipe(tmp_path, arguments):
    for name in ("PIPE", "PIPE.py"):
        os.mkfifo(tmp_path / name)
    words = [str(DIGITS) if w == "DIGITS" else w for w in arguments.split()]
    done = subprocess.run(
        [sys.executable, "-m", "serde", *words], cwd=tmp_path, timeout=SECONDS, capture_output=True
    )
    assert done.returncode in (1, 2, 3)
    assert b"Traceback" not in done.stderr


def test_a_file_that_is_too_large_is_read_no_further(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 11)
    with pytest.raises(MalformedFile, match="larger than"):
        read_regular(path, 10)
    assert read_regular(path, 11) == b"x" * 11


def test_arrays_are_read_as_numpy_reads_them(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3, order="F"), "b": np.array("text"),
              "c": np.array([1j])}  # fmt: skip
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    np.save(tmp_path / "a.npy", arrays["a"])
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    assert all(
        np.array_equal(read[n], arrays[n]) and read[n].dtype == arrays[n].dtype for n in read
    )
    assert np.array_equal(read_npy(tmp_path / "a.npy"), arrays["a"])


HEADERS = [
    f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    for kind, shape in [
        ("<f8", "(99999999999999,)"), ("<f8", "(9999999999999999999999,)"), ("<f8", "(-1,)"),
        ("<f8", "()"), ("<U0", "(1000000000,)"), ("|V0", "(1000000000,)"),
    ]
]  # fmt: skip


@pytest.mark.parametrize("header", [*HEADERS, "(" * 5000, "{'a\n", "'"])
def test_a_header_that_claims_much_or_is_none_is_refused(tmp_path, header):
    header = header.ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(MalformedFile):
        read_npy(tmp_path / "a.npy")


def test_pickles_are_not_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object))
    np.savez(tmp_path / "a.npz", a=np.array([{}], object))
    with pytest.raises(MalformedFile):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(MalformedFile):
        read_npz(tmp_path / "a.npz")


def test_inflated_arrays_are_in_proportion_to_the_file(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(1 << 26))
    with pytest.raises(MalformedFile, match="max-growth"):
        read_npz(tmp_path / "a.npz")


SPARSE = {
    "m.onnx": b"\x08\x08", "m-symbol.json": b'{"nodes": ',
    "m.relay": b'#[version = "0.0.5"]\n', "m.json": b'{"root": 1, "nodes": [{"type_key": ""}',
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_holes_of_a_file_count_as_made(tmp_path, name):
    """A file of a tebibyte that takes no room must not fill the disk or the memory."""
    with open(tmp_path / name, "wb") as file:
        file.write(SPARSE[name])
        file.truncate(1 << 40)
    with pytest.raises(MalformedFile, match="holes of a sparse file .* max_growth="):
        serde.load(tmp_path / name)


def external_model(folder, count, elements):
    """A model of weights that all lie at the beginning of the file ``d``."""
    tensors = []
    for at in range(count):
        tensor = onnx.TensorProto(name=f"w{at}", data_type=1, dims=[elements], data_location=1)
        tensor.external_data.add(key="location", value="d")
        tensors.append(tensor)
    nodes = [onnx.helper.make_node("Neg", [f"w{at}"], [f"y{at}"]) for at in range(count)]
    outputs = [onnx.helper.make_tensor_value_info(f"y{at}", 1, None) for at in range(count)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", [], outputs, tensors),
        opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_weights_in_holes_are_charged(tmp_path):
    path = external_model(tmp_path, 1, 1 << 28)
    with open(tmp_path / "d", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(MalformedFile, match="max_growth="):
        serde.load(path)
    assert len(list(serde.load(path, max_growth=2048).constants())) == 1


def test_weights_that_share_their_bytes_are_charged(tmp_path):
    (tmp_path / "d").write_bytes(bytes(1 << 22))
    assert len(serde.load(external_model(tmp_path, 8, 1 << 20)).outputs) == 8
    with pytest.raises(MalformedFile, match="max_growth="):
        serde.load(external_model(tmp_path, 1000, 1 << 20))


def test_a_file_without_holes_counts_whole(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    with within_budget() as budget:
        before = budget.most_bytes
        open_regular(tmp_path / "f").close()
        assert (budget.most_bytes - before, budget.bytes) == (BYTES.growth * 100_000, 0)


@pytest.mark.parametrize("text", ["print(1)", "{'descr': f(), 'shape': [x for x in y]}"])
def test_a_header_that_is_code_is_refused_without_an_address(tmp_path, text):
    header = struct.pack("<H", len(text)) + text.encode()
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + header)
    with pytest.raises(MalformedFile, match="not an .npy file of an array: ") as error:
        read_npy(tmp_path / "a.npy")
    assert " at 0x" not in str(error.value)


@pytest.mark.parametrize("url, member", [
    ("https://host/m.zip", "net/m.onnx"), ("https://host:80/m.tar.gz", "i.zip:m.onnx"),
    ("https://h.zip:80/m.onnx", ""), ("memory://m.zip", "m.onnx"), ("s3://b/m.zip", ""),
    ("zip://a.zip::file:///b.zip", ""), ("s3://b/m.onnx:1", ""),
])  # fmt: skip
def test_a_member_of_an_archive_at_a_url(url, member):
    assert split_member(f"{url}:{member}" if member else url) == (url, member)
