"""Ends of slices within 32 bits, with the numbers of before."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.formats.onnx.consumers.far_ends import within_int32
from serde.formats.onnx.writer import to_proto
from testing.onnx_live import ir_of, model_of, run_model

FAR = 2**40
BODY = """g (float[3,4] x) => (float[3,3] y, int64[1] z)
  <int64[1] s = {{1}}, int64[1] e = {{{end}}}, int64[1] a = {{1}}, int64[1] w = {{{far}}}>
  {{ y = Slice(x, s, e, a)\n z = Identity(w) }}"""


@pytest.mark.parametrize("end", [FAR, 2**63 - 1, 4])
def test_far_ends_are_moved_and_others_are_told(end):
    graph = ir_of(BODY.format(end=end, far=FAR))
    done = within_int32(graph)
    ends = [v.array() for n in done.nodes if n.op == "Slice" for v in n.inputs[1:] if v is not None]
    assert all(np.abs(a).max() < 2**31 for a in ends)
    moved = ["ends of 1 slice(s) moved within 32 bits"] if end > 2**31 else []
    assert [*done.notes[: len(moved)]] == moved
    assert "64-bit constants that do not fit in 32 bits" in done.notes[-1]


def test_the_numbers_are_those_of_before(tmp_path):
    model = model_of(BODY.format(end=FAR, far=3), 13, 7)
    onnx.save(model, tmp_path / "a.onnx")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    new = to_proto(within_int32(serde.load(tmp_path / "a.onnx")))
    for a, b in zip(run_model(new, {"x": x}), run_model(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(a, b)
