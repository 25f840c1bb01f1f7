"""Arrays of ``.npz`` files are those that NumPy wrote, whatever their type, order and packing."""

from __future__ import annotations

import io

import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.io.npz import open_npz

RNG = np.random.default_rng(0)
ARRAYS = {
    "float32": RNG.standard_normal((2, 3)).astype(np.float32),
    "big endian": RNG.standard_normal((2, 3)).astype(">f8"),
    "Fortran order": np.asfortranarray(RNG.integers(-9, 9, (2, 3, 4)).astype(np.int16)),
    "scalar": np.array(7, np.uint64),
    "empty": np.zeros((0, 3), np.float16),
    "bool": np.array([True, False]),
}


def read(source):
    with open_npz(source, "m.npz") as npz:
        return {name: npz.tensor(info) for name, info in npz.members.items()}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("is_path", [True, False])
def test_arrays_are_those_of_numpy(save, is_path, tmp_path):
    path = tmp_path / "m.npz"
    save(path, **ARRAYS)
    tensors = read(str(path) if is_path else path.read_bytes())
    assert tensors.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(tensors[name].load(), array, err_msg=name)
        assert tensors[name].load().dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([1j]), np.array([{}])])
def test_other_types_are_refused(array):
    file = io.BytesIO()
    np.savez(file, x=array)
    with pytest.raises(MalformedFile, match="x"):
        read(file.getvalue())


def test_what_is_cut_off_is_refused(tmp_path):
    np.savez(tmp_path / "m.npz", x=np.zeros(100))
    content = (tmp_path / "m.npz").read_bytes()
    for end in (0, 30, len(content) // 2, len(content) - 1):
        with pytest.raises(MalformedFile, match=r"m\.npz"):
            read(content[:end])
