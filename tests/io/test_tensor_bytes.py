"""Bytes in files ↔ arrays, against what onnx itself packs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from serde.io import tensor_bytes
from serde.ir.graph import DType, FileSlice
from serde.spec.schema import ELEMENT_CODES

PLAIN = [d for d in DType if d is not DType.STRING]


def sample(dtype, shape):
    """Every value of the narrow types, others at random, NaN among the floats."""
    rng = np.random.default_rng(0)
    size = int(np.prod(shape))
    if dtype is DType.BOOL:
        return (rng.integers(0, 2, size) == 1).reshape(shape)
    if dtype.bits < 8 and dtype.kind in "iu":
        low = -(1 << dtype.bits - 1) if dtype.kind == "i" else 0
        return (np.arange(size) % (1 << dtype.bits) + low).astype(dtype.numpy).reshape(shape)
    if dtype.bits == 4:
        return (np.arange(size) % 16).astype(np.uint8).view(dtype.numpy).reshape(shape)
    return rng.integers(0, 256, size * dtype.numpy.itemsize).astype(np.uint8).view(
        dtype.numpy
    ).reshape(shape)  # fmt: skip


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (0,), (2, 0, 3)])
def test_bytes_are_those_onnx_writes_and_read_back(dtype, shape, tmp_path):
    array = sample(dtype, shape)
    packed = tensor_bytes.pack(array, dtype)
    assert packed.tobytes() == numpy_helper.from_array(array).raw_data
    path = tmp_path / "data"
    path.write_bytes(b"before" + packed.tobytes() + b"behind")
    stored = tensor_bytes.read_slice(FileSlice(str(path), 6, packed.nbytes), dtype, shape)
    assert (stored.dtype.newbyteorder("="), stored.shape) == (array.dtype, array.shape)
    assert stored.tobytes() == array.tobytes()


def test_an_array_of_a_file_cannot_be_written_to(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(16))
    stored = tensor_bytes.read_slice(FileSlice(str(path), 0, 16), DType.FLOAT32, (4,))
    with pytest.raises(ValueError, match="read-only"):
        stored[0] = 1


def test_arrays_of_any_order_and_byte_order_are_packed_row_major_little_endian():
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    assert (
        tensor_bytes.pack(array, DType.INT32).tobytes()
        == np.array([0, 3, 1, 4, 2, 5], "<i4").tobytes()
    )


@pytest.mark.parametrize("dtype", [d for d in PLAIN if d.bits < 8])
def test_narrow_elements_are_read_as_onnx_reads_them(dtype):
    raw = bytes(range(256))
    count = 256 * 8 // dtype.bits
    proto = helper.make_tensor("t", ELEMENT_CODES[dtype], [count], raw, raw=True)
    got = tensor_bytes.unpack(np.frombuffer(raw, np.uint8), dtype, (count,))
    np.testing.assert_array_equal(got.astype(float), numpy_helper.to_array(proto).astype(float))
