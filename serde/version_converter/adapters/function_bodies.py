"""Operators the standard defines by a function of other operators: emit that function's nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import onnx
from onnx import AttributeProto, helper, numpy_helper

from serde.errors import require
from serde.ir.builder import Builder
from serde.ir.graph import Graph, Tensor, Value
from serde.spec import onnx_library, schema
from serde.spec.inference import Type, from_proto, type_proto
from serde.spec.schema import CONSTANT_FORMS, Operator

from . import downgrades

Env = dict[str, "Value | None"]
TYPES = "types of a body's inputs"


def expand_function(op: str, g: Any, *inputs: Value | None, outputs: int = 1, **rest: Any) -> Any:
    """Emit the body of the function ``op`` is, at the opset that body is written in."""
    operator = schema.operator(op, g.current_opset + 1)
    call_attrs = {n: v for n, v in rest.items() if v is not None}
    function = _function(operator, inputs, call_attrs, outputs)
    require(function is not None, f"the standard spells {op} out for no such inputs")
    assert function is not None
    opset = next(o.version for o in function.opset_import if not o.domain)
    env: Env = dict.fromkeys(function.input)
    env.update(zip(function.input, inputs, strict=False))
    with g.at_opset(opset):
        for node in function.node:
            _emit(g, node, env, call_attrs)
    values = tuple(env[name] for name in function.output[:outputs])
    return values[0] if outputs == 1 else values


def _function(
    operator: Operator, inputs: Sequence[Value | None], attrs: Mapping[str, Any], outputs: int
) -> onnx.FunctionProto | None:
    names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
    protos = schema.to_proto_attributes(attrs)
    node = helper.make_node(operator.name, names, [f"o{n}" for n in range(outputs)], **protos)
    types = {
        n: type_proto(v.dtype, v.shape, v.container)
        for n, v in zip(names, inputs, strict=True)
        if v is not None
    }
    return onnx_library.function_body(operator, node, types)


def _emit(g: Any, node: onnx.NodeProto, env: Env, call_attrs: Mapping[str, Any]) -> None:
    if node.op_type == "Scan":
        call_attrs = {**call_attrs, TYPES: _scan_body_types(node, env)}
    attrs = {a.name: v for a in node.attribute if (v := _value(g, a, env, call_attrs)) is not None}
    if node.op_type == "Constant":
        ((form, data),) = attrs.items()
        values: Any = g.const(data, CONSTANT_FORMS.get(form), node.output[0])
    else:
        inputs = [env[name] if name else None for name in node.input]
        values = g[node.op_type](*inputs, outputs=len(node.output), **attrs)
    env.update(zip(node.output, values if isinstance(values, tuple) else (values,), strict=True))


def _scan_body_types(node: onnx.NodeProto, env: Env) -> list[Type]:
    """Types of the inputs of a Scan's body: of the states, and of parts along axis 0."""
    count = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
    values = [env[name] for name in node.input]
    return [
        Type(v.dtype, v.shape if i < len(values) - count else v.ranked_shape[1:])
        for i, v in enumerate(values)
        if v is not None
    ]


def _value(g: Any, proto: AttributeProto, env: Env, call_attrs: Mapping[str, Any]) -> Any:
    """The attribute's value; one that refers to the call's takes it from there."""
    if proto.ref_attr_name:
        return call_attrs.get(proto.ref_attr_name)
    if proto.type == AttributeProto.TENSOR:
        return Tensor.of(numpy_helper.to_array(proto.t))
    if proto.type == AttributeProto.GRAPH:
        return _graph(g, proto.g, env, call_attrs)
    return schema.to_python_attribute(helper.get_attribute_value(proto))


def _graph(g: Any, proto: onnx.GraphProto, outer: Env, call_attrs: Mapping[str, Any]) -> Graph:
    """A subgraph of a body, its nodes emitted at the target's opset."""
    inner: Builder = g.child(proto.name)
    env = dict(outer)
    types = dict(zip((i.name for i in proto.input), call_attrs.get(TYPES, ()), strict=False))
    for info in proto.input:
        env[info.name] = inner.input(info.name, *(types.get(info.name) or from_proto(info.type)))
    with inner.at_opset(g.current_opset):  # type: ignore[attr-defined]
        for node in proto.node:
            _emit(inner, node, env, call_attrs)
    return inner.build([v for o in proto.output if (v := env[o.name]) is not None])


# Operators whose own function is what they are written as, by the first opset that has them.
EXPANDED = {
    11: "DynamicQuantizeLinear",
    12: "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    14: "HardSwish",
    15: "Bernoulli",
    17: "BlackmanWindow HammingWindow HannWindow",
    18: "Mish",
    23: "RotaryEmbedding",
    24: "Swish",
    27: "CausalConvWithState LinearAttention",
    28: "SwiGLU",
}
for _version, _ops in EXPANDED.items():
    for _op in _ops.split():
        downgrades[_version](_op)(partial(expand_function, _op))
