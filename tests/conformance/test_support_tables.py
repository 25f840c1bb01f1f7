"""The text of support tables: paragraphs of element types, and the operators that have these."""

from __future__ import annotations

from importlib import import_module

import pytest

from conformance import litert_kernels
from conformance.operator_support import join_table
from serde.formats.onnx.consumers.support_table import parse_table, split_table
from serde.formats.tflite import support_table
from serde.ir.graph import DType
from tests.tflite.litert_live import why_not


def test_types_and_operators_may_take_several_lines():
    table = parse_table("\n: Cast\nT=f4,i8\n  Tind=i8: Gather\n  Slice\n")
    types = {"T": {DType.FLOAT32, DType.INT64}, "Tind": {DType.INT64}}
    assert table == {"Cast": {}, "Gather": types, "Slice": types}


MEASURED = ("mnn", "ncnn", "onnxruntime", "openvino", "relax", "tract")


@pytest.mark.parametrize("name", MEASURED)
def test_tables_are_as_they_are_written(name):
    text = import_module(f"serde.formats.onnx.consumers.{name}.support_table").MEASURED
    assert f"\n{join_table(split_table(text))}\n" == text


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
def test_the_table_of_litert_is_current():
    ops = litert_kernels.list_operators()[::4]
    kernels = support_table.parse_table(support_table.MEASURED)
    float32 = frozenset({DType.FLOAT32})
    measured = {op: frozenset(map(DType, t.split())) for op, t in litert_kernels.measure(ops) if t}
    assert {op: kernels.get(op, float32) for op in ops} == {
        op: measured.get(op, float32) for op in ops
    }
