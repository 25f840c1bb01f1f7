"""What goes to processes that run models, and comes from them, through files."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from serde.bridges import worker_loop
from serde.bridges.worker_loop import read_values, write_values

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "floats": RANDOM.standard_normal((3, 4)).astype("f"),
    "no axes": np.float64(3),
    "empty": np.empty((0, 3), np.int8),
    "booleans": np.array([True, False]),
    "other bytes": np.arange(5, dtype=">i4"),
    "complex": np.complex64([1 + 2j]),
    "transposed": RANDOM.standard_normal((3, 4)).T,
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "float8": np.arange(3).astype(ml_dtypes.float8_e4m3fn),
    "int4": np.arange(3).astype(ml_dtypes.int4),
    "strings": np.array([["a", "\u00fc"], ["", "\udcff"]], object),
    "fixed strings": np.array(["a", "bc"]),
}


@pytest.mark.parametrize("mapped", [0, worker_loop.MAPPED])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name, mapped, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_loop, "MAPPED", mapped)
    path, array = tmp_path / "values", np.asarray(ARRAYS[name])
    write_values(path, [np.ones(3, np.uint8), array])
    _, got = read_values(path)
    path.unlink()
    np.testing.assert_array_equal(got, array)
    assert got.dtype == (object if "strings" in name else array.dtype) and got.shape == array.shape
    got[...] = got  # as any array, it can be written into


def test_nests(tmp_path):
    values = [
        {"a": np.arange(3), "b": [np.ones(2), np.zeros((1, 0))]}, None, 3, 0.1, float("inf"), "x",
        [{1: 0.5, 2: float("nan")}], (),
    ]  # fmt: skip
    write_values(tmp_path / "values", values)
    got = read_values(tmp_path / "values")
    np.testing.assert_equal(got, [*values[:-1], []])
    assert got[0]["a"].dtype == np.int64
