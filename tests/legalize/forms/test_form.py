"""Forms that targets lack: none is left by its rewrite, so that every conversion ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import onnx
import pytest
from onnx import TensorProto, helper

from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.tflite import from_ir as tflite
from serde.formats.torch import from_ir as torch
from serde.ir.graph import DType, Value
from serde.legalize.convert import lower_to_target
from serde.legalize.forms.form import Call, Form, join_forms, require_sizes
from serde.legalize.target import Target, legalization_table
from serde.pipeline import load
from serde.plugins.targets import consumer_names, get_consumer
from testing.node_cases import all_cases

CONSUMERS = {name: get_consumer(name).get_target() for name in consumer_names()}
TARGETS = {
    **{name: target for name, target in CONSUMERS.items() if target and target.lacks},
    "tflite": tflite.tflite_target(integers=True), "torch": torch.torch_target(),
}  # fmt: skip
POOLS: dict[str, list[dict]] = {
    "AveragePool": [{"count_include_pad": 0}, {"count_include_pad": 1}],
    "LpPool": [{"p": 3}],
    "MaxPool": [{}, {"outputs": 2}, {"outputs": 2, "storage_order": 1}],
}
PADS = {"none": (0, 0), "even": (1, 1), "uneven": (1, 0), "wide": (2, 2)}


def make_pools() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Pools in all their configurations."""
    axes = product(POOLS, (1, 2, 3), (1, 2), PADS.values(), (0, 1))
    for op, n, gap, (begin, end), ceil_mode in axes:
        for form in POOLS[op]:
            attrs = {
                "kernel_shape": [3] * n, "strides": [2] * n, "dilations": [gap] * n,
                "pads": [begin] * n + [end] * n, "ceil_mode": ceil_mode,
            }  # fmt: skip
            attrs |= {k: v for k, v in form.items() if k != "outputs"}
            outputs = ["y", "i"][: form.get("outputs", 1)]
            node = helper.make_node(op, ["x"], outputs, **attrs)
            x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2] + [8] * n)
            kinds = (TensorProto.FLOAT, TensorProto.INT64)
            results = [helper.make_tensor_value_info(o, kind, None)
                       for o, kind in zip(outputs, kinds, strict=False)]  # fmt: skip
            graph = helper.make_graph([node], "g", [x], results)
            yield op, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def make_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Node tests of one node, and pools."""
    yield from make_pools()
    for case in all_cases():
        domains = {i.domain for i in case.model.opset_import}
        if domains <= {"", "ai.onnx"} and len(case.model.graph.node) == 1:
            yield case.model.graph.node[0].op_type, case.model


def watch(form: Form, seen: list[str]) -> Form:
    """The form with a rewrite that lists nodes which have it."""

    def rewrite(g, call):
        mark = len(g.nodes)
        result = form.rewrite(g, call)
        for node in g.nodes[mark:]:
            again = Call(node.op, node.inputs, node.attrs, len(node.outputs), node.outputs, g)
            if node.op == call.op and form.has(again):
                seen.append(f"{node.op} with {form.what}: {dict(call.attrs)}")
        return result

    return form if form.rewrite is None else form._replace(rewrite=rewrite)


@pytest.mark.parametrize("name", TARGETS)
def test_no_rewrite_leaves_its_form(name):
    target, seen = TARGETS[name], list[str]()
    lacks = {op: [watch(form, seen) for form in forms] for op, forms in target.lacks.items()}
    watched, rewritten = replace(target, lacks=lacks), 0
    for op, model in make_models():
        if op not in lacks:
            continue
        try:
            graph = load(decode(model), format="onnx")
            lower_to_target(graph, watched)
            rewritten += 1
        except SerdeError as error:
            assert "does not end" not in str(error)
    assert rewritten > (20 if len(lacks) > 1 else 3)
    assert seen == []


def test_the_first_form_that_a_call_has_decides():
    order: list[str] = []

    def note(name, rewrite):
        def has(call):
            order.append(name)
            return name != "none"

        return Form(name, has, rewrite, "Leave it out")

    def stand_in(g, call):
        return g.Neg(call.x)

    forms = [note("none", stand_in), note("refused", None), note("later", stand_in)]
    target = Target("t", 21, lacks={"Relu": forms}, supports={"Relu": {}, "Neg": {}})
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    with pytest.raises(SerdeError, match="t has no Relu with refused. Leave it out"):
        lower_to_target(load(decode(model), format="onnx"), target)
    assert "later" not in order


def test_forms_of_tables_are_joined_in_order():
    one, two = Form("one", lambda call: True), Form("two", lambda call: True)
    assert join_forms({"Relu": [one]}, {"Relu": [two], "Neg": [one]}) == {
        "Relu": [one, two], "Neg": [one]
    }  # fmt: skip


def test_sizes_by_name_are_told_by_axis():
    (form,) = require_sizes("X", [1])
    named = Value("x", DType.FLOAT32, ("N", 3))
    assert not form.has(Call("Relu", (named,), {}))
    assert form.has(Call("Relu", (Value("x", DType.FLOAT32, (3, "N")),), {}))
    assert form.has(Call("Relu", (Value("x", DType.FLOAT32, None),), {}))


def test_a_target_has_its_own_rules_after_the_forms():
    table = legalization_table("own")
    table("Relu")(lambda g, x: g.Max(x, 0.0))
    form = Form("vectors", lambda call: call.x.rank == 1, lambda g, call: g.Abs(call.x))
    target = Target("t", 21, {"Abs": {}, "Max": {}}, {"Relu": [form]}, table)
    for shape, op in (("2", "Abs"), ("2,2", "Max")):
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 21]> g (float[{shape}] x) => (float[{shape}] y)'
            " { y = Relu(x) }"
        )
        graph = lower_to_target(load(decode(model), format="onnx"), target)
        assert [n.op for n in graph.nodes] == [op]
