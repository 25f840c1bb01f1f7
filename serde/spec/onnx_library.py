"""Calls of onnx's C++ code: the only module that makes them.

That code trusts what it reads: a negative size ends the process, and a count of 10⁹ makes room for
as many elements. ``check_node`` looks at a node before each call and lists what is right of it:
the number of operands, ranks, sizes, and the kind of each attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from onnx import checker, helper, numpy_helper, shape_inference

from serde.errors import require
from serde.ir.geometry import check_sizes
from serde.spec.schema import Operator

RANK = 64  # the highest rank believed; a hostile model can infer any
MOST_SIZE = (1 << 63) - 1  # of a dimension
MOST_NESTED = 10  # containers in containers
MOST_OPERANDS = 1 << 16  # and outputs
# What onnx raises, where the standard refuses and where its code did not think of it.
ERRORS = (
    shape_inference.InferenceError, checker.ValidationError, IndexError, RuntimeError,
    OverflowError, MemoryError,
)  # fmt: skip
TENSORS = ("tensor_type", "sparse_tensor_type")
Types = Mapping[str, onnx.TypeProto]
Operands = Sequence[tuple["onnx.TypeProto | None", "onnx.TensorProto | None"]]
# The least and the greatest value of attributes whose value is used as an index or a count.
BOUNDS = {"axis": (-RANK - 1, RANK), "batch_dims": (0, RANK)}


def infer_node_types(
    operator: Operator, opset: int, node: onnx.NodeProto, types: Types,
    tensors: Mapping[str, onnx.TensorProto],
) -> Types:  # fmt: skip
    """Types of the outputs of ``node`` by name, of operands of ``types`` and constant ``tensors``.

    Raises:
        ConversionError: for a node that onnx cannot be asked about.
        ERRORS: where onnx refuses it.
    """
    check_node(operator, node, types, tensors)
    imports = [helper.make_opsetid(node.domain, opset)]
    return shape_inference.infer_node_outputs(  # type: ignore[no-any-return]
        operator.raw, node, dict(types), dict(tensors), opset_imports=imports
    )


def infer_model_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the types of its values, which a runtime is to run: no node is looked at."""
    return shape_inference.infer_shapes(model)


def function_body(
    operator: Operator, node: onnx.NodeProto, types: Types
) -> onnx.FunctionProto | None:
    """The function that the standard defines ``node`` as, of operands of ``types``.

    Raises:
        ConversionError: for a node that onnx cannot be asked about.
    """
    check_node(operator, node, types, {})
    raw: Any = operator.raw  # its type stub lacks these members
    if raw.has_function:
        version = max(v for v in raw.function_opset_versions if v >= operator.since)
        return _parse_function(raw.get_function_with_opset_version(version))
    version = max(raw.context_dependent_function_opset_versions)
    messages = [types[n].SerializeToString() if n else b"" for n in node.input]
    body = raw.get_context_dependent_function_with_opset_version(
        version, node.SerializeToString(), messages
    )
    return _parse_function(body) if body else None


def _parse_function(body: bytes) -> onnx.FunctionProto:
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def check_node(
    operator: Operator, node: onnx.NodeProto, types: Types, tensors: Mapping[str, onnx.TensorProto]
) -> None:
    """Refuse a node that onnx's code may not end well with.

    Raises:
        ConversionError: naming the operand or the attribute.
    """
    counts = len(node.input), len(node.output)
    require(max(counts) <= MOST_OPERANDS, f"has {counts[0]} inputs and {counts[1]} outputs")
    require(operator.takes(counts[0]), f"{operator.name} takes no {counts[0]} inputs")
    for at, name in enumerate(node.input):
        operand = f"operand {at} ({operator.input(at).name})"
        if name in types:
            check_type(operand, types[name])
        if name in tensors:
            check_sizes(operand, tensors[name].dims)
    for attribute in node.attribute:
        _check_attribute(operator, attribute)
    if (check := CHECKS.get(operator.name)) is not None:
        operands = [(types.get(name), tensors.get(name)) for name in node.input]
        check(node, operands, {a.name: helper.get_attribute_value(a) for a in node.attribute})


def check_type(name: str, type_: onnx.TypeProto, least: int = 0) -> None:
    """Refuse a type with a size that is less than ``least``, with more axes than there can be.

    Raises:
        ConversionError: with ``name``, as a message calls the value.
    """
    sizes = sizes_of(type_)
    require(len(sizes) <= RANK, f"{name} has {len(sizes)} axes, and at most {RANK} are supported")
    check_sizes(name, sizes, least)


def sizes_of(type_: onnx.TypeProto) -> list[int | str]:
    """The sizes of a tensor, or of the tensor inside of containers that nest as deep as is read."""
    for _ in range(MOST_NESTED):
        kind = type_.WhichOneof("value")
        if kind in ("sequence_type", "optional_type"):
            type_ = getattr(type_, kind).elem_type
        elif kind == "map_type":
            type_ = type_.map_type.value_type
        else:
            dims = getattr(type_, kind).shape.dim if kind in TENSORS else ()
            return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in dims]
    return []


def _check_attribute(operator: Operator, attribute: onnx.AttributeProto) -> None:
    declared: Any = operator.raw.attributes.get(attribute.name)  # its type stub lacks names
    require(declared is not None, f"{operator.name} has no attribute {attribute.name!r}")
    kinds = onnx.AttributeProto.AttributeType
    kind = str(declared.type.name)
    require(
        kinds.Name(attribute.type) == kind,
        f"attribute {attribute.name!r} of {operator.name} has to be of kind {kind}",
    )
    least, most = BOUNDS.get(attribute.name, (0, 0))
    if attribute.name in BOUNDS and kind == "INT":
        require(least <= attribute.i <= most, f"{attribute.name}={attribute.i}")
    if kind == "TENSOR":
        check_sizes(f"attribute {attribute.name!r}", attribute.t.dims)
    elif kind == "TYPE_PROTO":
        check_type(f"attribute {attribute.name!r}", attribute.tp)


def _check_expand(node: onnx.NodeProto, operands: Operands, attrs: Mapping[str, Any]) -> None:
    type_ = operands[1][0] if len(operands) > 1 else None
    sizes = sizes_of(type_)[:1] if type_ is not None else []
    require(all(isinstance(n, str) or n <= RANK for n in sizes), f"a shape of {sizes} sizes")


def _check_resize(node: onnx.NodeProto, operands: Operands, attrs: Mapping[str, Any]) -> None:
    tensor = operands[3][1] if len(operands) > 3 else None
    if tensor is not None:
        check_sizes("the result of Resize", numpy_helper.to_array(tensor).ravel().tolist())


def _check_split(node: onnx.NodeProto, operands: Operands, attrs: Mapping[str, Any]) -> None:
    count = attrs.get("num_outputs", len(node.output))
    require(count == len(node.output), f"num_outputs for {len(node.output)} outputs")


def _check_einsum(node: onnx.NodeProto, operands: Operands, attrs: Mapping[str, Any]) -> None:
    equation = attrs.get("equation", b"").decode("utf-8", "replace").replace(" ", "")
    sides = equation.split("->")
    terms = [*sides[0].split(","), *sides[1:]]
    letters = "".join(t.replace("...", "", 1) for t in terms)
    is_equation = len(sides) <= 2 and letters.isascii() and (letters.isalpha() or not letters)
    require(is_equation, f"the equation {equation[:80]!r} is none")
    most = max(map(len, terms))
    require(most <= RANK + 3, f"the equation names {most} axes of one operand")


# What else onnx 1.23 crashes on, makes boundless room for, or never ends with.
CHECKS: Mapping[str, Callable[[onnx.NodeProto, Operands, Mapping[str, Any]], None]] = {
    "Einsum": _check_einsum,
    "Expand": _check_expand,
    "Resize": _check_resize,
    "Split": _check_split,
}
