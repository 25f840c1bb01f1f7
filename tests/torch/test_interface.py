"""What a written module's files tell of it without being run."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.api.bench import bench
from serde.errors import MalformedFile, UnknownFormat
from serde.formats.torch import matches
from serde.formats.torch.interface import INPUTS, OUTPUTS, read_interface
from serde.ir.graph import DType
from serde.pipeline import has_layers
from tests.torch.torch_live import why_not

TEXT = """g (float[N, 3] x, int64[N] places) => (float[N, 3] y, int64[N] z)
    <float[1, 3] w = {1, 2, 3}> { y = Add(x, w)  z = Add(places, places) }"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A written module."""
    graph = onnx.parser.parse_graph(TEXT)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "m.py", verify=False)
    return tmp_path / "m.py"


def test_a_written_module_tells_its_inputs_and_outputs(module: Path) -> None:
    assert matches(module) and not has_layers(module)
    graph = read_interface(module)
    assert [(v.name, v.dtype, v.shape) for v in (*graph.inputs, *graph.outputs)] == [
        ("x", DType.FLOAT32, ("N", 3)), ("places", DType.INT64, ("N",)),
        ("y", DType.FLOAT32, ("N", 3)), ("z", DType.INT64, ("N",)),
    ]  # fmt: skip


def test_other_sources_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    path.write_text('"""PyTorch source of something, written by a person."""\n')
    assert not matches(path)
    with pytest.raises(UnknownFormat, match="no known format"):
        serde.run(path, {})


def test_a_written_module_is_not_converted(module: Path) -> None:
    with pytest.raises(UnknownFormat, match="PyTorch is written, not read: export the module"):
        serde.convert(module, module.with_suffix(".onnx"))


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
def test_a_written_module_runs_and_is_compared(module: Path) -> None:
    x, places = np.ones((4, 3), np.float32), np.arange(4)
    outputs = serde.run(module, {"places": places, "x": x})
    np.testing.assert_array_equal(outputs["y"], x + np.array([1, 2, 3], np.float32))
    np.testing.assert_array_equal(outputs["z"], 2 * places)
    source = module.with_suffix(".onnx")
    for pair in ((source, module), (module, source), (module, module)):
        report = serde.compare(*pair)
        assert report.ok and "is run and not read" in str(report.layers)


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
def test_a_written_module_is_measured(module: Path) -> None:
    done = bench([module, module.with_suffix(".onnx")], seconds=0.1)
    assert [m.runtime for m in done.models] == ["torch", "onnx"]
    assert done.models[0].memory > done.models[1].memory  # of the process that has PyTorch


def change_metadata(weights: Path, **entries: str | None) -> None:
    """Set entries of a header, or take them out."""
    data = weights.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] |= entries
    header["__metadata__"] = {k: v for k, v in header["__metadata__"].items() if v is not None}
    text = json.dumps(header).encode()
    weights.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def test_without_its_weights_it_is_incomplete(module: Path) -> None:
    module.with_suffix(".safetensors").unlink()
    with pytest.raises(MalformedFile, match=r"there is no m\.safetensors. convert the model again"):
        read_interface(module)


@pytest.mark.parametrize("entries", [
    {INPUTS: None}, {OUTPUTS: None}, {INPUTS: "["}, {INPUTS: "[" * 100_000}, {INPUTS: "[[1, 2, 3]]"},
    {INPUTS: '[["x", "float32", [-1]]]'}, {INPUTS: '[["x", "float7", [1]]]'}, {INPUTS: '["x"]'},
    {INPUTS: '[["x", "float32", 3]]'}, {INPUTS: '[["x", "float32", [true]]]'}, {OUTPUTS: "null"},
])  # fmt: skip
def test_headers_that_lie_are_refused(entries: dict[str, str | None], module: Path) -> None:
    change_metadata(module.with_suffix(".safetensors"), **entries)
    with pytest.raises(MalformedFile, match="does not tell"):
        read_interface(module)


@pytest.mark.parametrize("data", [
    b"", b"1234567", struct.pack("<Q", 1 << 62) + b"{}", struct.pack("<Q", 3) + b"{}",
    struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 2) + b"\xff\xff", struct.pack("<Q", 4) + b"null",
])  # fmt: skip
def test_files_that_are_no_weights_are_refused(data: bytes, module: Path) -> None:
    module.with_suffix(".safetensors").write_bytes(data)
    with pytest.raises(MalformedFile, match=r"m\.safetensors"):
        read_interface(module)
