"""Detectors with and without the suppression at their end."""

from __future__ import annotations

import json

import numpy as np
import pytest

import serde
from serde.errors import UsageError

NMS = "_contrib_box_nms"


def detector(folder, *nodes, heads):
    """A symbol of nodes ``(op, name, links, attrs)`` behind the input ``x``."""
    entries = [
        {"op": op, "name": name, "inputs": [[*link, 0] for link in links], "attrs": attrs}
        for op, name, links, attrs in nodes
    ]
    text = {"nodes": [{"op": "null", "name": "x", "inputs": []}, *entries], "heads": heads}
    path = folder / "net-symbol.json"
    path.write_text(json.dumps(text))
    return path


SIX = {"x": ((1, 8, 6), np.dtype("float32"))}
ROWS = ("_mul_scalar", "rows", [(0, 0)], {"scalar": "2"})
LAST = (NMS, "nms", [(1, 0)], {"id_index": "0"})
CUT = ("slice_axis", "best", [(2, 0)], {"axis": "1", "begin": "0", "end": "3"})


def test_the_last_suppression_is_left_out(tmp_path):
    model = detector(tmp_path, ROWS, LAST, CUT, heads=[[3, 0], [1, 0]])
    graph = serde.load(model, inputs=SIX, nms="none")
    assert [(v.name, v.shape) for v in graph.outputs] == [("rows_output", (1, 8, 6))]
    assert [n.op for n in graph.nodes] == ["Mul"]
    full = serde.load(model, inputs=SIX, nms="full")
    assert [v.name for v in full.outputs] == ["best_output", "rows_output"]


def test_a_suppression_that_another_depends_on_stays(tmp_path):
    first, second = LAST, (NMS, "again", [(2, 0)], {})
    model = detector(tmp_path, ROWS, first, second, heads=[[3, 0]])
    graph = serde.load(model, inputs=SIX, nms="none")
    assert [v.name for v in graph.outputs] == ["nms_output0"]
    assert sum(n.op == "NonMaxSuppression" for n in graph.nodes) == 1


def test_refusals(tmp_path):
    model = detector(tmp_path, ROWS, heads=[[1, 0]])
    with pytest.raises(UsageError, match="no non-maximum suppression"):
        serde.load(model, inputs=SIX, nms="none")
    with pytest.raises(serde.errors.SerdeError, match="nms='some'"):
        serde.load(model, inputs=SIX, nms="some")
