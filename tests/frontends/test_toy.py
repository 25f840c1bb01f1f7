"""The front end of docs/how-to/write-a-front-end.md: its code runs, and its graph is right."""

from __future__ import annotations

import re

import numpy as np
import pytest

from serde.bridges import onnxruntime as runtime
from serde.errors import ConversionError
from tests.frontends.make_table import PAGE

DOCS = PAGE.parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 40  # of the front end, imports and blank lines included


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "toy"}
    for block in BLOCK.findall((DOCS / "how-to" / "write-a-front-end.md").read_text()):
        exec(block, scope)
    return scope


def test_the_toy_computes_what_its_code_says(toy, tmp_path):
    x = np.random.default_rng(0).normal(size=(3, 2, 6, 8)).astype("f4")
    (actual,) = runtime.run(tmp_path / "toy.onnx", {"x": x})
    pooled = x.reshape(3, 2, 3, 2, 4, 2).max((3, 5))
    rows = np.maximum(pooled @ np.ones((4, 3), np.float32), 0)
    powers = np.exp(rows - rows.max(-1, keepdims=True))
    np.testing.assert_allclose(actual, powers / powers.sum(-1, keepdims=True), atol=1e-6)
    assert toy["graph"].outputs[0].shape == ("N", 2, 3, 3)


def test_the_front_end_is_short(toy):
    first = BLOCK.findall((DOCS / "how-to" / "write-a-front-end.md").read_text())[0]
    assert len(first.splitlines()) <= MOST_LINES


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda x: x.nonsense(), "nonsense"),
        (lambda x: x.dense(np.ones((8, 3), np.float32), bias=1), "bias"),
        (lambda x: x.Pooling(kernel=(2, 2), pool_type="odd"), "pool_type"),
    ],
)
def test_what_the_tables_lack_is_refused(toy, use, message):
    with pytest.raises(ConversionError, match=message):
        toy["export"](use, ("N", 2, 6, 8))
