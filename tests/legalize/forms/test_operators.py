"""Forms of operators without windows: what stands for them computes the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to_target
from serde.legalize.forms import operators as shared
from serde.legalize.target import Target, legalization_table
from serde.pipeline import load
from serde.spec import schema
from testing.onnx_live import run_model

OPSET = 21
LACKS = {
    "Clip": [shared.NO_BOUNDS, shared.COMPUTED_BOUNDS, shared.CROSSED_BOUNDS],
    "GatherND": [shared.BATCH_DIMS],
    "Max": [shared.ONE_OPERAND, shared.MORE_OPERANDS],
    "Mean": [shared.MEAN],
    "PRelu": [shared.SLOPES],
    "Pad": [shared.WRAP],
    "Reshape": [shared.ALLOW_ZERO],
    "Shrink": [shared.NEGATIVE_LAMBD],
    "Sum": [shared.ONE_OPERAND, shared.SUMMANDS],
}
TARGET = Target("t", OPSET, {op: {} for op in schema.names(OPSET)}, LACKS,
                legalization_table("none"))  # fmt: skip
X = np.random.default_rng(0).standard_normal((2, 3, 4), np.float32)
CASES = {  # the body, what the operator becomes, and other inputs
    "no bounds": ("y = Clip(x)", set(), {}),
    "computed bounds": ("y = Clip(x, a, b)", {"Max", "Min"}, {"a": np.array(-1, np.float32),
                                                              "b": np.array(0.5, np.float32)}),
    "batch_dims": ("y = GatherND<batch_dims = 1>(x, i)", None, {"i": np.int64([[0], [2]])}),
    "one operand": ("y = Max(x)", set(), {}),
    "three operands": ("y = Max(x, a, b)", {"Max"}, {"a": np.array(0, np.float32), "b": X[:, :1]}),
    "mean": ("y = Mean(x, a)", {"Add", "Div"}, {"a": X[::-1].copy()}),
    "slopes": ("y = PRelu(x, a)", None, {"a": np.float32([[0.1], [0.2], [0.3]])}),
    "lambd": ("y = Shrink<lambd = -0.5, bias = 0.1>(x)", None, {}),
    "sum": ("y = Sum(x, a, b)", {"Add"}, {"a": X[:1], "b": X}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_stands_for_a_form_computes_the_same(name):
    body, operators, others = CASES[name]
    feeds = {"x": X, **others}
    kinds = {"float32": "float", "int64": "int64"}
    shown = ", ".join(f"{kinds[v.dtype.name]}[{','.join(map(str, v.shape))}] {n}".replace("[]", "")
                      for n, v in feeds.items())  # fmt: skip
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": {OPSET}]> g ({shown}) => (float y) {{ {body} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    lowered = to_proto(lower_to_target(load(decode(model), format="onnx"), TARGET))
    if operators is not None:
        assert {n.op_type for n in lowered.graph.node} - {"Identity"} == operators
    np.testing.assert_allclose(run_model(model, feeds)[0], run_model(lowered, feeds)[0], 1e-5, 1e-6)
