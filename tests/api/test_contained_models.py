"""Models of any format in archives and folders, from Python and the command line."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.errors import MalformedFile, SerdeError, Unconvertible, UnknownFormat, UsageError
from serde.io.archive import Archive
from testing.archives import KINDS, pack
from testing.onnx_live import model_of
from tests.command import show_command

MODEL = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8).SerializeToString()
RELAY = b'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }\n'
SYMBOL = (
    b'{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "relu", "name": "y", '
    b'"inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]]}'
)
X = np.array([[-1, 0, 2]], np.float32)


def with_weights_beside() -> dict[str, bytes]:
    """A model whose weights are a file of their own, and data to test it, as ONNX's zoo has."""
    model = onnx.load_from_string(
        model_of("g (float[N,3] x, float[3] w) => (float[N,3] y) { y = Mul(x, w) }", 17, 8)
        .SerializeToString()
    )  # fmt: skip
    weights = onnx.TensorProto(name="w", dims=[3], data_type=1, data_location=1)
    weights.external_data.add(key="location", value="w.bin")
    model.graph.initializer.append(weights)
    del model.graph.input[1]
    data = onnx.numpy_helper.from_array(X, "x").SerializeToString()
    return {
        "net/net.onnx": model.SerializeToString(),
        "net/w.bin": np.array([1, 2, 3], np.float32).tobytes(),
        "net/test_data_set_0/input_0.pb": data,
        "net/README.md": b"a model",
        "__MACOSX/net/._net.onnx": b"\0\5\x16\7",
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["held.bin", "held.zip", "held.tar.gz", "held"])
def test_a_model_in_an_archive_of_any_kind_and_name(kind, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(with_weights_beside(), kind))
    graph = serde.load(path)
    assert np.array_equal(serde.run(graph, {"x": X})["y"], X * [1, 2, 3])
    report = serde.convert(path, tmp_path / "out.onnx", verify=True)
    assert report.source == str(path) and report.verification.ok
    assert {f.path for f in report.provenance.source} == {f"{path}:net.onnx", f"{path}:w.bin"}
    assert sorted(os.listdir(tmp_path)) == [name, "out.onnx"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", [("m.relay", RELAY), ("m.onnx", MODEL)])
def test_archives_in_archives(kind, file, tmp_path):
    name, data = file
    path = tmp_path / "outer.zip"
    path.write_bytes(pack({"a/inner.tar.gz": pack({name: data}, "tar.gz"), "LICENSE": b""}, kind))
    y = serde.run(str(path), {"x": np.tile(X, (2, 1))}).popitem()[1] if name == "m.onnx" else None
    assert y is None or np.array_equal(y, np.tile(np.maximum(X, 0), (2, 1)))
    assert serde.convert(path, tmp_path / "m.tflite").operators == {"RELU": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_runnable_model_keeps_its_copy_while_it_lives(kind, tmp_path):
    path = tmp_path / "m.zip"
    path.write_bytes(pack({"m.onnx": MODEL}, kind))
    run = serde.prepare(path)
    assert np.array_equal(run({"x": X})["y"], np.maximum(X, 0))


@pytest.mark.parametrize("kind", ["stored", "tar.gz"])
def test_what_is_inspected_and_measured_is_named_by_its_archive(kind, tmp_path):
    path = tmp_path / "m.zip"
    path.write_bytes(pack({**with_weights_beside(), "b.onnx": MODEL}, kind))
    first, second = f"{path}:net/net.onnx", f"{path}:b.onnx"
    shown = serde.inspect(first)
    assert str(shown).startswith(f"{first}: onnx opset 17, 1 nodes\n  input  x: float32 (N, 3)")
    assert [w.array().tolist() for w in shown.weights] == [[1, 2, 3]]
    assert [m.model for m in serde.bench([first, second], seconds=0).models] == [first, second]
    assert f"\n{second} (onnx" in str(serde.bench(second, seconds=0))


@pytest.mark.parametrize("kind", KINDS)
def test_of_several_models_one_is_named(kind, tmp_path):
    path, outer = tmp_path / "m.zip", tmp_path / "outer.tar"
    path.write_bytes(pack({"a.onnx": MODEL, "b/b.relay": RELAY, "c.txt": b""}, kind))
    outer.write_bytes(pack({"m.zip": path.read_bytes(), "d.onnx": MODEL}, "tar"))
    for place in (path, f"{outer}:m.zip"):
        names = f"{place}:a.onnx, {place}:b/b.relay"
        for wrong, what in ((place, "2 models"), (f"{place}:c", "no file c")):
            with pytest.raises(
                UsageError, match=f"m.zip holds {what}: name a model in it: {names}"
            ):
                serde.load(wrong)
        for name in ("a.onnx", "b/b.relay"):
            report = serde.convert(f"{place}:{name}", tmp_path / "out.onnx")
            assert report.source == f"{place}:{name}" and report.operators == {"Relu": 1}
    with pytest.raises(SerdeError, match=r"passwd"):
        serde.load(f"{path}:/etc/passwd")


@pytest.mark.parametrize("prefix", ["a-symbol.json", "n/b-symbol.json"])
def test_of_several_mxnet_symbols_one_is_named(prefix, tmp_path):
    symbols = dict.fromkeys(("a-symbol.json", "n/b-symbol.json"), SYMBOL)
    (tmp_path / "m.zip").write_bytes(pack(symbols, "zip"))
    with pytest.raises(UsageError, match=f"name one of them: .*m.zip:{prefix}"):
        serde.load(tmp_path / "m.zip")
    graph = serde.load(f"{tmp_path}/m.zip:{prefix}", inputs={"x": (2, 3)})
    assert [n.op for n in graph.nodes] == ["Relu"]


@pytest.mark.parametrize("data", [MODEL, RELAY])
@pytest.mark.parametrize("name", ["m.onnx.gz", "m.bin", "M.ONNX.GZ"])
def test_a_model_that_gzip_packed(data, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data))
    assert [n.op for n in serde.load(path).nodes] == ["Relu"]
    assert serde.convert(path, tmp_path / "m.tflite").operators == {"RELU": 1}
    (tmp_path / "outer.zip").write_bytes(pack({"m.relay.gz": path.read_bytes()}, "zip"))
    assert [n.op for n in serde.load(tmp_path / "outer.zip").nodes] == ["Relu"]
    path.write_bytes(gzip.compress(data)[:-9])
    with pytest.raises(SerdeError, match=re.escape(name)):
        serde.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_model(kind, tmp_path):
    path = tmp_path / "m.zip"
    path.write_bytes(pack({"a.txt": b"text", "config.json": b"{}"}, kind))
    with pytest.raises(SerdeError, match="no model is found: unpack it|holds no MXNet symbol"):
        serde.load(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../out.onnx", "/out.onnx", "a/../../out.onnx"])
def test_nothing_is_written_outside_of_the_temporary_folder(kind, name, tmp_path):
    path = tmp_path / "m.zip"
    path.write_bytes(pack({name: MODEL}, kind))
    with pytest.raises(MalformedFile, match="a name that leads out of the archive"):
        serde.load(path)
    assert os.listdir(tmp_path) == ["m.zip"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_member_out_of_proportion_is_refused(kind, tmp_path):
    path = tmp_path / "m.zip"
    path.write_bytes(pack({"m.onnx": MODEL, "w.bin": bytes(1 << 29)}, kind))
    with pytest.raises(SerdeError, match="more than a model can hold|no model is found"):
        serde.load(path)


def test_a_damaged_member_is_named(tmp_path):
    data = bytearray(pack({"m.onnx": MODEL}, "stored"))
    data[data.index(MODEL) + 3] ^= 0xFF
    (tmp_path / "m.zip").write_bytes(data)
    with pytest.raises(MalformedFile, match=r"m.zip: an archive that cannot be read: Bad CRC"):
        serde.load(tmp_path / "m.zip")


def test_errors_of_the_model_name_it_in_its_archive(tmp_path):
    (tmp_path / "m.zip").write_bytes(pack({"a/m.onnx": MODEL[:-9]}, "zip"))
    with pytest.raises(SerdeError) as caught:
        serde.load(tmp_path / "m.zip")
    assert f"{tmp_path}/m.zip:" in str(caught.value) and "m.onnx" in str(caught.value)


def test_reports_of_refusals_name_the_archive(tmp_path):
    model = model_of("g (float[2] x) => (y) { y = own.Secret(x) }", 13)
    model.opset_import.add(domain="own", version=1)
    (tmp_path / "m.zip").write_bytes(pack({"a/m.onnx": model.SerializeToString()}, "zip"))
    with pytest.raises(Unconvertible) as caught:
        serde.convert(tmp_path / "m.zip", tmp_path / "m.tflite")
    assert caught.value.report.source == f"{tmp_path}/m.zip"


class TestFolders:
    @pytest.mark.parametrize("place", [str, Path, lambda p: p.as_uri()])
    def test_the_only_model_in_it(self, place, tmp_path):
        (tmp_path / "model.onnx").write_bytes(MODEL)
        (tmp_path / "config.json").write_text("{}")
        assert [n.op for n in serde.load(place(tmp_path)).nodes] == ["Relu"]
        report = serde.convert(place(tmp_path), tmp_path / "out.tflite")
        assert report.source == str(tmp_path / "model.onnx")

    def test_of_several_none_is_chosen(self, tmp_path):
        for name in ("a.onnx", "b.onnx"):
            (tmp_path / name).write_bytes(MODEL)
        with pytest.raises(UnknownFormat, match=r"name the model in it: \S+a.onnx or \S+b.onnx"):
            serde.load(tmp_path)


class TestCommands:
    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("m.zip").write_bytes(pack({"m.onnx": MODEL}, "zip"))
        Path("folder").mkdir()
        Path("folder/m.onnx").write_bytes(MODEL)

    @pytest.mark.parametrize(
        "command", ["inspect m.zip", "check m.zip", "run m.zip", "run folder",
                    "compare m.zip folder", "convert folder -o f.py"],
    )  # fmt: skip
    def test_of_all_kinds(self, command):
        code, shown = show_command(*command.split())
        assert code == 0, shown

    def test_the_source_is_the_archive(self):
        assert "m.zip (onnx) → m.tflite" in show_command("convert", "m.zip", "-o", "m.tflite")[1]

    def test_a_migration_converts_them(self):
        Path("two.zip").write_bytes(pack({"a.onnx": MODEL, "b.onnx": MODEL}, "zip"))
        Path("n.onnx.gz").write_bytes(gzip.compress(MODEL))
        Path("none.zip").write_bytes(pack({"a.txt": b""}, "zip"))
        shown = show_command("migrate", ".", "-o", "out")[1]
        assert "5 models: 5 converted" in shown
        assert "passed over" in shown and "none.zip: an archive without" in shown
        names = "m.onnx", "n.onnx", "folder/m.onnx", "two.zip/a.onnx", "two.zip/b.onnx"
        assert all(Path("out", name).exists() for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_is_unpacked_with_the_files_of_its_folder(kind, tmp_path, monkeypatch):
    """Other models, and other folders, stay packed."""
    others = {"net/other.onnx": MODEL, "big/a.onnx": MODEL, "big/a.bin": b"", "z.onnx": MODEL}
    path = tmp_path / "zoo.bin"
    path.write_bytes(pack(with_weights_beside() | others, kind))
    names = []
    extract = Archive.extract
    monkeypatch.setattr(
        Archive,
        "extract",
        lambda self, name, folder: names.append(name) or extract(self, name, folder),
    )
    graph = serde.load(f"{path}:net/net.onnx")
    assert np.array_equal(serde.run(graph, {"x": X})["y"], X * [1, 2, 3])
    assert {"net/net.onnx", "net/w.bin"} <= {*names}
    assert not {*names} & others.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_archives_in_each_other_are_bounded(kind, tmp_path):
    for levels, is_read in ((10, True), (400, False)):
        data = pack({"m.onnx": MODEL}, kind)
        for _ in range(levels):
            data = pack({f"inner.{kind.replace('stored', 'zip')}": data}, kind)
            if len(data) > 1 << 20:
                break
        path = tmp_path / f"{levels}.bin"
        path.write_bytes(data)
        if is_read:
            assert np.array_equal(serde.run(serde.load(path), {"x": X})["y"], [[0, 0, 2]])
        else:
            with pytest.raises(MalformedFile, match="more than 16 archives in each other"):
                serde.load(path)
