"""Parameter files of every layout, element type and storage."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.formats.mxnet.io.params import TYPES as FLAGS
from serde.formats.mxnet.io.params import parse_params, read_params
from serde.ir import budget
from serde.ir.graph import DType
from testing.mxnet import written
from testing.mxnet.written import (
    Array,
    array_bytes,
    npy_bytes,
    params_bytes,
    shape_bytes,
    sparse_bytes,
    sparse_members,
    zip_bytes,
)
from testing.mxnet_live import live_mxnet
from tests.mxnet import make_data

TYPES = [t for t in written.TYPES if t != "bfloat16"]
SHAPES = [(3,), (2, 3), (1, 2, 2, 1), (0, 3), ()]


def example(dtype: str, shape: tuple[int, ...] = (2, 3)) -> Array:
    """An array with the ends of its type's range in it."""
    if dtype == "bfloat16":
        return example("float32", shape).astype(ml_dtypes.bfloat16)
    kind = np.dtype(dtype)
    values = np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    if values.size > 1 and kind.kind in "iu":
        values.flat[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    if values.size > 1 and kind.kind == "f":
        values.flat[:2] = np.finfo(kind).max, -np.inf
    return values


def same(tensor, array: Array) -> bool:
    """Whether a tensor is an array to the bit."""
    loaded = tensor.load()
    assert tensor.dtype is DType.of(array.dtype) and loaded.dtype == array.dtype
    return tensor.shape == array.shape == loaded.shape and loaded.tobytes() == array.tobytes()


def in_file(folder: Path, data: bytes) -> Path:
    path = folder / "model-0000.params"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("dtype", written.TYPES)
@pytest.mark.parametrize("layout", written.LAYOUTS)
def test_dense(layout: str, dtype: str, tmp_path: Path) -> None:
    arrays = {
        f"x{i}": example(dtype, s)
        for i, s in enumerate(SHAPES)
        if layout == "v3" or (s and all(s))  # others have neither scalars nor sizes of 0
    }
    data = params_bytes(arrays, layout)
    for params in (read_params(in_file(tmp_path, data)), parse_params(data, "memory")):
        assert params.names == tuple(arrays)
        assert all(same(t, a) for t, a in zip(params.tensors, arrays.values(), strict=True))


@pytest.mark.parametrize("layout", written.LAYOUTS)
def test_dense_arrays_stay_in_the_file(layout: str, tmp_path: Path, monkeypatch) -> None:
    arrays = {t: example(t, (3, 5)) for t in written.TYPES}
    data = params_bytes(arrays, layout)
    monkeypatch.chdir(in_file(tmp_path, data).parent)
    for name, tensor in read_params("model-0000.params").by_name().items():
        if name == "bool":  # which needs its bytes looked at
            assert tensor.where is None
            continue
        where = tensor.where
        assert where is not None and os.path.isabs(where.path)
        assert data[where.offset : where.offset + where.nbytes] == arrays[name].tobytes()


def test_reading_takes_no_memory_for_the_arrays(tmp_path: Path) -> None:
    """A file of a gigabyte, most of it a hole."""
    size = 1 << 30
    head = params_bytes({}, "v2")[:16] + struct.pack("<Q", 1)
    head += array_bytes(np.zeros((0, 1024), "float32")).replace(
        shape_bytes((0, 1024)), shape_bytes((size // 4096, 1024))
    )
    path = tmp_path / "large.params"
    with path.open("wb") as file:
        file.write(head)
        file.seek(size, os.SEEK_CUR)
        file.write(struct.pack("<Q", 0))
    tracemalloc.start()
    with budget.within_budget() as allowed:
        allowed.allow_mebibytes(2 * size >> 20)  # a hole counts as made
        tensor = read_params(path).tensors[0]
    assert tensor.nbytes == size
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_bool_is_any_byte_but_zero() -> None:
    raw = array_bytes(np.array([True, False, True])).replace(b"\1\0\1", b"\2\0\xff")
    data = params_bytes({"x": raw})
    tensor = parse_params(data, "memory").tensors[0]
    assert tensor.load().tolist() == [True, False, True]
    assert tensor.load().tobytes() == b"\1\0\1"


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (("arg:w", "aux:mean"), ("w", "mean")),
        (("net0_w", "net0_mean"), ("net0_w", "net0_mean")),
        (("0.weight", "ns:b"), ("0.weight", "ns:b")),
        (("größe", "arg:"), ("größe", "")),
    ],
)
def test_names(names, plain) -> None:
    params = parse_params(params_bytes({n: example("float32") for n in names}), "memory")
    assert params.names == names
    assert tuple(params.by_name()) == plain


def test_without_names() -> None:
    params = parse_params(params_bytes([example("float32"), example("int8")]), "memory")
    assert params.names == () and len(params.tensors) == 2 and params.by_name() == {}


def test_no_arrays() -> None:
    assert parse_params(params_bytes({}), "memory").tensors == ()


def test_arrays_that_were_never_filled() -> None:
    """MXNet writes their shape of no dimensions (V3: -1), and nothing behind it."""
    none = {
        "v0": b"\0\0\0\0",
        "v1": b"\xc8\xfa\x93\xf9\0\0\0\0",
        "v2": b"\xc9\xfa\x93\xf9" + b"\0" * 8,
        "v3": b"\xca\xfa\x93\xf9\0\0\0\0\xff\xff\xff\xff",
    }
    data = params_bytes({**none, "last": example("float32")})
    tensors = parse_params(data, "memory").by_name()
    assert [tensors[n].shape for n in none] == [(0,)] * 4
    assert same(tensors["last"], example("float32"))


ROWS, VALUES = np.array([0, 2], "int64"), np.array([[1, 2], [3, 4]], "float32")
STARTS, COLUMNS = np.array([0, 1, 1, 3], "int64"), np.array([1, 0, 1], "int64")
DENSE_ROWS = np.array([[1, 2], [0, 0], [3, 4]], "float32")
DENSE_CSR = np.array([[0, 5], [0, 0], [6, 7]], "float32")
DATA = np.array([5, 6, 7], "float32")
NONE = np.zeros(0, "int64")
SPARSE = {
    "row_sparse": (sparse_bytes(1, (3, 2), VALUES, ROWS), DENSE_ROWS),
    "row_sparse int32": (sparse_bytes(1, (3, 2), VALUES, ROWS.astype("int32")), DENSE_ROWS),
    "row_sparse half": (
        sparse_bytes(1, (3, 2), VALUES.astype("float16"), ROWS), DENSE_ROWS.astype("float16")
    ),
    "no rows": (
        sparse_bytes(1, (3, 2), np.zeros((0, 2), "float32"), NONE), np.zeros((3, 2), "float32")
    ),
    "csr": (sparse_bytes(2, (3, 2), DATA, STARTS, COLUMNS), DENSE_CSR),
    "empty csr": (
        sparse_bytes(2, (3, 2), DATA[:0], np.zeros(4, "int64"), NONE), np.zeros((3, 2), "float32")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_sparse(name: str) -> None:
    data, dense = SPARSE[name]
    tensors = parse_params(params_bytes({"x": data, "y": dense}), "memory").tensors
    assert all(same(t, dense) for t in tensors)


SPARSE_FAULTS = {
    "rows outside": sparse_bytes(1, (2, 2), VALUES, ROWS),
    "indices that do not fit": sparse_bytes(2, (3, 2), DATA, STARTS, COLUMNS + 1),
    "csr array of shape (2, 2)": sparse_bytes(2, (2, 2), DATA, STARTS, COLUMNS),
    "no integers": sparse_bytes(1, (3, 2), VALUES, ROWS.astype("float64")),
    "would take 8388608 MiB": sparse_bytes(1, (1 << 40, 2), VALUES, ROWS),
}


@pytest.mark.parametrize("message", SPARSE_FAULTS)
def test_sparse_faults(message: str) -> None:
    with pytest.raises(MalformedFile) as caught:
        parse_params(params_bytes({"x": SPARSE_FAULTS[message]}), "memory").tensors[0].load()
    assert message in str(caught.value)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("dtype", written.TYPES)
def test_npz(dtype: str, how: int, tmp_path: Path) -> None:
    """MXNet 2's own form; what is stored as it is stays in the file."""
    arrays = {f"arg:x/{i}": example(dtype, s) for i, s in enumerate(SHAPES)}
    data = written.npz_bytes(arrays, how)
    for params in (read_params(in_file(tmp_path, data)), parse_params(data, "memory")):
        assert params.names == tuple(arrays)
        assert all(same(t, a) for t, a in zip(params.tensors, arrays.values(), strict=True))
    for name, tensor in read_params(tmp_path / "model-0000.params").by_name().items():
        where = tensor.where
        mapped = how == zipfile.ZIP_STORED and dtype != "bool"
        assert (where is not None) == mapped
        if where is not None:
            stored = data[where.offset : where.offset + where.nbytes]
            assert stored == arrays[f"arg:{name}"].tobytes()


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
def test_npz_of_numpy(dtype: str) -> None:
    array = example(dtype)
    arrays = {"c": array, "fortran": np.asfortranarray(array), "scalar": array[0, 0]}
    if dtype != "bfloat16":
        arrays["swapped"] = array.astype(array.dtype.newbyteorder(">"))
    for save in (np.savez, np.savez_compressed):
        out = io.BytesIO()
        save(out, **arrays)
        for name, tensor in parse_params(out.getvalue(), "memory").by_name().items():
            assert same(tensor, np.asarray(array[0, 0] if name == "scalar" else array))


def test_npz_without_names() -> None:
    out = io.BytesIO()
    np.savez(out, example("float32"), example("int8"))
    params = parse_params(out.getvalue(), "memory")
    assert params.names == () and [t.dtype.value for t in params.tensors] == ["float32", "int8"]


def _broken_format(kind: str) -> bytes:
    """``format.npy``, whose header MXNet 2 writes wrongly."""
    return npy_bytes(np.zeros(0), f"'|s{len(kind)}{{'descr': '<i8'") + kind.encode()


@pytest.mark.parametrize("kind", ["csr", "row_sparse"])
def test_sparse_npz(kind: str) -> None:
    parts = {"data": DATA, "indptr": STARTS, "indices": COLUMNS, "shape": [3, 2]}
    if kind == "row_sparse":
        parts = {"data": VALUES, "indices": ROWS, "shape": [3, 2]}
    members = sparse_members("emb", kind, **parts)
    for text in (_broken_format(kind), members["emb/format.npy"]):
        params = parse_params(zip_bytes({**members, "emb/format.npy": text}), "memory")
        assert params.names == ("emb",)
        assert same(params.tensors[0], DENSE_CSR if kind == "csr" else DENSE_ROWS)


FLOAT = example("float32")
NPZ_FAULTS = {
    "holds O8": {"x.npy": npy_bytes(np.zeros(2), "'|O8'")},
    "holds U3": {"x.npy": npy_bytes(np.array(["abc"]))},
    "holds c8": {"x.npy": npy_bytes(np.zeros(2, "complex64"))},
    "is no array": {"x.npy": b"nothing of the kind"},
    "has not the size": {"x.npy": npy_bytes(FLOAT) + b"\0"},
    "claims the shape (1, 1, 1,": {"x.npy": npy_bytes(FLOAT, shape=(1,) * 33)},
    "claims the shape (0, 9999": {"x.npy": npy_bytes(FLOAT, shape=(0, 10**19 - 1))},
    "--max-growth allows more": {"x.npy": npy_bytes(np.zeros(1 << 17, "float64"))},
    "does not say csr": sparse_members(
        "e", "csc", data=DATA, indptr=STARTS, indices=COLUMNS, shape=[3, 2]
    ),
    "'e/format.npy' does not say row_sparse": {
        **sparse_members("e", "row_sparse", data=VALUES, indices=ROWS, shape=[3, 2]),
        "e/format.npy": bytes(1 << 20),
    },
    "stores (2, 2)": sparse_members("e", "row_sparse", data=VALUES, indices=ROWS, shape=[3, 4]),
    "is the impossible (-1, 2)": sparse_members(
        "e", "row_sparse", data=VALUES, indices=ROWS, shape=[-1, 2]
    ),
    "is no shape": sparse_members("e", "row_sparse", data=VALUES, indices=ROWS, shape=[0.5]),
}


@pytest.mark.parametrize("message", NPZ_FAULTS)
def test_npz_faults(message: str, monkeypatch) -> None:
    monkeypatch.setattr(budget, "BYTES", budget.Limit(1 << 16, 64))
    with pytest.raises(MalformedFile) as caught:
        for tensor in parse_params(zip_bytes(NPZ_FAULTS[message]), "memory").tensors:
            tensor.load()
    assert message in str(caught.value)


def test_a_damaged_member_is_found_out_when_it_is_loaded() -> None:
    data = bytearray(zip_bytes({"x.npy": npy_bytes(example("float64", (40, 40)))}))
    data[200] ^= 1
    with pytest.raises(MalformedFile, match=r"'x\.npy'"):
        parse_params(bytes(data), "memory").tensors[0].load()


def good() -> bytes:
    return params_bytes({"a": example("float32", (2, 3)), "b": example("int8", (3,))})


U64 = 8
FAULTS = {  # what is done to a good file: what the error says
    "empty": (lambda d: b"", "the file is empty"),
    "header cut": (lambda d: d[:20], "byte 16: the file ends within the number of arrays"),
    "array cut": (lambda d: d[:80], "needs 24 bytes, 16 are left"),
    "names cut": (lambda d: d[:-1], "claims a name of 1 bytes"),
    "count": (lambda d: d[:16] + b"\xff" * U64 + d[24:], "claims 18446744073709551615 arrays"),
    "count of names": (lambda d: d[:-26] + b"\1" + d[-25:], "1 names for 2 arrays"),
    "magic of an array": (lambda d: d[:24] + b"\0\0\0\1" + d[28:], "byte 24: array 0 begins"),
    "storage": (lambda d: d[:28] + b"\7" + d[29:], "the unknown storage type 7"),
    "ndim": (lambda d: d[:32] + b"\x21" + d[33:], "claims an array of 33 dimensions"),
    "negative ndim": (lambda d: d[:32] + b"\xff" * 4 + d[36:], "claims an array of -1 dimensions"),
    "size": (lambda d: d[:42] + b"\1" + d[43:], "needs 3377699720527896 bytes"),
    "a size beyond numbers": (
        lambda d: d[:36] + b"\0" * 8 + b"\xff" * 7 + b"\1" + d[52:],
        "claims an array of shape (0, 144115188075855871)",
    ),
    "negative size": (lambda d: d[:43] + b"\x80" + d[44:], "claims an array of shape (-"),
    "element type": (lambda d: d[:60] + b"\x0d" + d[61:], "the unknown element type 13"),
    "name": (lambda d: d[:-1] + b"\xff", "a name is not text"),
    "a name twice": (lambda d: d[:-1] + b"a", "two arrays are called 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, tmp_path: Path) -> None:
    spoil, message = FAULTS[fault]
    data = spoil(good())
    path = in_file(tmp_path, data)
    for read in (lambda: read_params(path), lambda: parse_params(data, str(path))):
        with pytest.raises(MalformedFile) as caught:
            read()
        assert message in str(caught.value) and str(path) in str(caught.value)


def test_one_name_as_argument_and_state() -> None:
    data = params_bytes({"arg:x": example("float32"), "aux:x": example("float32")})
    with pytest.raises(MalformedFile, match="two arrays are called 'x'"):
        parse_params(data, "memory")


@pytest.mark.parametrize("name", make_data.FILES)
def test_files_that_mxnet_wrote(name: str) -> None:
    arrays, _ = make_data.FILES[name]
    params = read_params(make_data.FOLDER / f"{name}.params")
    assert params.names == (tuple(arrays) if isinstance(arrays, dict) else ())
    expected = list(arrays.values() if isinstance(arrays, dict) else arrays)
    if name == "bfloat16":
        expected = [a.astype(ml_dtypes.bfloat16) for a in expected]
    assert all(same(t, np.asarray(a)) for t, a in zip(params.tensors, expected, strict=True))


def test_mxnet_writes_them_today(tmp_path: Path) -> None:
    live_mxnet()
    make_data.write(tmp_path)
    for name in make_data.FILES:
        kept = (make_data.FOLDER / f"{name}.params").read_bytes()
        assert (tmp_path / f"{name}.params").read_bytes() == kept, f"make_data.py wrote {name}"


@pytest.mark.parametrize("storage", ["row_sparse", "csr"])
def test_sparse_arrays_that_mxnet_was_still_at_work_on(storage: str, tmp_path: Path) -> None:
    """It may write the shape of the stored data before there are any."""
    path, dense = str(tmp_path / "x.params"), np.diag([0.0, 1.0, 0.0, 2.0]).astype("float32")
    live_mxnet().nd.save(path, {"x": live_mxnet().nd.array(dense).tostype(storage)})
    assert same(read_params(path).tensors[0], dense)


def test_a_wrong_shape_of_stored_data_is_not_believed() -> None:
    right = shape_bytes(VALUES.shape)
    data = SPARSE["row_sparse"][0].replace(right, shape_bytes((0, 2)), 1)
    assert same(parse_params(params_bytes({"x": data}), "memory").tensors[0], DENSE_ROWS)


@pytest.mark.parametrize("layout", written.LAYOUTS)
def test_the_tests_write_what_mxnet_reads(layout: str, tmp_path: Path) -> None:
    mx = live_mxnet()
    arrays = {t: example(t) for t in make_data.TYPES}
    path = in_file(tmp_path, params_bytes(arrays, layout))
    with mx.util.np_shape(layout == "v3"):
        for name, array in mx.nd.load(str(path)).items():
            assert array.asnumpy().tobytes() == arrays[name].tobytes()


def test_the_flags_are_mxnets() -> None:
    assert [t.value for t in FLAGS] == written.TYPES


def test_an_archive_without_members_holds_no_parameters(tmp_path: Path) -> None:
    """MXNet 2 writes one for a model without parameters."""
    data = zip_bytes({})
    assert len(data) == 22
    (tmp_path / "m.params").write_bytes(data)
    for params in (parse_params(data, "m"), read_params(tmp_path / "m.params")):
        assert (params.names, params.tensors) == ((), ())
