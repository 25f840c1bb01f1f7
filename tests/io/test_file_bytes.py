"""Bytes of files, read page by page; no file is mapped, whose end another process may cut off."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

import serde
from serde.errors import MalformedFile
from serde.io.file_bytes import PAGE, FileBytes
from testing.onnx_live import model_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("serde", "formats", "bridges", "backends", "frontends")
# Cuts the end of files off, again and again, as long as its parent reads them.
CUT = """
import os, sys
parts = [(path, open(path, "rb").read()) for path in sys.argv[1:]]
while os.getppid() > 1:
    for path, whole in parts:
        for size in (0, len(whole) // 3, len(whole) - 1):
            os.truncate(path, size)
            with open(path, "r+b") as file:
                file.write(whole)
"""


def test_bytes_are_those_of_the_file(tmp_path):
    rng = random.Random(0)
    whole = rng.randbytes(3 * PAGE + 17)
    path = tmp_path / "file"
    path.write_bytes(whole)
    with path.open("rb") as file:
        for start, size in ((0, len(whole)), (5, len(whole) - 5), (PAGE, PAGE), (7, 0)):
            data, expected = FileBytes(file, path, start, size), whole[start : start + size]
            assert len(data) == size
            assert data[:] == expected
            for _ in range(200):
                begin, end = rng.randrange(size + 9), rng.randrange(size + 9)
                assert data[begin:end] == expected[begin:end]
                if begin < size:
                    assert data[begin] == expected[begin]
            with pytest.raises(IndexError):
                data[size]


def test_a_file_that_becomes_shorter_is_an_error(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * PAGE))
    with path.open("rb") as file:
        data = FileBytes(file, path)
        path.write_bytes(bytes(PAGE))
        assert data[PAGE - 1] == 0
        with pytest.raises(MalformedFile, match="shorter"):
            data[PAGE]
        with pytest.raises(MalformedFile, match="shorter"):
            data[:]


def _make_model(folder: Path) -> Path:
    proto = model_of("g (float[N,64] x) => (float[N,2048] y) { y = MatMul (x, w) }")
    weight = np.random.default_rng(0).random((64, 2048), np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize(
    "suffix", [".onnx", ".relay", "-symbol.json", ".tflite"], ids=lambda s: s.strip(".-")
)
def test_reading_survives_a_file_that_is_cut_off_meanwhile(suffix, tmp_path):
    """In a process of its own, which the system would end."""
    source = tmp_path / f"source{suffix}"
    serde.convert(_make_model(tmp_path), source)
    inputs = {"x": (1, 64)} if suffix == "-symbol.json" else None
    code = (
        "import subprocess, sys, serde\n"
        "cutter = subprocess.Popen([sys.executable, '-c', *sys.argv[2:]])\n"
        "for _ in range(60):\n"
        "    try:\n"
        f"        serde.convert(sys.argv[1], {str(tmp_path / 'o.onnx')!r}, weights='int8', "
        f"inputs={inputs!r})\n"
        "    except serde.SerdeError:\n"
        "        pass\n"
        "cutter.kill()\n"
    )
    files = sorted(str(p) for p in tmp_path.glob("source*"))
    subprocess.run([sys.executable, "-c", code, str(source), CUT, *files], check=True)


def test_no_file_is_mapped():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    names = {a.name for a in node.names} | {getattr(node, "module", "")}
                    assert "mmap" not in names, path
