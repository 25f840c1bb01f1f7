"""Zips, model archives, archives in archives, and what Gluon's blocks are saved as."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.errors import MalformedFile, SerdeError, UnknownFormat
from serde.formats.mxnet.io.discover import find, matches
from serde.io.archive import open_archive
from serde.ir.budget import within_budget
from testing.mxnet import written
from testing.mxnet.written import params_bytes
from testing.mxnet_live import live_mxnet
from tests.mxnet.test_match_names import X, make_block, make_gate, run_gate, run_onnx

SYMBOL, ARRAYS = written.network()
MODEL = {"net-symbol.json": SYMBOL.encode(), "net-0003.params": params_bytes(ARRAYS)}
SHAPES = {"data": (1, 2, 8, 8)}


def pack_zip(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def pack_tar(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def nest(times: int) -> bytes:
    """A model in a zip in a zip …"""
    data = pack_zip(MODEL)
    for _ in range(times):
        data = pack_zip({"a.zip": data})
    return data


SERVED = {"MAR-INF/MANIFEST.json": b"{}", "net/service.py": b"import mxnet", "net/synset.txt": b"a"}
NESTED = {f"net/{n}": data for n, data in MODEL.items()}
APPLE = {f"__MACOSX/._{name}": bytes(4) for name in MODEL}
READ: dict[str, tuple[str, bytes]] = {
    "a zip": ("m.zip", pack_zip(MODEL)),
    "stored": ("m.zip", pack_zip(MODEL, zipfile.ZIP_STORED)),
    "a model server's": ("m.mar", pack_zip({**SERVED, **NESTED})),
    "without an ending": ("model_algo-1", pack_zip(MODEL)),
    "a zip in a tar": ("model.tar.gz", pack_tar({"model_algo-1": pack_zip(MODEL)})),
    "a zip in a plain tar": ("m.tar", pack_tar({"a.zip": pack_zip(MODEL), "b.json": b"{}"}, "w")),
    "a tar in a zip": ("m.zip", pack_zip({"model.tar.gz": pack_tar(MODEL)})),
    "a zip of macOS": ("m.zip", pack_zip({**MODEL, **APPLE})),
    "a tar of macOS": ("m.tgz", pack_tar({"._net-symbol.json": bytes(4), **MODEL})),
    "zips in zips": ("m.zip", nest(3)),
    "a tar of a model server": ("m.mar", pack_tar(MODEL)),
    "a zip called a tar": ("m.tar", pack_zip(MODEL)),
    "MXNet 2": ("m.zip", pack_zip({**MODEL, "net-0003.params": written.npz_bytes(ARRAYS)})),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_read(name: str, tmp_path: Path) -> None:
    file, data = READ[name]
    path = tmp_path / file
    path.write_bytes(data)
    assert matches(path)
    files = find(path, None, None)
    assert files.symbol == MODEL["net-symbol.json"] and str(path) in files.symbol_path
    assert files.params is not None
    for array, tensor in files.params.by_name().items():
        assert np.array_equal(tensor.load(), ARRAYS[array])
    is_mapped = [t.where is not None for t in files.params.tensors]
    assert all(is_mapped) if name == "stored" else not any(is_mapped)
    assert [v.name for v in serde.load(path, inputs=SHAPES).inputs] == ["data"]
    assert [p.name for p in tmp_path.iterdir()] == [file]


def encrypt(data: bytes) -> bytes:
    """A zip whose members say that they are encrypted."""
    marked = bytearray(data)
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (start := data.find(magic, start)) >= 0:
            marked[start + at] |= 1
            start += 4
    return bytes(marked)


def claim(data: bytes, size: int) -> bytes:
    """A zip whose last member claims a size."""
    marked = bytearray(data)
    struct.pack_into("<I", marked, data.rfind(b"PK\x01\x02") + 24, size)
    return bytes(marked)


def twice(name: str) -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(name, SYMBOL)
            archive.writestr(name, "{}")
    return out.getvalue()


BOMB = pack_zip({"net-symbol.json": SYMBOL.encode(), "net-0000.params": bytes(1 << 29)})
LINK = zipfile.ZipInfo("net-symbol.json")
LINK.external_attr = 0o120777 << 16
INNER = pack_zip(MODEL)
REFUSED: dict[str, tuple[str, bytes, str]] = {
    "a bomb": ("m.mar", BOMB, "claims more than a model can hold"),
    "too many": ("m.mar", pack_zip({str(i): b"" for i in range(10_001)}), "claims more than"),
    "a false size": ("m.mar", claim(pack_zip(MODEL, zipfile.ZIP_STORED), 1 << 20), "not where the archive says"),
    "encrypted": ("m.mar", encrypt(INNER), "it is encrypted, or compressed in a way"),
    "another packing": ("m.mar", pack_zip(MODEL, zipfile.ZIP_LZMA), "compressed in a way"),
    "cut": ("m.mar", INNER[:-30], "an archive that cannot be read"),
    "no zip": ("m.mar", b"PK\x03\x04" + bytes(90), "an archive that cannot be read"),
    "nothing": ("m.mar", pack_zip(SERVED), "holds no MXNet symbol"),
    "nested deep": ("m.zip", nest(4), "no MXNet symbol"),
    "two archives": ("m.tar", pack_tar({"a.zip": INNER, "b.zip": INNER}, "w"), "no MXNet symbol"),
    "two symbols": ("m.zip", pack_zip({**MODEL, "b-symbol.json": SYMBOL.encode()}), "name one"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    file, data, message = REFUSED[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(SerdeError, match=message) as caught, within_budget():
        find(tmp_path / file, None, None)
    assert not isinstance(caught.value, UnknownFormat)


def test_two_members_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "m.zip").write_bytes(twice("net-symbol.json"))
    with pytest.raises(MalformedFile, match="two members are called 'net-symbol.json'"):
        find(tmp_path / "m.zip", None, None)


def test_names_that_lead_elsewhere_and_links_write_nothing(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(LINK, "/etc/passwd")
        for name, data in MODEL.items():
            archive.writestr(f"../../{name}", data)
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    (folder / "m.zip").write_bytes(out.getvalue())
    assert find(folder / "m.zip", None, None).params is not None
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["m.zip"]


def test_other_zips_are_not_claimed(tmp_path: Path) -> None:
    others = {
        "m.pt": pack_zip({"m/data.pkl": b"\x80\x02", "m/version": b"3"}),
        "m.zip": pack_zip({"a.onnx": b"\x08\x08"}), "arrays.npz": written.npz_bytes(ARRAYS),
        "broken.zip": b"PK\x03\x04",
        "m.mar": pack_zip({"MAR-INF/MANIFEST.json": b"{}", "m.pt": b"\x80\x02"}),
    }  # fmt: skip
    for name, data in others.items():
        (tmp_path / name).write_bytes(data)
        assert not matches(tmp_path / name), name


BESIDE = {
    "net-0012.states": (b"\x80\x04\x95\x00", "states of an optimizer.*name the symbol"),
    "net-0000.params": (b"DJL@" + bytes(30), "parameters as DJL writes them.*as an .npz"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_a_model_are_named(name: str, tmp_path: Path) -> None:
    data, message = BESIDE[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(MalformedFile, match=message):
        serde.load(tmp_path / name)
    (tmp_path / "net-symbol.json").write_text(SYMBOL)
    with pytest.raises(MalformedFile, match=message):
        serde.load(tmp_path / "net-symbol.json", params=tmp_path / name)


def make_unlike(b, nn) -> None:
    """Two layers that are registered in another order than they were made in."""
    first, second = nn.Dense(4), nn.Dense(4)
    b.gate, b.value = second, first


@pytest.mark.parametrize("make", [make_gate, make_unlike])
@pytest.mark.parametrize("source", ["net-model.json", "net-model.params", "net", "", "zip"])
def test_a_block_as_gluon_saves_it(make, source: str, tmp_path: Path) -> None:
    """Its file tells which attribute each block is: nothing has to be guessed."""
    mx = live_mxnet()
    block = make_block(make, run_gate)
    block.initialize(mx.init.Xavier())
    block(mx.nd.array(X))
    with pytest.raises(MalformedFile, match="saved without a symbol.*call hybridize"):
        block.save(str(tmp_path / "net"))
        serde.load(tmp_path / "net-model.json")
    block.hybridize()
    y = block(mx.nd.array(X)).asnumpy()
    block.save(str(tmp_path / "net"))
    if source == "zip":
        packed = pack_zip({p.name: p.read_bytes() for p in tmp_path.iterdir()})
        (tmp_path / "zip").write_bytes(packed)
    report = serde.convert(
        tmp_path / source, tmp_path / "net.onnx", inputs={"data": X.shape}, verify=True
    )  # fmt: skip
    assert report.ok and report.verification.done
    assert not [n for n in report.notes if "by kind, shape" in n]
    assert np.allclose(run_onnx(tmp_path / "net.onnx", X)[0], y, atol=1e-5)


WRONG_BLOCKS = {
    "nothing": "{}", "a list": "[1]", "cut": '{"net0": {"orig_name": "net0"',
    "two blocks": json.dumps({"a": {"orig_name": "a"}, "b": {"orig_name": "b"}}),
    "a symbol that is none": json.dumps({"a": {"orig_name": "a", "symbol": 3}}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_wrong_blocks(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net-model.json"
    path.write_text(WRONG_BLOCKS[name])
    with pytest.raises(SerdeError):
        serde.load(path, format="mxnet")


def test_a_name_of_an_archive_is_no_weight(tmp_path: Path) -> None:
    """Headers that inflate to far more than names have are not read."""
    path = tmp_path / "m.tar.gz"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with tarfile.open(path, "w:gz", format=form) as archive:
            archive.addfile(tarfile.TarInfo("m-symbol.json/" + "x" * (4 << 20)))
        with pytest.raises(MalformedFile, match="more than a model can hold"):
            open_archive(str(path), path.read_bytes()[:1024]).__enter__()
