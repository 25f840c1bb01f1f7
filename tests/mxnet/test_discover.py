"""Finding the files of a model: by prefix, folder, archive, epoch, and by content."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError, UnknownFormat, UsageError
from serde.formats.mxnet.io.discover import find, matches
from serde.io import archive
from testing.mxnet import written
from testing.mxnet.written import params_bytes
from testing.mxnet_live import live_mxnet

SYMBOL, ARRAYS = written.network()
IMAGES = {"data": (1, 2, 8, 8)}
OTHER = written.chain(("Activation", {"act_type": "relu"}))


def dump(epoch: int) -> bytes:
    """Parameters that tell their epoch."""
    return params_bytes({**ARRAYS, "convolution0_bias": np.full(4, epoch, "float32")})


ONE = dump(1)
# Files by name; what is asked of them: the symbol and the epoch found.
FOUND: dict[str, tuple[dict[str, str | bytes], str, dict[str, Any], tuple[str, int | None]]] = {
    "symbol": ({"m-symbol.json": SYMBOL, "m-0001.params": ONE}, "m-symbol.json", {}, ("m", 1)),
    "prefix": ({"m-symbol.json": SYMBOL, "m-0001.params": ONE}, "m", {}, ("m", 1)),
    "folder": ({"m-symbol.json": SYMBOL, "m-0001.params": ONE}, "", {}, ("m", 1)),
    "params": ({"m-symbol.json": SYMBOL, "m-0001.params": ONE}, "m-0001.params", {}, ("m", 1)),
    "last epoch": (
        {"m-symbol.json": SYMBOL, "m-0002.params": dump(2), "m-0010.params": dump(10),
         "m-12345.params": dump(12345)}, "m", {}, ("m", 12345),
    ),
    "an epoch": (
        {"m-symbol.json": SYMBOL, "m-0002.params": dump(2), "m-0010.params": dump(10)},
        "m", {"epoch": 2}, ("m", 2),
    ),
    "an epoch in a folder": (
        {"m-symbol.json": SYMBOL, "m-0002.params": dump(2), "m-0010.params": dump(10)},
        "", {"epoch": 2}, ("m", 2),
    ),
    "that epoch's file": (
        {"m-symbol.json": SYMBOL, "m-0002.params": dump(2), "m-0010.params": dump(10)},
        "m-0002.params", {}, ("m", 2),
    ),
    "a bucket": (
        {"m-7-symbol.json": SYMBOL, "m-9-symbol.json": OTHER, "m.buckets": b"", "m-0003.params":
         dump(3), "x-0001.params": ONE}, "m-7", {}, ("m-7", 3),
    ),
    "no bucket": (
        {"m-7-symbol.json": SYMBOL, "m-symbol.json": OTHER, "m-0003.params": dump(3)}, "m-7", {},
        ("m-7", None),
    ),
    "no epoch": ({"m-symbol.json": SYMBOL, "m.params": ONE}, "m", {}, ("m", 1)),
    "named": (
        {"m-symbol.json": SYMBOL, "m-0001.params": ONE, "x.bin": dump(7)}, "m",
        {"params": "x.bin"}, ("m", 7),
    ),
    "no params": ({"m-symbol.json": SYMBOL}, "m", {}, ("m", None)),
    "two models": (
        {"a-symbol.json": SYMBOL, "a-0001.params": ONE, "b-symbol.json": OTHER,
         "b-0003.params": dump(3)}, "b", {}, ("b", 3),
    ),
    "a longer prefix": (
        {"m-symbol.json": SYMBOL, "m-0001.params": ONE, "m-fine-symbol.json": OTHER,
         "m-fine-0009.params": dump(9)}, "m", {}, ("m", 1),
    ),
    "odd names": (
        {"net.json": SYMBOL, "weights.bin": ONE, "config.json": '{"a": 1}', "x.txt": "hello"},
        "", {}, ("net", 1),
    ),
    "an epoch of one digit": (
        {"m-symbol.json": SYMBOL, "m-1.params": ONE}, "m", {}, ("m", 1),
    ),
    "epochs of two digits": (
        {"m-symbol.json": SYMBOL, "m-02.params": dump(2), "m-10.params": dump(10)},
        "m", {}, ("m", 10),
    ),
    "an epoch of two digits": (
        {"m-symbol.json": SYMBOL, "m-02.params": dump(2), "m-0010.params": dump(10)},
        "m", {"epoch": 2}, ("m", 2),
    ),
    "an epoch of five digits": (
        {"m-symbol.json": SYMBOL, "m-9999.params": ONE, "m-10000.params": dump(3)},
        "m", {}, ("m", 3),
    ),
    "a prefix that ends in a number": (
        {"net-50-symbol.json": SYMBOL, "net-50.params": ONE, "net-symbol.json": OTHER,
         "net-0001.params": dump(9)}, "net-50", {}, ("net-50", 1),
    ),
    "a prefix that ends in a number, with an epoch": (
        {"net-50-symbol.json": SYMBOL, "net-50-3.params": dump(3)}, "net-50", {},
        ("net-50", 3),
    ),
    "that short epoch's file": (
        {"m-symbol.json": SYMBOL, "m-1.params": ONE, "m-2.params": dump(2)}, "m-1.params", {},
        ("m", 1),
    ),
    "another prefix": ({"s-symbol.json": SYMBOL, "w-0001.params": ONE}, "s", {}, ("s", 1)),
    "a folder called like the prefix": (
        {"m-symbol.json": SYMBOL, "m-0001.params": ONE, "m/notes.txt": "hello"}, "m", {}, ("m", 1),
    ),
    "GluonTS": (
        {"prediction_net-symbol.json": SYMBOL, "prediction_net-0000.params": dump(0),
         "parameters.json": '{"nodes_of_mine": 1}', "type.txt": "gluonts", "version.json": "{}",
         "prediction_net-in_out_format.json": '{"in_format": [0], "out_format": [[0, 0], 0]}',
         "input_transform.json": '{"args": []}'}, "", {}, ("prediction_net", 0),
    ),
    "SageMaker": (
        {"model_algo_1-symbol.json": SYMBOL, "model_algo_1-0000.params": dump(0),
         "model-shapes.json": '[{"shape": [1, 3], "name": "data"}]', "hyperparams.json": "{}"},
        "", {}, ("model_algo_1", 0),
    ),
    "InsightFace": (
        {"model-symbol.json": SYMBOL, "model-0000.params": dump(0), "log": "x", "_SUCCESS": ""},
        "", {}, ("model", 0),
    ),
    "MXNet 2": (
        {"m-symbol.json": SYMBOL, "m-0001.params": written.npz_bytes(ARRAYS)}, "m", {}, ("m", None),
    ),
}  # fmt: skip


def lay_out(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def tar(path: Path, files: dict[str, str | bytes], mode: str, links: tuple[str, ...] = ()) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            raw = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
        for name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
    return path


def check(files: Any, symbol: str, epoch: int | None, name: str) -> None:
    base = files.symbol_path.replace(":", "/").rpartition("/")[2]
    assert base.removesuffix(".json").removesuffix("-symbol") == symbol
    if name in ("no params", "no bucket"):
        assert files.params is None and f"{symbol}-0000.params" in files.searched
    elif epoch is not None:
        assert files.params.by_name()["convolution0_bias"].load()[0] == epoch
    else:
        assert len(files.params.tensors) == len(ARRAYS)


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str, tmp_path: Path, monkeypatch) -> None:
    files, source, options, (symbol, epoch) = FOUND[name]
    monkeypatch.chdir(lay_out(tmp_path, files))
    for path in (tmp_path / source, Path(source)):
        assert matches(path)
        model = find(path, **{"params": None, "epoch": None, **options})
        check(model, symbol, epoch, name)


@pytest.mark.parametrize("kind", [".tar", ".tar.gz", ".tgz", ".model", ".packed"])
@pytest.mark.parametrize("name", [n for n, case in FOUND.items() if case[1] == ""])
def test_found_in_an_archive(name: str, kind: str, tmp_path: Path) -> None:
    files, _, options, (symbol, epoch) = FOUND[name]
    mode = "w:gz" if kind in (".tar.gz", ".tgz", ".packed") else "w"
    path = tar(tmp_path / f"model{kind}", files, mode, ("evil-symbol.json", "evil.params"))
    assert matches(path)
    model = find(path, **{"params": None, "epoch": None, **options})
    assert model.symbol_path.startswith(f"{path}:")
    check(model, symbol, epoch, name)
    mapped = [t.where for t in model.params.tensors]
    assert all(w is None for w in mapped) if mode == "w:gz" else all(w is not None for w in mapped)
    assert os.listdir(tmp_path) == [path.name]


def test_archives_without_a_magic_number(tmp_path: Path) -> None:
    path = tar(tmp_path / "m.tar", {"m-symbol.json": SYMBOL, "m-0001.params": ONE}, "w")
    data = bytearray(path.read_bytes())
    data[257:265] = bytes(8)  # as before POSIX
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "model").write_bytes(gzip.compress(bytes(data)))
    assert matches(tmp_path / "model")
    assert find(tmp_path / "model", None, None).params is not None


def test_weights_in_a_plain_archive_are_mapped_where_they_are(tmp_path: Path) -> None:
    path = tar(tmp_path / "m.tar", {"a/m-symbol.json": SYMBOL, "a/m-0001.params": ONE}, "w")
    data = path.read_bytes()
    params = find(path, None, None).params
    assert params is not None
    for name, tensor in params.by_name().items():
        where = tensor.where
        assert where is not None and where.path == str(path)
        stored = data[where.offset : where.offset + where.nbytes]
        assert stored == tensor.load().tobytes() and len(stored) == tensor.nbytes, name


def test_members_of_a_zip_in_an_archive(tmp_path: Path) -> None:
    npz = written.npz_bytes(ARRAYS)
    path = tar(tmp_path / "m.tar", {"m-symbol.json": SYMBOL, "m-0001.params": npz}, "w")
    params = find(path, None, None).params
    assert params is not None
    assert np.array_equal(params.by_name()["fullyconnected4_bias"].load(),
                          ARRAYS["fullyconnected4_bias"])  # fmt: skip


TWO = {"a-symbol.json": SYMBOL, "b-symbol.json": OTHER}
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n"
M = {"m-symbol.json": SYMBOL}
REFUSED: dict[str, tuple[dict[str, str | bytes], str, dict[str, Any], type, str]] = {
    "nothing": ({}, "m", {}, MalformedFile, "there is no such file"),
    "an empty folder": ({}, "", {}, MalformedFile, "holds no MXNet symbol"),
    "GluonTS without a symbol": (
        {"prediction_net-0000.params": ONE, "prediction_net-network.json": '{"kwargs": {}}',
         "parameters.json": '{"nodes_of_mine": 1}', "type.txt": "gluonts"}, "", {}, MalformedFile,
        "holds MXNet parameters, and no MXNet symbol: save the network as well, with export",
    ),
    "two symbols": (
        TWO, "", {}, UsageError,
        "several symbols: name one of them: a-symbol.json, b-symbol.json",
    ),
    "two parameter files": (
        {**M, "a-0001.params": ONE, "b-0001.params": ONE}, "", {}, UsageError,
        "several parameter files: a-0001.params, b-0001.params",
    ),
    "no such epoch": (
        {**M, "m-0001.params": ONE, "m-0003.params": ONE}, "m", {"epoch": 2}, UsageError,
        "no parameters of epoch 2; there are: 1, 3",
    ),
    "an epoch twice": (
        {**M, "m-1.params": ONE, "m-0001.params": ONE}, "m", {"epoch": 1}, UsageError,
        "several files of epoch 1: m-0001.params, m-1.params; name one",
    ),
    "numbers that need not be epochs": (
        {**M, "net-50.params": ONE, "net-101.params": ONE}, "m", {}, UsageError,
        "several parameter files",
    ),
    "no epochs": (M, "m", {"epoch": 2}, UsageError, "there are: none"),
    "epoch and file": (
        {**M, "m-0001.params": ONE}, "m", {"epoch": 1, "params": "m-0001.params"}, UsageError,
        "not both",
    ),
    "no such params": (M, "m", {"params": "w.params"}, MalformedFile, "w.params: there is no such"),
    "params in a folder": ({**M, "w/x": ""}, "m", {"params": "w"}, UsageError, "w is a folder"),
    "params that are a number": (M, "m", {"params": 1}, UsageError, "names to arrays, not int"),
    "params alone": (
        {"m-0001.params": ONE}, "m-0001.params", {}, MalformedFile, "its symbol is not at",
    ),
    "params twice": (
        {**M, "m-0001.params": ONE}, "m-0001.params", {"params": "m-0001.params"}, UsageError,
        "name the symbol",
    ),
    "symbol for params": (
        M, "m", {"params": "m-symbol.json"}, MalformedFile, "symbol JSON, not MXNet's parameters",
    ),
    "LFS for params": ({**M, "m-0001.params": LFS}, "m", {}, MalformedFile, "git lfs pull"),
    "HTML for params": (
        {**M, "m-0001.params": "<html>404</html>"}, "", {}, MalformedFile, "HTML or XML page",
    ),
    "empty params": (
        {**M, "m-0001.params": ""}, "m", {}, MalformedFile, "m-0001.params: the file is empty",
    ),
    "TVM's params": (
        {**M, "m-0001.params": b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7" + bytes(16)}, "m", {},
        MalformedFile, "TVM's parameters, not MXNet's",
    ),
    "an array for params": (
        {**M, "m-0001.params": written.npy_bytes(np.zeros(3))}, "m", {}, MalformedFile,
        "a NumPy array, not MXNet's",
    ),
    "a cut archive": ({"m.tar": b"m-symbol.json" + bytes(244) + b"ustar"}, "m.tar", {},
                      MalformedFile, "m.tar"),
    "no archive": ({"m.tar.gz": b"\x1f\x8b\x08" + bytes(40)}, "m.tar.gz", {}, MalformedFile,
                   "an archive that cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path, monkeypatch) -> None:
    files, source, options, kind, message = REFUSED[name]
    monkeypatch.chdir(lay_out(tmp_path, files))
    with pytest.raises(kind) as caught:
        find(Path(source or "."), **{"params": None, "epoch": None, **options})
    assert message in str(caught.value)


BAD_ARCHIVES = {
    "holds no MXNet symbol": {"a.txt": "hello"},
    "holds MXNet parameters, and no MXNet symbol": {"m-0001.params": ONE},
    "several symbols: name one of them: ": TWO,
    "several parameter files": {**M, "a.params": ONE, "b.params": ONE},
    "m-0001.params: the file is empty": {**M, "m-0001.params": ""},
    "m-symbol.json: the file is empty": {"m-symbol.json": ""},
    "m-0001.params, byte 80: an array of": {**M, "m-0001.params": ONE[:100]},
}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("message", BAD_ARCHIVES)
def test_bad_archives(message: str, mode: str, tmp_path: Path) -> None:
    path = tar(tmp_path / "model.tar", BAD_ARCHIVES[message], mode)
    with pytest.raises(SerdeError) as caught:
        serde.load(path, format="mxnet")
    assert message in str(caught.value) and str(path) in str(caught.value)


OF_OTHERS = {
    "a graph": b'{"nodes": [{"id": 1}], "edges": []}',
    "a graph that names operators": b'{"edges": [], "nodes": [{"op": "a", "name": "b"}]}',
    "a model of another kind": b'{"format": "layers", "nodes": [{"op": "a", "name": "b"}]}',
    "a text about nodes": b'{"arg_node": "\\"nodes\\""}',
    "a graph executor's": b'{"nodes": [{"op": "tvm_op", "name": "a"}], "arg_nodes": []}',
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_json_of_others_is_not_claimed(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(OF_OTHERS[name])
    assert not matches(tmp_path / "model.json")


def test_half_a_symbol_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(b'{"nodes": [{"op": "null"')
    with pytest.raises(MalformedFile, match="not symbol JSON"):
        serde.load(tmp_path / "m.json")


@pytest.mark.parametrize("keys", [("nodes", "arg_nodes", "heads"), ("arg_nodes", "heads", "nodes")])
def test_symbol_json_is_claimed_in_any_order_of_keys(keys: tuple[str, ...], tmp_path: Path) -> None:
    symbol = json.loads(SYMBOL)
    (tmp_path / "any.json").write_text(json.dumps({k: symbol[k] for k in keys}))
    assert matches(tmp_path / "any.json")


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("name", ["a.tar", "a.bin", "a.tgz"])
def test_archives_of_others_are_not_claimed(name: str, mode: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"saved_model.pb": b"\x08\x01", "variables/v.index": b"\0"}
    path = tar(tmp_path / name, files, mode)
    assert not matches(path)
    with pytest.raises(UnknownFormat, match="is of no known format"):
        serde.load(path)
    assert matches(tar(tmp_path / name, {**files, "m-symbol.json": SYMBOL}, mode))


def test_the_first_file_of_a_model_tells_before_the_rest_is_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tar(tmp_path / "m.tar.gz", {"m-0001.params": ONE, "z": b"0" * 10**6}, "w:gz")
    read: list[str] = []
    head = archive.TarArchive._bytes
    monkeypatch.setattr(
        archive.TarArchive, "_bytes", lambda self, n, size: read.append(n) or head(self, n, size)
    )
    assert matches(path) and read == ["m-0001.params"]


def test_parameters_alone_are_claimed(tmp_path: Path) -> None:
    with pytest.raises(MalformedFile, match="holds MXNet parameters, and no MXNet symbol"):
        serde.load(lay_out(tmp_path, {"net-0000.params": ONE, "net-network.json": "{}"}))


def test_what_is_not_mxnets_is_not_claimed(tmp_path: Path) -> None:
    files = {"a.onnx": b"\x08\x08", "b.json": '{"nodes": [{"op": "tvm_op"}]}', "c.txt": "hello",
             "d.json": "[]", "io.npz": written.npz_bytes(ARRAYS), "e/f.txt": "hello"}  # fmt: skip
    lay_out(tmp_path, files)
    assert not any(matches(p) for p in (tmp_path, *tmp_path.rglob("*")))
    with pytest.raises(UnknownFormat):
        serde.load(tmp_path / "c.txt")


class TestLaterEpochs:
    """What is written is what is loaded: a later epoch beside it is refused before any work."""

    # Files that lie there; the epoch to write; the file that is in the way, and how to replace it.
    IN_THE_WAY: dict[str, tuple[tuple[str, ...], int, str, str]] = {
        "a later one": (("m-0010.params",), 0, "m-0010.params", "replace it with write_epoch=10"),
        "the latest": (("m-0003.params", "m-0010.params"), 4, "m-0010.params", "write_epoch=11"),
        "five digits": (("m-12345.params",), 0, "m-12345.params", "write_epoch=12346"),
        "the symbol as well": (("m-symbol.json", "m-0001.params"), 0, "m-0001.params", "epoch=2"),
    }  # fmt: skip
    # Files that lie there, and the epoch to write.
    FREE: dict[str, tuple[tuple[str, ...], int]] = {
        "the same one": (("m-symbol.json", "m-0000.params"), 0),
        "the same later one": (("m-symbol.json", "m-0003.params", "m-0010.params"), 10),
        "earlier ones": (("m-0003.params", "m-0010.params"), 11),
        "one without a number": (("m.params",), 0),
        "another model's": (("n-0010.params", "m-fine-0010.params"), 0),
        "other kinds of files": (("m-0010.txt", "m-0010.params.bak"), 0),
    }

    @pytest.fixture(autouse=True)
    def source(self, tmp_path: Path) -> Path:
        (tmp_path / "from").mkdir()
        (tmp_path / "to").mkdir()
        return lay_out(tmp_path / "from", {"s-symbol.json": SYMBOL, "s-0001.params": dump(9)})

    @pytest.mark.parametrize("name", IN_THE_WAY)
    def test_one_is_refused_before_the_source_is_read(self, name: str, tmp_path: Path) -> None:
        files, epoch, file, advice = self.IN_THE_WAY[name]
        folder = lay_out(tmp_path / "to", dict.fromkeys(files, "before"))
        with pytest.raises(UsageError, match="would be loaded instead of m-") as caught:
            serde.convert(tmp_path / "none", folder / "m-symbol.json", write_epoch=epoch)
        assert f"{file} lies beside m-symbol.json" in str(caught.value)
        assert advice in str(caught.value)
        assert {p.read_text() for p in folder.iterdir()} == {"before"}

    @pytest.mark.parametrize("name", FREE)
    def test_what_is_written_is_what_is_loaded(self, name: str, tmp_path: Path, source) -> None:
        files, epoch = self.FREE[name]
        folder = lay_out(tmp_path / "to", dict.fromkeys(files, "before"))
        report = serde.convert(source, folder / "m-symbol.json", inputs=IMAGES, write_epoch=epoch)
        assert [Path(f).name for f in report.files] == ["m-symbol.json", f"m-{epoch:04d}.params"]
        params = find(folder / "m", None, None).params
        assert params is not None and Path(params.path).name == f"m-{epoch:04d}.params"

    def test_in_place(self, tmp_path: Path) -> None:
        folder = lay_out(tmp_path / "to", {"m-symbol.json": SYMBOL, "m-0010.params": dump(9)})
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        symbol = folder / "m-symbol.json"
        with pytest.raises(UsageError, match="m-0010.params lies beside"):
            serde.convert(symbol, symbol, inputs=IMAGES)
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        live_mxnet()
        report = serde.convert(symbol, symbol, inputs=IMAGES, write_epoch=10, verify=True)
        assert report.ok and sorted(p.name for p in folder.iterdir()) == sorted(before)
        assert symbol.read_bytes() != before["m-symbol.json"]

    def test_saving_refuses_as_well(self, tmp_path: Path, source) -> None:
        folder = lay_out(tmp_path / "to", {"m-0010.params": "before"})
        with pytest.raises(UsageError, match="m-0010.params lies beside"):
            serde.save(serde.load(source, inputs=IMAGES), folder / "m-symbol.json")

    @pytest.mark.parametrize("epoch", [-1, 1.5, True, "3"])
    def test_what_is_no_epoch(self, epoch: Any, tmp_path: Path, source) -> None:
        with pytest.raises(UsageError, match="write_epoch=.*( is not an integer|: the least is 0)"):
            serde.convert(source, tmp_path / "m-symbol.json", inputs=IMAGES, write_epoch=epoch)


def test_what_a_killed_conversion_left_is_no_file_of_a_folder(tmp_path):
    for name, data in {"m-symbol.json": SYMBOL, "m-0001.params": ONE}.items():
        data = data.encode() if isinstance(data, str) else data
        (tmp_path / name).write_bytes(data)
        (tmp_path / f".{name}.0123456789ab.part").write_bytes(data)
        (tmp_path / f".{name}.0123456789ab.part.before").write_bytes(data)
    assert serde.load(tmp_path, inputs=IMAGES).inputs


@pytest.mark.parametrize("name", ["m.zip", "m.tar"])
def test_a_disk_that_fails_as_an_archive_is_opened(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(b"PK\3\4" if name == "m.zip" else bytes(2048))

    def fail(path):
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(archive, "open_regular", fail)
    with pytest.raises(OSError, match=name):
        matches(tmp_path / name)
