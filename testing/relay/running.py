"""Recorded modules, converted and run in ONNX Runtime, compared with what TVM computed."""

from __future__ import annotations

import io
import json
import lzma
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from serde.api import save
from serde.formats.relay.io.params import read_params
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph
from serde.passes import tidy
from testing.onnx_live import OPTIMIZED, PLAIN, run_at, sums_saturate

TOLERANCE = 1e-4
HALF = 2.0**-10  # the last digit of the largest float16: a tie may be rounded either way


@dataclass
class Recorded:
    """A module's JSON, its parameter file's bytes, and TVM's inputs and outputs for it."""

    json: bytes
    params: bytes | None
    feeds: dict[str, np.ndarray]
    outputs: list[np.ndarray]


@cache
def _archive(path: Path) -> zipfile.ZipFile:
    if path.suffix == ".xz":
        return zipfile.ZipFile(io.BytesIO(lzma.decompress(path.read_bytes())))
    return zipfile.ZipFile(path)


def names(path: Path) -> list[str]:
    """The modules of an archive."""
    return sorted({n.split("/")[0] for n in _archive(path).namelist()})


def fed_and_given(file: Any) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The inputs by name, and the outputs, that TVM's side wrote to a file."""
    with np.load(file) as arrays:
        feeds = {k[3:]: arrays[k] for k in arrays if k.startswith("in:")}
        return feeds, [arrays[k] for k in arrays if k.startswith("out:")]


def read_module(path: Path, name: str) -> Recorded:
    """One module of an archive."""
    archive = _archive(path)
    params = f"{name}/params.bin"
    feeds, outputs = fed_and_given(io.BytesIO(archive.read(f"{name}/io.npz")))
    held = archive.read(params) if params in archive.namelist() else None
    return Recorded(archive.read(f"{name}/module.json"), held, feeds, outputs)


def graph_of(case: Recorded, name: str, folder: Path) -> Graph:
    """The module in the IR."""
    params = None
    if case.params is not None:
        (folder / "params.bin").write_bytes(case.params)
        params = read_params(folder / "params.bin")
    return tidy(to_ir(module_graph(parse_json(case.json, name), params, name)))


def run(graph: Graph, feeds: dict[str, np.ndarray], opset: int, folder: Path) -> list[np.ndarray]:
    """What ONNX Runtime computes; without its optimizers where they make sums saturate."""
    path = folder / "model.onnx"
    save(graph, path, opset=opset, format="onnx")
    return run_at(PLAIN if sums_saturate() else OPTIMIZED, path, feeds)


def assert_equal(
    actual: list[np.ndarray], expected: list[np.ndarray], rows: int | None = None
) -> None:
    """Numbers within 1e-4 of scale (a digit of it for float16), integers and shapes the same.

    Behind so many leading ``rows`` TVM leaves the first output undefined.
    """
    assert len(actual) == len(expected)
    for at, (a, b) in enumerate(zip(actual, expected, strict=True)):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if rows is not None and at == 0:
            a, b = a[:rows], b[:rows]
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        a, b = (np.asarray(v, np.float64) for v in (a, b))
        finite = b[np.isfinite(b)]
        scale = float(np.abs(finite).max(initial=0)) or 1.0
        share = HALF if expected[at].dtype == np.float16 else TOLERANCE
        np.testing.assert_allclose(a, b, rtol=0, atol=scale * share)


def writers_version(case: Recorded) -> str:
    """The TVM that wrote the module."""
    return str(json.loads(case.json)["attrs"]["tvm_version"])
