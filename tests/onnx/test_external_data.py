"""Weights beside the model: written, read, referred to, and never taken into memory."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

import serde
from serde.errors import MalformedFile, UsageError
from serde.formats.onnx import writer
from serde.formats.onnx.reader import read_model
from serde.ir.graph import FileSlice
from testing.onnx_live import DIGITS

rng = np.random.default_rng(0)
WEIGHTS = {  # names in the order nodes read them; two of a page or more, one small, one tiny
    "big": rng.standard_normal((64, 64)).astype(np.float32),
    "half": rng.standard_normal((64, 40)).astype(np.float16),
    "odd": rng.standard_normal((10, 40)).astype(np.float32),
    "tiny": rng.standard_normal(10).astype(np.float32),
}
X = rng.standard_normal((2, 64)).astype(np.float32)


def model():
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "big"], ["a"]),
            helper.make_node("Cast", ["half"], ["full"], to=TensorProto.FLOAT),
            helper.make_node("MatMul", ["a", "full"], ["b"]),
            helper.make_node("Transpose", ["odd"], ["turned"]),
            helper.make_node("MatMul", ["b", "turned"], ["c"]),
            helper.make_node("Add", ["c", "tiny"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(a, n) for n, a in WEIGHTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.onnx"
    onnx.save(model(), path)
    return path


def run_onnx(path):
    return onnxruntime.InferenceSession(os.fspath(path)).run(None, {"x": X})[0]


def entries(path):
    """What the model says of each initializer that is not in it."""
    locations = {}
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            locations[tensor.name] = {e.key: e.value for e in tensor.external_data}
    return locations


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize(
    ("mode", "files", "outside"),
    [
        ("auto", ["t.onnx"], []),
        ("never", ["t.onnx"], []),
        ("always", ["t.onnx", "t.onnx.data"], ["t.onnx.data"] * 3),
        ("reference", ["t.onnx", "t.onnx.data"], ["source.onnx", "source.onnx", "t.onnx.data"]),
    ],
)
def test_modes(source, tmp_path, mode, files, outside):
    """Less than a kilobyte stays in the model; what is computed can be in the sidecar alone."""
    target = tmp_path / "t.onnx"
    report = serde.convert(source, target, external_data=mode)
    assert names(tmp_path) == sorted(["source.onnx", *files])
    assert sorted(Path(f).name for f in report.files) == files
    assert sorted(e["location"] for e in entries(target).values()) == outside
    np.testing.assert_allclose(run_onnx(target), run_onnx(source), rtol=1e-6)
    onnx.checker.check_model(os.fspath(target), full_check=True)


def test_a_mode_nobody_knows_is_refused(source, tmp_path):
    with pytest.raises(UsageError, match="'maybe' is not one of auto, always, never, reference"):
        serde.convert(source, tmp_path / "t.onnx", external_data="maybe")


def test_the_sidecar_is_aligned_and_holds_nothing_else(source, tmp_path):
    serde.convert(source, tmp_path / "t.onnx", external_data="always")
    locations = entries(tmp_path / "t.onnx")
    assert {e["location"] for e in locations.values()} == {"t.onnx.data"}
    spans = sorted((int(e["offset"]), int(e["length"])) for e in locations.values())
    assert all(offset % (4096 if size >= 4096 else 64) == 0 for offset, size in spans)
    assert sum(spans[-1]) == (tmp_path / "t.onnx.data").stat().st_size
    for (start, size), (following, _) in itertools.pairwise(spans):
        assert 0 <= following - (start + size) < 4096  # no gap of more than a page


def test_what_is_read_from_a_sidecar_is_where_it_lies(source, tmp_path):
    serde.convert(source, tmp_path / "t.onnx", external_data="always")
    where = {v.name: v.tensor.where for v in read_model(tmp_path / "t.onnx").constants()}
    place = FileSlice(str(tmp_path / "t.onnx.data"), where["big"].offset, 16384)
    assert replace(where["big"], file=None) == place
    assert where["tiny"] is None


@pytest.mark.parametrize("mode", ["never", "always", "reference"])
def test_a_model_converted_in_place_is_whole(source, mode):
    """What is replaced cannot be referred to."""
    before = run_onnx(source)
    serde.convert(source, source, external_data=mode)
    np.testing.assert_allclose(run_onnx(source), before, rtol=1e-6)
    serde.convert(source, source, external_data=mode, opset=13)
    np.testing.assert_allclose(run_onnx(source), before, rtol=1e-6)


def test_weights_of_the_same_bytes_stay_of_the_same_bytes(tmp_path):
    """Tied embeddings: two names, one place."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 64])],
        [TensorProto(name=n, data_type=1, dims=[64, 64], data_location=1) for n in "ab"],
    )  # fmt: skip
    for tensor in graph.initializer:
        tensor.external_data.add(key="location", value="w")
    (tmp_path / "w").write_bytes(WEIGHTS["big"].tobytes())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "tied.onnx")
    serde.convert(tmp_path / "tied.onnx", tmp_path / "t.onnx", external_data="always", opset=13)
    locations = entries(tmp_path / "t.onnx")
    assert locations["a"] == locations["b"]
    assert (tmp_path / "t.onnx.data").stat().st_size == WEIGHTS["big"].nbytes
    np.testing.assert_array_equal(run_onnx(tmp_path / "t.onnx"), run_onnx(tmp_path / "tied.onnx"))


def test_references_may_cross_into_folders_below_but_not_outside(source, tmp_path):
    (tmp_path / "deep").mkdir()
    inner = tmp_path / "deep" / "inner.onnx"
    shutil.move(source, inner)
    serde.convert(inner, tmp_path / "t.onnx", external_data="reference")
    assert entries(tmp_path / "t.onnx")["big"]["location"] == "deep/inner.onnx"
    np.testing.assert_allclose(run_onnx(tmp_path / "t.onnx"), run_onnx(inner), rtol=1e-6)
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="outside the folder of .*: write the model beside them"):
        serde.convert(inner, tmp_path / "other" / "t.onnx", external_data="reference")
    assert names(tmp_path / "other") == []


def test_mxnet_weights_are_referred_to_where_they_are(tmp_path):
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, tmp_path)
    report = serde.convert(tmp_path, tmp_path / "d.onnx", external_data="reference")
    assert [Path(f).name for f in report.files] == ["d.onnx"]
    locations = entries(tmp_path / "d.onnx")
    assert locations["fc1_weight"]["location"] == "digits-0010.params"
    assert (tmp_path / "d.onnx").stat().st_size < 12_000
    test = np.load(DIGITS / "test.npz", allow_pickle=False)
    session = onnxruntime.InferenceSession(os.fspath(tmp_path / "d.onnx"))
    (scores,) = session.run(None, {"data": test["data"]})
    np.testing.assert_allclose(scores, test["expected"], atol=1e-5)


class TestLimits:
    """The 2 GiB of a protobuf message, here made small."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(writer, "INLINE_MOST", (32 << 20) + 20_000)

    def test_auto_puts_weights_beside_a_model_they_would_not_fit_in(self, source, tmp_path):
        serde.convert(source, tmp_path / "t.onnx")
        assert set(entries(tmp_path / "t.onnx")) >= {"big", "half"}

    def test_auto_keeps_them_in_a_model_they_fit_in(self, source, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "INLINE_MOST", (32 << 20) + 40_000)
        serde.convert(source, tmp_path / "t.onnx")
        assert names(tmp_path) == ["source.onnx", "t.onnx"]

    def test_never_refuses_a_model_that_does_not_fit(self, source, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "INLINE_MOST", 20_000)
        with pytest.raises(UsageError, match="do not fit in one ONNX file: allow external data"):
            serde.convert(source, tmp_path / "t.onnx", external_data="never")
        assert names(tmp_path) == ["source.onnx"]


def test_weights_that_another_model_needs_are_not_replaced(source, tmp_path):
    first, other = tmp_path / "a.onnx", tmp_path / "b.onnx"
    serde.convert(source, first, external_data="always")
    serde.convert(first, other, external_data="reference")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_text("no model")
    (tmp_path / "folder.onnx").mkdir()
    data = (tmp_path / "a.onnx.data").read_bytes()
    refused = pytest.raises(UsageError, match="a.onnx.data also holds the weights of .*b.onnx")
    with refused:  # before anything is read
        serde.convert(tmp_path / "none.onnx", first, external_data="always")
    with refused:
        serde.save(serde.load(source), first, external_data="always")
    assert (tmp_path / "a.onnx.data").read_bytes() == data
    serde.convert(source, first, external_data="never")
    other.unlink()
    serde.convert(source, first, external_data="always")


def test_onnx_reads_the_sidecar_as_its_own(source, tmp_path):
    serde.convert(source, tmp_path / "t.onnx", external_data="always")
    loaded = onnx.load(tmp_path / "t.onnx")
    held = {t.name: numpy_helper.to_array(t) for t in loaded.graph.initializer}
    np.testing.assert_array_equal(held["big"], WEIGHTS["big"])


def test_a_sidecar_onnx_wrote_is_read(tmp_path):
    loaded = model()
    external_data_helper.convert_model_to_external_data(
        loaded, location="weights.bin", size_threshold=0
    )
    onnx.save(loaded, tmp_path / "m.onnx")
    tensors = {v.name: v.tensor for v in read_model(tmp_path / "m.onnx").constants()}
    assert all(t.where is not None for t in tensors.values())
    np.testing.assert_array_equal(tensors["tiny"].load(), WEIGHTS["tiny"])
    serde.convert(tmp_path / "m.onnx", tmp_path / "t.onnx", external_data="never")
    np.testing.assert_array_equal(run_onnx(tmp_path / "t.onnx"), run_onnx(tmp_path / "m.onnx"))


def test_a_failure_leaves_the_old_model_and_its_sidecar(source, tmp_path, monkeypatch):
    serde.convert(source, tmp_path / "t.onnx", external_data="always")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    monkeypatch.setattr(writer, "_stream", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        serde.convert(source, tmp_path / "t.onnx", external_data="always", opset=13)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("mode", ["always", "reference", "never"])
def test_memory_does_not_grow_with_the_weights(tmp_path, mode):
    """200 MB of weights (a file of holes) pass through a process that may not hold them."""
    size = 25_000_000
    path = tmp_path / "big.onnx"
    proto = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Add", ["x", "w"], ["a"]),
                helper.make_node("Mul", ["a", "v"], ["y"]),
            ],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    for at, name in enumerate("wv"):
        tensor = proto.graph.initializer.add(name=name, data_type=1, dims=[size])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w"), ("offset", at * size * 4), ("length", size * 4)):
            tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(proto.SerializeToString())
    with (tmp_path / "w").open("wb") as file:
        file.truncate(2 * size * 4)
    code = (
        "import serde, sys\n"
        f"serde.convert({str(path)!r}, {str(tmp_path / 't.onnx')!r}, external_data={mode!r})\n"
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(out.stdout) / 1000 < 150


def test_a_file_of_the_source_is_not_replaced_by_the_result(source, tmp_path):
    serde.convert(source, tmp_path / "s.onnx", external_data="always")
    weights = tmp_path / "weights.onnx"  # as any file may be called
    (tmp_path / "s.onnx.data").rename(weights)
    model = onnx.load(tmp_path / "s.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "weights.onnx" if entry.key == "location" else entry.value
    (tmp_path / "s.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "link.onnx").symlink_to(weights)
    before = weights.read_bytes()
    for target in (weights, tmp_path / "link.onnx"):
        with pytest.raises(UsageError, match="is a file of the source: write to another name"):
            serde.convert(tmp_path / "s.onnx", target)
    assert weights.read_bytes() == before


def test_copied_weights_do_not_depend_on_their_files(source, tmp_path):
    serde.convert(source, tmp_path / "s.onnx", external_data="always")
    kept = {v.name: v.array() for v in serde.load(tmp_path / "s.onnx").constants()}
    kept = {name: array.copy() for name, array in kept.items()}
    graph = serde.load(tmp_path / "s.onnx", copy=True)
    (tmp_path / "s.onnx.data").write_bytes(b"")
    (tmp_path / "s.onnx").write_bytes(b"")
    assert {v.name for v in graph.constants()} == kept.keys()
    for value in graph.constants():
        np.testing.assert_array_equal(value.array(), kept[value.name])
    serde.save(graph, tmp_path / "t.onnx")
    np.testing.assert_allclose(
        run_onnx(tmp_path / "t.onnx"), run_onnx(tmp_path / "source.onnx"), rtol=1e-6
    )


def test_a_file_that_became_shorter_is_an_error(source, tmp_path):
    serde.convert(source, tmp_path / "s.onnx", external_data="always")
    graph = serde.load(tmp_path / "s.onnx")
    os.truncate(tmp_path / "s.onnx.data", 100)
    (big,) = (v for v in graph.constants() if v.name == "big")
    with pytest.raises(MalformedFile, match="became shorter"):
        big.array()
    with pytest.raises(MalformedFile, match="became shorter"):
        serde.save(graph, tmp_path / "t.onnx")
