"""Parameter files: what is read stays in the file, what is written is byte for byte TVM's."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.formats.relay.io.params import PARAMS_MAGIC, read_params, write_params
from serde.ir import budget
from serde.ir.graph import Tensor
from testing.cpu_limit import limit_cpu

DATA = Path(__file__).with_name("data")
TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
HEAD = struct.pack("<QQ", PARAMS_MAGIC, 0)
ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "größe": np.array(True),
    "": np.zeros((0, 4), np.int64),
}


def write_raw(path, raw):
    path.write_bytes(raw)
    return path


def test_reads_and_writes_as_tvm(tmp_path):
    source = DATA / "dyn-batch-conv.params"
    params = read_params(source)
    assert {n: t.shape for n, t in params.items()} == {"w0": (4, 3, 3, 3)}
    write_params(params, tmp_path / "p")  # file to file
    write_params({n: Tensor.of(t.load()) for n, t in params.items()}, tmp_path / "q")
    assert (tmp_path / "p").read_bytes() == source.read_bytes() == (tmp_path / "q").read_bytes()


def test_elements_stay_in_the_file(tmp_path):
    write_params({n: Tensor.of(a) for n, a in ARRAYS.items()}, tmp_path / "p")
    tensors = read_params(tmp_path / "p")
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(tensors[name].load(), array)
        assert tensors[name].load().dtype == array.dtype
    where = tensors["a"].where
    assert where is not None and where.nbytes == 24
    raw = (tmp_path / "p").read_bytes()[where.offset : where.offset + 24]
    assert raw == ARRAYS["a"].tobytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(save, tmp_path):
    arrays = {t: np.arange(6).reshape(2, 3).astype(t) for t in TYPES}
    arrays |= {
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "swapped": np.arange(3, dtype=">i4"),
        "scalar": np.float32(2),
        "a/b.c": np.zeros((0, 3)),
    }
    save(tmp_path / "p.npz", **arrays)
    tensors = read_params(tmp_path / "p.npz")
    assert set(tensors) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors[name].load(), array)
        assert tensors[name].shape == np.shape(array)
    stored = save is np.savez
    assert (tensors["float32"].where is not None) == stored
    assert tensors["columns"].where is None and tensors["swapped"].where is None


def word(*values):
    return struct.pack(f"<{len(values)}Q", *values)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (b"\0" * 40, "byte 0: not a TVM parameter file"),
        (HEAD[:12], "byte 8: the file ends within the reserved word"),
        (HEAD + word(1 << 60), "byte 16: 1152921504606846976 names cannot fit"),
        (HEAD + word(1, 1 << 62), "the file ends within a name"),
        (HEAD + word(1, 2) + b"\xff\xff" + word(1) + b"\0" * 64, "a name is not UTF-8"),
        (HEAD + word(1, 1) + b"a" + word(0), "1 names and 0 tensors"),
        (HEAD + word(2, 1) + b"a" + word(1) + b"a" + word(2) + b"\0" * 99, "no tensor begins here"),
        (HEAD + word(1, 1) + b"a" + word(1) + b"\0" * 60, "parameter 'a': no tensor begins here"),
    ],
)
def test_is_refused(raw, reason, tmp_path):
    with pytest.raises(MalformedFile, match=reason):
        read_params(write_raw(tmp_path / "p", raw))


def test_every_cut_is_refused(tmp_path):
    raw = (DATA / "dyn-batch-conv.params").read_bytes()
    for end in range(len(raw)):
        with pytest.raises(MalformedFile):
            read_params(write_raw(tmp_path / "p", raw[:end]))


def npz(*members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def npy(shape="(2,)", descr="'<f4'", data=b"\0" * 8):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (npz(("a.npy", b"hello")), "member 'a.npy' is no array"),
        (npz(("a.npy", npy("(3,)"))), "has not the size of float32.3."),
        (npz(("a.npy", npy("(1 << 60,)"))), "is no array"),
        (npz(("a.npy", npy(f"({1 << 60}, {1 << 60})"))), "claims the shape"),
        (npz(("a.npy", npy("(-2,)"))), "is no array"),
        (npz(("a.npy", npy("(True,)"))), "is no array"),
        (npz(("a.npy", npy("('\'\'"))), "is no array"),
        (npz(("a.npy", npy("(" * 400))), "is no array"),
        (npz(("a.npy", npy("(" * 4000))), "is no array"),
        (npz(("a.npy", npy(descr="'|O'"))), "is no array|not numbers"),
        (npz(("a.npy", npy(descr="'<U2'"))), "is no array|not numbers"),
        (npz(("a.npy", npy(descr="[('x', '<f4')]"))), "is no array"),
        (npz(("a.npy", npy()))[:60], "a zip archive that cannot be read"),
        (npz(("a.npy", npy(data=b"\0" * (1 << 27), shape=f"({1 << 25},)")),
             compression=zipfile.ZIP_DEFLATED), "--max-growth allows more"),
    ],
    ids=range(14),
)  # fmt: skip
def test_npz_is_refused(raw, reason, tmp_path, monkeypatch):
    with limit_cpu(5):
        monkeypatch.setattr(budget, "BYTES", budget.Limit(1 << 26, 64))
        with pytest.raises(MalformedFile, match=reason):
            read_params(write_raw(tmp_path / "p.npz", raw))
