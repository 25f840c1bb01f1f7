"""The pages of results are what their records say."""

from __future__ import annotations

import pytest

from conformance import pages, record
from conformance.matrix import CELLS, cell_of
from conformance.onnx_nodes import framework_page, onnx_page
from conformance.operators import mxnet_page
from conformance.relay_corpus import page as corpus_page
from conformance.targets import Onnx

# Written by the modules whose runs they tell of, beside the pages of records.
OTHERS = {"index.md", "benchmarks.md", "relay-reading.md", "mxnet-kernels.md", "mxnet-releases.md"}
NARROW = {"onnx-nodes-constant/ncnn", "tflite-corpus/mxnet"}  # float32 only; no int16


@pytest.mark.parametrize("name", [n for n in pages.PAGES if pages.is_recorded(n)])
def test_page_is_current(name):
    """Run ``python -m conformance.pages`` after a change of records."""
    assert (pages.DOCS / name).read_text(encoding="utf-8") == "\n".join(pages.lines(name))


def test_every_page_of_results_has_a_writer():
    there = {p.name for p in (pages.DOCS / "results").glob("*.md")}
    assert there == OTHERS | {n.partition("/")[2] for n in pages.PAGES if n.startswith("results/")}


@pytest.mark.parametrize("name", [c for c in CELLS if record.path_of(c).exists()])
def test_rows_tell_their_outcomes(name):
    cell, rows = cell_of(name), record.rows(name)
    outcomes = {case: cell.outcomes(case, row) for case, row in rows.items()}
    assert all(o.kind in record.RANK for variants in outcomes.values() for o in variants.values())
    least = len(outcomes) // (3 if name in NARROW else 2)
    assert record.counts(outcomes)["right"] > least or not any(outcomes.values())


def test_node_tests_in_a_framework():
    ours = {"test_abs": "right", "test_acos": "right", "test_add": "refused: Add: a reason"}
    theirs = {"test_abs": "right", "test_acos": "wrong: off", "test_add": "not run: no kernel"}
    lines = list(framework_page(ours, theirs, "mxnet"))
    assert "| right | 2 | 1 |" in lines and "| wrong | 0 | 1 |" in lines
    assert "| Acos | 1 of 1 | 0 of 1, 1 wrong |" in lines
    assert "| Add | 0 of 1 | 0 of 1, 1 not run |" in lines
    assert "| 1 | Add: a reason |" in lines


def test_node_tests_and_models_in_onnx():
    models = {"light/a": "right", "simple/b": {"refused: why": "7-9", "right": "10-28"}}
    lines = list(onnx_page({"test_abs": "right"}, models))
    assert "| opset | node (1) | light (1) | simple (1) |" in lines
    assert (
        "| 9 | 1 of 1 | 1 of 1 | 0 of 1 |" in lines and "| 10 | 1 of 1 | 1 of 1 | 1 of 1 |" in lines
    )
    assert "* simple/b at 7-9: refused: why" in lines


def test_operators_written_back():
    rows = {"abs float32[2]": "right", "sin float32[0]": "refused: tensors without elements"}
    lines = list(mxnet_page(rows))
    assert "| right | 1 |" in lines
    assert "| refused | 1 | `sin` | tensors without elements, and MXNet's have some |" in lines


def test_the_corpus():
    assert "7" in Onnx.variants
    lines = list(corpus_page({"a": "right", "b": {"wrong: off": "7-13", "right": "14-28"}}))
    assert "| 13 | 1 | 0 | 0 | 1 |" in lines and "| 17 | 2 | 0 | 0 | 0 |" in lines
    assert "* off: `b` (7-13)" in lines and lines.count("None.") == 2
