"""Output types of one node, from onnx's shape inference.

Results are kept by operator, attributes and input types, so a layer that repeats costs one look-up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import onnx
from onnx import helper, numpy_helper

from serde.errors import ConversionError, require
from serde.ir.geometry import check_sizes
from serde.ir.graph import AttrRef, DType, Graph, Node, Shape, Tensor, Value
from serde.spec import onnx_library, schema, shape_functions, static_shapes
from serde.spec.einsum_equation import infer_shape
from serde.spec.memo import LONGEST, MOST, memoize, number_attributes
from serde.spec.node_checks import check_operands
from serde.spec.onnx_library import MOST_SIZE, RANK, sizes_of
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES, Operator
from serde.spec.traits import WINDOWS

SMALL = 1024  # constants up to this many elements take part in shape inference
UNNAMED = "?"  # how exporters write a size without a name: two of them are no one size
LONGEST_NAME = 256  # letters of a dimension's name; longer ones are not followed
# Functions ONNX infers no shape for.
SAME_SHAPE = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
FLOAT_DATA = frozenset("OneHot Range Resize Upsample".split())  # inference reads their floats
FLOATS = 8  # of them, at most
# What onnx says of types.
_UNSUPPORTED = re.compile(r"(\S+) typestr: \S+, has unsupported type: (\S+)")
_INCONSISTENT = re.compile(r"(\S+) has inconsistent type (\S+)")


class Type(NamedTuple):
    """What inference knows of one value."""

    dtype: DType | None
    shape: Shape | None
    container: tuple[str, ...] = ()


UNKNOWN = Type(None, None)
_memo: dict[Any, tuple[Type, ...]] = {}
_nodes: dict[Any, onnx.NodeProto] = {}


def infer(
    operator: Operator,
    opset: int,
    inputs: tuple[Value | None, ...],
    attrs: Mapping[str, Any],
    outputs: int,
) -> tuple[Type, ...]:
    """Types of the outputs of one node; refuses what the standard refuses."""
    if operator.name in ("GreaterOrEqual", "LessOrEqual") and operator.since < 16:
        return infer(schema.operator("Less", opset), opset, inputs, attrs, outputs)  # onnx does not
    batched = operator.name == "Scan" and operator.since < 9  # its outputs have a batch in front
    special = None if batched else BODIES.get(operator.name)
    if special is not None:
        return _pad_types(special(inputs, attrs, outputs), outputs)
    if any(isinstance(v, (Graph, AttrRef)) for v in attrs.values()):
        return (UNKNOWN,) * outputs
    static = static_shapes.infer_static(operator, inputs, attrs, outputs)
    if static is not None:
        return (Type(*static),)
    op, number = operator.name, number_attributes(attrs)
    call = (op, outputs, _attr_key(attrs) if number is None else number)
    key = (call, operator.since, *input_keys(op, inputs))
    is_kept = call[2] is not None
    types = _memo.get(key) if is_kept else None
    if types is None:
        names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
        nodes, memo = (_nodes, _memo) if is_kept else ({}, {})
        node = memoize(nodes, (call, *names), lambda: _node(op, names, attrs, outputs))
        check_operands(operator, inputs, attrs)
        types = memoize(memo, key, lambda: _infer_with_onnx(operator, opset, inputs, node))
    if operator.name in SAME_SHAPE and inputs[0] is not None:
        return (types[0]._replace(shape=inputs[0].shape), *types[1:])
    if operator.name == "Einsum":
        return (types[0]._replace(shape=infer_shape(attrs["equation"], inputs)),)
    if operator.name in WINDOWS:
        shape = shape_functions.refine_window(operator.name, inputs, attrs, types[0].shape)
    elif operator.name == "STFT":
        shape = shape_functions.refine_stft(inputs, attrs, types[0].shape)
    elif operator.name in shape_functions.SHAPE_FUNCTION_OPS:
        shape = shape_functions.refine_shape(operator.name, inputs, attrs, types[0].shape)
    else:
        return types
    check_sizes(f"the result of {operator.name}", shape or ())
    return tuple(f._replace(shape=shape) for f in types)  # MaxPool and TopK give two


def _attr_key(attrs: Mapping[str, Any]) -> Any:
    """A key of attributes, None where they are too long to be kept."""
    if any(_length(value) > LONGEST for value in attrs.values()):
        return None
    return tuple([(n, _hashable(v), type(v)) for n, v in attrs.items()])


def _length(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.size
    return len(value) if isinstance(value, (tuple, str)) else 0


def _hashable(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.dtype, value.shape, repr(value.load().ravel().tolist())
    return value.SerializeToString() if isinstance(value, onnx.TypeProto) else value


def input_keys(op: str, inputs: Sequence[Value | None]) -> list[Any]:
    """What inference of an operator looks at of its operands."""
    return [
        v and (v.dtype, v.shape, v.container, v.tensor and _contents(op, v.tensor)) for v in inputs
    ]


def _contents(op: str, tensor: Tensor) -> bytes | None:
    return tensor.load().tobytes() if _reads_contents(op, tensor) else None


def _reads_contents(op: str, tensor: Tensor) -> bool:
    """Whether inference may want the contents: integers (sizes, axes) and scales, never weights."""
    if tensor.dtype.kind not in "iub":
        return op in FLOAT_DATA and tensor.dtype.bits >= 8 and tensor.size <= FLOATS
    return tensor.dtype.bits >= 8 and tensor.size <= SMALL


def _node(op: str, names: list[str], attrs: Mapping[str, Any], outputs: int) -> onnx.NodeProto:
    out_names = [f"o{n}" for n in range(outputs)]
    try:
        protos = schema.to_proto_attributes({n: v for n, v in attrs.items() if v != ()})
        node = helper.make_node(op, names, out_names, **protos)
    except ValueError as error:  # an integer beyond 64 bits
        raise ConversionError(f"{op} rejects its attributes: {_shorten_message(error)}") from error
    node.attribute.extend(schema.make_empty_attribute(op, n) for n, v in attrs.items() if v == ())
    return node


def _infer_with_onnx(
    operator: Operator, opset: int, inputs: tuple[Value | None, ...], node: onnx.NodeProto
) -> tuple[Type, ...]:
    known = [(n, v) for n, v in zip(node.input, inputs, strict=True) if v is not None]
    data = {
        n: numpy_helper.from_array(v.array(), n)
        for n, v in known
        if v.tensor is not None and _reads_contents(operator.name, v.tensor)
    }
    types = {n: type_proto(v.dtype, v.shape, v.container) for n, v in known}
    if operator.name == "Resize":
        types |= _type_resize_sizes(node, inputs)
    try:
        protos = onnx_library.infer_node_types(operator, opset, node, types, data)
    except onnx_library.ERRORS as error:
        if any(v.dtype is None for _, v in known):
            return (UNKNOWN,) * len(node.output)  # of another domain's results nothing is known
        raise ConversionError(_explain(operator, _shorten_message(error))) from error
    except ValueError as error:
        if all(v.dtype is not None for _, v in known):
            raise ConversionError(f"{operator.name} rejects its inputs: {error}") from error
        return (UNKNOWN,) * len(node.output)  # onnx infers nothing from an unknown element type
    for proto in protos.values():
        check_sizes(f"the result of {operator.name}", sizes_of(proto))
    return tuple([from_proto(protos.get(n)) for n in node.output])


def infer_declared(operator: Operator, node: Node, inputs: Sequence[Value | None]) -> list[Type]:
    """What the standard tells of the outputs of a node of another of its domains."""
    names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
    attrs = {n: v for n, v in node.attrs.items() if not isinstance(v, Graph)}
    proto = _node(node.op, names, attrs, len(node.outputs))
    proto.domain = node.domain
    types = {n: type_proto(v.dtype, v.shape, v.container)
             for n, v in zip(names, inputs, strict=True) if v is not None}  # fmt: skip
    try:
        protos = onnx_library.infer_node_types(operator, operator.since, proto, types, {})
    except (*onnx_library.ERRORS, ConversionError, ValueError):
        protos = {}  # what is not inferred is as the file has it
    return [from_proto(protos.get(n)) for n in proto.output]


def _type_resize_sizes(
    node: onnx.NodeProto, inputs: tuple[Value | None, ...]
) -> dict[str, onnx.TypeProto]:  # fmt: skip
    """Types of the ``sizes`` operand of Resize: onnx takes an unknown length for 0."""
    axes = next((len(a.ints) for a in node.attribute if a.name == "axes"), None)
    shape = inputs[0].shape if inputs and inputs[0] is not None else None
    length = axes if axes or shape is None else len(shape)
    return {
        n: type_proto(v.dtype, None if length is None else (length,))
        for n, v in zip(node.input[3:], inputs[3:], strict=True)
        if v is not None and v.shape is not None and not isinstance((*v.shape, 0)[0], int)
    }


def _explain(operator: Operator, message: str) -> str:
    """Why an operator has no such operands: what onnx says of their types, as users call those."""
    if (match := _UNSUPPORTED.match(message)) is not None:
        name, kind = match.groups()
        formal = next((f for f in operator.raw.inputs if f.name == name), operator.raw.inputs[-1])
        choices = ", ".join(sorted(map(_call_type, formal.types)))
        return (
            f"{operator.name} takes no {_call_type(kind)} as {name!r}. It takes {choices}: cast it "
            "to one of these"
        )
    if (match := _INCONSISTENT.match(message)) is not None:
        name, kind = match.groups()
        return (
            f"{operator.name} takes operands of one type, and {name!r} is of {_call_type(kind)}, "
            "unlike another. Cast one of them"
        )
    return f"{operator.name} rejects its inputs: {message}"


def _call_type(text: str) -> str:
    """A type as users call it, of the standard's text: ``float32`` of ``tensor(float)``."""
    for outer, name in (("tensor(", ""), ("seq(", "sequence of "), ("optional(", "optional ")):
        if text.startswith(outer):
            return name + _call_type(text.removeprefix(outer).removesuffix(")"))
    return {"float": "float32", "double": "float64"}.get(text, text)


def _shorten_message(error: Exception) -> str:
    return str(error).split("] ", 1)[-1].strip()


@lru_cache(MOST)
def type_proto(
    dtype: DType | None, shape: Shape | None, wrap: tuple[str, ...] = ()
) -> onnx.TypeProto:
    """The TypeProto of a tensor, or of what is wrapped around it; not to be changed."""
    if shape is not None and any(isinstance(d, int) and d > MOST_SIZE for d in shape):
        shape = tuple([None if isinstance(d, int) and d > MOST_SIZE else d for d in shape])
    if not wrap:
        if dtype is None:
            return onnx.TypeProto()
        return helper.make_tensor_type_proto(ELEMENT_CODES[dtype], shape)
    outer, inner = wrap[0], wrap[1:]
    if outer == "sequence":
        return helper.make_sequence_type_proto(type_proto(dtype, shape, inner))
    if outer == "optional":
        return helper.make_optional_type_proto(type_proto(dtype, shape, inner))
    if outer == "sparse" and dtype is not None:
        return helper.make_sparse_tensor_type_proto(ELEMENT_CODES[dtype], shape)
    key = ELEMENT_CODES[DType(outer.removeprefix("map:"))]
    return helper.make_map_type_proto(key, type_proto(dtype, shape, inner))


def from_proto(proto: onnx.TypeProto | None, depth: int = 0) -> Type:
    """Read a TypeProto."""
    kind = proto.WhichOneof("value") if proto is not None else None
    if proto is None or kind is None or depth > 8:
        return UNKNOWN
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        wrap = ("sparse",) if kind == "sparse_tensor_type" else ()
        dtype = ELEMENT_TYPES.get(tensor.elem_type)
        if wrap and dtype is None:
            return UNKNOWN
        if not tensor.HasField("shape") or len(tensor.shape.dim) > RANK:
            return Type(dtype, None, wrap)
        return Type(dtype, tuple([_dim(d) for d in tensor.shape.dim]), wrap)
    if kind == "map_type":
        inner = from_proto(proto.map_type.value_type, depth + 1)
        key = ELEMENT_TYPES[proto.map_type.key_type].value
        return inner._replace(container=(f"map:{key}", *inner.container))
    if kind not in ("sequence_type", "optional_type"):
        return UNKNOWN
    inner = from_proto(getattr(proto, kind).elem_type, depth + 1)
    return inner._replace(container=(kind.removesuffix("_type"), *inner.container))


def _dim(dim: Any) -> int | str | None:
    size = dim.dim_value
    if size > 0 or dim.HasField("dim_value"):
        return size if size >= 0 else None  # type: ignore[no-any-return]
    name = dim.dim_param
    is_name = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name != UNNAMED
    return name if is_name else None


def merge(a: Type, b: Type) -> Type:
    """What is true of a value that is ``a`` on one path and ``b`` on another."""
    if a.container != b.container:
        return UNKNOWN
    dtype, wrap = a.dtype if a.dtype is b.dtype else None, a.container
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Type(dtype, None, wrap)
    dims = (x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
    return Type(dtype, tuple(dims), wrap)


def type_of(value: Value) -> Type:
    """The type a value carries."""
    return Type(value.dtype, value.shape, value.container)


def _body(attrs: Mapping[str, Any], name: str) -> Graph:
    body = attrs.get(name)
    require(isinstance(body, Graph), f"attribute {name!r} has to be a subgraph")
    return body  # type: ignore[return-value]


def _if(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    then, other = (_body(attrs, f"{branch}_branch").outputs for branch in ("then", "else"))
    require(len(then) == len(other), f"one branch has {len(then)} outputs, one {len(other)}")
    return [merge(type_of(a), type_of(b)) for a, b in zip(then, other, strict=True)]


def _loop(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    body = _body(attrs, "body")
    carried = len(inputs) - 2
    require(carried >= 0, "the number of turns and the condition are missing")
    _require_arity(body, 2 + carried, 1 + carried)
    types = [
        merge(type_of(initial), type_of(final))
        if initial is not None and initial.container == final.container
        else type_of(final)
        for initial, final in zip(inputs[2:], body.outputs[1:], strict=False)
    ]
    return types + [_stack_type(type_of(v), None, 0) for v in body.outputs[1 + carried :]]


def _scan(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    body, scanned = _body(attrs, "body"), attrs.get("num_scan_inputs", 0)
    states = len(inputs) - scanned
    require(scanned > 0 and states >= 0, f"num_scan_inputs is {scanned} of {len(inputs)} inputs")
    _require_arity(body, len(inputs), states)
    stacked = len(body.outputs) - states
    types = [type_of(v) for v in body.outputs[:states]]
    axes = attrs.get("scan_output_axes") or (0,) * stacked
    require(len(axes) == stacked, f"{len(axes)} scan_output_axes for {stacked} outputs")
    length = None
    first, axis = inputs[states], (attrs.get("scan_input_axes") or (0,))[0]
    if (
        first is not None
        and first.shape is not None
        and -len(first.shape) <= axis < len(first.shape)
    ):
        length = first.shape[axis]
    return types + [
        _stack_type(type_of(v), length, a) for v, a in zip(body.outputs[states:], axes, strict=True)
    ]


def _sequence_map(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    body = _body(attrs, "body")
    _require_arity(body, len(inputs), outputs)
    types = [type_of(v) for v in body.outputs]
    return [
        t if t.dtype is None else t._replace(container=("sequence", *t.container)) for t in types
    ]


def _require_arity(body: Graph, inputs: int, outputs: int) -> None:
    """Refuse a body of another number of inputs, or fewer outputs."""
    require(
        len(body.inputs) == inputs and len(body.outputs) >= outputs,
        f"a body of {len(body.inputs)} inputs and {len(body.outputs)} outputs where {inputs} and "
        f"at least {outputs} belong",
    )


def _stack_type(type_: Type, length: Any, axis: int) -> Type:
    if type_.shape is None or type_.container:
        return type_
    at = axis if axis >= 0 else axis + len(type_.shape) + 1
    return type_._replace(shape=(*type_.shape[:at], length, *type_.shape[at:]))


def _pad_types(types: list[Type], outputs: int) -> tuple[Type, ...]:
    return tuple(types[:outputs]) + (UNKNOWN,) * (outputs - len(types))


BODIES = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map}
