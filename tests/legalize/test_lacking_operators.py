"""Targets without an operator: its decomposition ends, for each operator and version of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from serde.decompositions.table import add_decompositions
from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET
from serde.legalize.convert import lower_to_target
from serde.legalize.target import LOWEST_WRITTEN, Target, legalization_table
from serde.pipeline import load
from serde.spec import schema
from serde.version_converter.adapters import downgrades
from testing.node_cases import all_cases
from testing.onnx_live import run_model

SAMPLING = [
    (mode, coordinates, nearest)
    for mode in ("nearest", "linear", "cubic")
    for coordinates in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")
    for nearest in (("floor", "round_prefer_floor") if mode == "nearest" else ("floor",))
]


def make_resize(mode: str, coordinates: str, nearest: str, scale: float) -> onnx.ModelProto:
    """A Resize of images by one factor."""
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    scales = helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, scale, scale])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in
             (("x", [1, 2, 6, 6]), ("y", None))]  # fmt: skip
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **attrs)
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [scales])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def make_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Node tests of one node; Resize in ways that older opsets have, which they leave out."""
    for case in all_cases():
        domains = {i.domain for i in case.model.opset_import}
        if domains <= {"", "ai.onnx"} and len(case.model.graph.node) == 1:
            yield case.model.graph.node[0].op_type, case.model
    for how in SAMPLING:
        for scale in (2.0, 0.5):
            yield "Resize", make_resize(*how, scale)


def make_target(op: str, opset: int, is_plain: bool) -> Target:
    """All operators of an opset but one."""
    supports = {name: {} for name in schema.names(opset) if name != op}
    table = legalization_table("none")
    table = table if is_plain else add_decompositions(table, supports)
    return Target("t", opset, supports, legalizations=table)


@pytest.mark.parametrize("opset, is_plain", [(11, True), (21, False)])
def test_every_decomposition_ends(opset, is_plain):
    models = defaultdict(list)
    for op, model in make_models():
        models[op].append(model)
    endless = []
    for op, cases in models.items():
        target = make_target(op, opset, is_plain)
        for model in cases:
            try:
                graph = load(decode(model), format="onnx")
                graph = lower_to_target(graph, target)
                assert op not in {n.op for n in graph.nodes if not n.domain}
            except SerdeError as error:
                if "does not end" in str(error):
                    endless.append(op)
    assert endless == []


@pytest.mark.parametrize("scale", [2.0, 0.5])
@pytest.mark.parametrize("how", SAMPLING)
def test_resize_is_written_without_it(how, scale):
    model = make_resize(*how, scale)
    graph = lower_to_target(load(decode(model), format="onnx"), make_target("Resize", 17, True))
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6), np.float32)
    expected, outputs = (run_model(m, {"x": x})[0] for m in (model, to_proto(graph)))
    np.testing.assert_allclose(outputs, expected, 1e-4, 1e-5)


def test_operators_that_the_standard_dropped_are_decomposed_at_their_first_version():
    """Others would become what replaced them again."""
    dropped = {op for opset in range(1, IR_OPSET) for op in schema.names(opset)}
    dropped -= {*schema.names(IR_OPSET)}
    assert dropped == {"Scatter", "Upsample"}
    for op in dropped:
        assert op in downgrades[max(LOWEST_WRITTEN, schema.first_version(op))]
