"""Weights read into memory: their files may change."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, FileSlice, Graph, Node, Tensor, Value
from serde.passes import copy_weights as module
from serde.passes.copy_weights import copy_weights


def make_mapped(path, count, name="w", dtype=DType.FLOAT32):
    """A constant whose elements are in a file."""
    where = FileSlice(str(path), 0, count * 4)
    array = np.fromfile(path, np.float32, count)
    return Value(name, dtype, (count,), Tensor(dtype, (count,), lambda: array, where))


def sum_of(*constants):
    y = Value("y", DType.FLOAT32, (3,))
    return Graph("g", (), (y,), (Node("Sum", constants, (y,)),))


def test_nothing_depends_on_the_file_any_more(tmp_path):
    path = tmp_path / "w.bin"
    np.float32([1, 2, 3]).tofile(path)
    graph = sum_of(make_mapped(path, 3))
    copy_weights(graph.constants())
    path.write_bytes(bytes(12))
    path.unlink()
    (value,) = graph.constants()
    assert value.tensor.where is None and value.array().tolist() == [1, 2, 3]


def test_a_part_of_a_file_is_read_once(tmp_path, monkeypatch):
    path, reads = tmp_path / "w.bin", []
    np.float32([1, 2, 3]).tofile(path)
    graph = sum_of(make_mapped(path, 3, "a"), make_mapped(path, 3, "b"), make_mapped(path, 2, "c"))
    read_part = module.read_part
    monkeypatch.setattr(module, "read_part", lambda where: reads.append(where) or read_part(where))
    copy_weights(graph.constants())
    assert [w.nbytes for w in reads] == [12, 8]
    assert [v.array().tolist() for v in graph.constants()] == [[1, 2, 3], [1, 2, 3], [1, 2]]


def test_arrays_of_the_caller_are_copied():
    array = np.float32([1, 2, 3])
    graph = sum_of(Value("w", DType.FLOAT32, (3,), Tensor.of(array)))
    text = Value("t", DType.STRING, (1,), Tensor.of(np.array(["a"], object)))
    copy_weights(graph.constants())
    copy_weights(sum_of(text).constants())
    array[:] = 0
    (value,) = graph.constants()
    assert value.array().tolist() == [1, 2, 3] and text.array().tolist() == ["a"]
