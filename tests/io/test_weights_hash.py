"""A SHA-256 over weights: what it is of, and where they lie."""

from __future__ import annotations

import hashlib
import json

import ml_dtypes
import numpy as np
import pytest

from serde.errors import MalformedFile
from serde.io import weights_hash as module
from serde.ir.graph import DType, FileSlice, Graph, Node, Tensor, Value

ARRAYS = {
    "float32": np.float32([[1, -0.0], [np.nan, 3]]), "int64": np.int64([-1, 2]),
    "bfloat16": np.array([1.5, 2], ml_dtypes.bfloat16), "bool": np.array([True, False, True]),
    "complex64": np.complex64([1 + 2j]), "empty": np.zeros((0, 3), np.int8),
}  # fmt: skip


def graph_of(**tensors):
    values = [Value(n, t.dtype, t.shape, t) for n, t in tensors.items()]
    y = Value("y", DType.FLOAT32, (1,))
    return Graph("g", (), (y,), (Node("Any", tuple(values), (y,)),))


def hash_arrays(named):
    """What the page of reports says it is of: names, types, shapes and bytes, by name."""
    total = hashlib.sha256()
    for name, (dtype, shape, raw) in sorted(named.items()):
        head = json.dumps([name, dtype, shape]).encode()
        total.update(len(head).to_bytes(8, "little") + head + raw)
    return total.hexdigest()


@pytest.mark.parametrize("kind", ARRAYS)
def test_it_is_of_names_types_shapes_and_bytes(kind):
    array = ARRAYS[kind]
    tensor = Tensor.of(array)
    digest = module.weights_hash(graph_of(b=tensor, a=tensor))
    parts = (tensor.dtype.value, array.shape, array.tobytes())
    assert digest == hash_arrays({"a": parts, "b": parts})
    assert digest != module.weights_hash(graph_of(b=tensor, c=tensor))


def test_texts_are_told_from_each_other_by_their_lengths():
    first, second = (Tensor.of(np.array(t, object)) for t in (["ab", "c"], ["a", "bc"]))
    assert module.weights_hash(graph_of(w=first)) != module.weights_hash(graph_of(w=second))


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
@pytest.mark.parametrize(("dtype", "raw", "shape"), [
    (DType.FLOAT32, np.float32([1, 2, 3]).tobytes(), (3,)), (DType.BOOL, bytes([0, 1, 7, 1]), (4,)),
    (DType.INT4, bytes([0x21, 0xF3]), (3,)),
])  # fmt: skip
def test_weights_in_a_file_have_the_hash_of_those_in_memory(
    tmp_path, monkeypatch, chunk, dtype, raw, shape
):
    """Truth is any number but 0, and what fills the last byte of packed bits is nothing."""
    monkeypatch.setattr(module, "CHUNK", chunk)
    (tmp_path / "w.bin").write_bytes(b"head" + raw)
    where = FileSlice(str(tmp_path / "w.bin"), 4, len(raw))
    array = {DType.FLOAT32: lambda: np.float32([1, 2, 3]), DType.BOOL: lambda: np.array([0, 1, 1, 1], bool),
             DType.INT4: lambda: np.array([1, 2, 3], ml_dtypes.int4)}[dtype]()  # fmt: skip
    in_file = graph_of(w=Tensor(dtype, shape, lambda: array, where))
    assert module.weights_hash(in_file) == module.weights_hash(graph_of(w=Tensor.of(array)))


def test_a_file_that_became_shorter_is_told(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(6))
    where = FileSlice(str(tmp_path / "w.bin"), 0, 8)
    with pytest.raises(MalformedFile, match=r"w\.bin"):
        module.weights_hash(graph_of(w=Tensor(DType.FLOAT32, (2,), lambda: None, where)))
