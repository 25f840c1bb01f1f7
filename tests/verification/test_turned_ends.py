"""Files whose inputs and outputs have channels last are compared with their source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.verification import TurnedEnds
from testing.onnx_live import ir_of
from tests.tflite.litert_live import why_not

BODY = """g (float[1,3,6,5] x, float[2] k) => (float[1,4,6,5] y, float[1,3,6,5] z, float[2] o)
    <float[4,3,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
    { y = Conv(x, w) z = Neg(x) o = Neg(k) }"""
needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


def test_feeds_and_outputs_are_turned_by_name() -> None:
    turned = TurnedEnds(ir_of(BODY), ["x", "y"], rename={"a": "x"})
    x, k = np.zeros((1, 6, 5, 3)), np.zeros(2)
    fed = turned.prepare({"a": x, "k": k})
    assert {name: v.shape for name, v in fed.items()} == {"a": (1, 3, 6, 5), "k": (2,)}
    outputs = turned.add_results([np.zeros((1, 4, 6, 5)), np.zeros((1, 3, 6, 5)), k])
    assert [v.shape for v in outputs] == [(1, 6, 5, 4), (1, 3, 6, 5), (2,)]


@needs_litert
@pytest.mark.parametrize("names", [["all"], ["x"], ["y", "z"]])
def test_such_a_file_is_verified(names: list[str], tmp_path: Path) -> None:
    serde.save(ir_of(BODY), tmp_path / "m.onnx")
    done = serde.convert(
        tmp_path / "m.onnx", tmp_path / "m.tflite", channels_last=names, verify=True,
        rename={"x": "data"} if names == ["all"] else None,
    )  # fmt: skip
    assert done.verification is not None and done.verification.done and done.verification.ok
    assert len(done.verification.outputs) == 3
