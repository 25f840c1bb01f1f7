"""The Array API's namespace, on traced arrays and on those of the conformance run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from conformance import array_api
from conformance import array_api_eager as xp
from tests.frontends.tracing import compare


def standardize(x):
    """Code of the standard: it asks the array for its namespace."""
    space = x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
    middle = space.mean(x, axis=-1, keepdims=True)
    parts = space.broadcast_arrays(x, middle)
    return space.concat([parts[0] - parts[1], space.matrix_transpose(x[..., :2, :2])[..., 0, :1]
                         + space.zeros_like(x[..., :1])], axis=-1)  # fmt: skip


def test_code_of_the_standard_is_traced(tmp_path):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    compare(lambda x: standardize(x[0]), x, path=tmp_path / "m.onnx", names={4: "N"})


def test_arrays_of_the_conformance_run():
    x = xp.asarray([3.0, 1.0, 2.0])
    x[0] = 5
    x += 1
    values, counts = xp.unique_counts(xp.asarray([1, 1, 2]))
    assert (xp.sort(x).numbers.tolist(), float(xp.sum(x)), x[-1].numbers.item()) == (
        [2, 3, 6],
        11,
        3,
    )
    assert values.numbers.tolist() == [1, 2] and counts.numbers.tolist() == [2, 1]
    order = xp.argsort(xp.asarray([1, 2, 2, 0]), descending=True)
    assert order.numbers.tolist() == [1, 2, 0, 3]
    assert xp.clip(xp.sort(x, descending=True), max=4).numbers.tolist() == [4, 3, 2]
    assert isinstance(xp.broadcast_arrays(x, x), list) and xp.unstack(x[:0]) == ()
    assert xp.result_type(x, xp.float32) == xp.float64 and (2 - x).dtype == x.dtype
    with pytest.raises(TypeError):
        x + "text"


def test_the_recorded_run():
    """Every test that ndonnx passes is passed, and each that is not has its reason."""
    others = json.loads(array_api.RECORD.read_text())["others"]
    failed = {n: row for n, row in others.items() if row[0] not in ("passed", "skipped")}
    assert [n for n, row in others.items() if row[1] == "passed" != row[0]] == []
    assert [n for n in failed if not array_api.reason_of(n)] == []
    assert all(any(re.search(pattern, n) for n in failed) for pattern in array_api.REASONS)
