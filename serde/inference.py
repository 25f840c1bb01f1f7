"""Output types of one node, from ``onnx.shape_inference.infer_node_outputs``.

Results are kept by operator, attributes and input types, so a layer that repeats costs one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import onnx
from onnx import helper, numpy_helper, shape_inference

from serde import symbolic
from serde.errors import ConversionError
from serde.graph import AttrRef, DType, Graph, Shape, Tensor, Value
from serde.schema import ELEMENT_CODES, ELEMENT_TYPES, Operator

SMALL = 1024  # constants up to this many elements take part in shape inference
MEMO = 20_000  # results kept
RANK = 64  # the highest rank believed; a hostile model can infer any
# Operators whose output has the shape their second (or first) input spells out.
SPELLED_SHAPE = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Tile": 1}


class Type(NamedTuple):
    """What inference knows of one value."""

    dtype: DType | None
    shape: Shape | None
    wrap: tuple[str, ...] = ()


UNKNOWN = Type(None, None)
_memo: dict[Any, tuple[Type, ...]] = {}


def infer(
    operator: Operator,
    opset: int,
    inputs: tuple[Value | None, ...],
    attrs: Mapping[str, Any],
    outputs: int,
) -> tuple[Type, ...]:
    """Types of the outputs of one node; refuses what the standard refuses."""
    special = BODIES.get(operator.name)
    if special is not None:
        return _padded(special(inputs, attrs, outputs), outputs)
    if any(isinstance(v, (Graph, AttrRef)) for v in attrs.values()):
        return (UNKNOWN,) * outputs
    key = (operator.name, operator.since, outputs, _attr_key(attrs), *map(_input_key, inputs))
    found = _memo.get(key)
    if found is None:
        if len(_memo) >= MEMO:
            _memo.clear()
        found = _memo[key] = _ask(operator, opset, inputs, attrs, outputs)
    if operator.name in SPELLED_SHAPE:
        return (_spelled(operator.name, inputs, attrs, found[0]), *found[1:])
    return found


def _attr_key(attrs: Mapping[str, Any]) -> Any:
    return tuple(
        (n, repr(v.load().tolist()) if isinstance(v, Tensor) else v, type(v))
        for n, v in sorted(attrs.items())
    )


def _input_key(value: Value | None) -> Any:
    if value is None:
        return None
    data = None
    if value.tensor is not None and value.tensor.size <= SMALL:
        data = _data(value.tensor)
    return (value.dtype, value.shape, value.wrap, data)


def _data(tensor: Tensor) -> bytes | None:
    """The contents inference may want: integers and scalars (sizes, axes), never weights."""
    if tensor.dtype is DType.STRING or tensor.dtype.bits < 8:
        return None
    if tensor.dtype.kind in "iu" or tensor.size <= 8:
        return tensor.load().tobytes()
    return None


def _ask(
    operator: Operator,
    opset: int,
    inputs: tuple[Value | None, ...],
    attrs: Mapping[str, Any],
    outputs: int,
) -> tuple[Type, ...]:
    names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
    node = helper.make_node(
        operator.name, names, [f"o{n}" for n in range(outputs)], **_proto_attrs(attrs)
    )
    known = [(n, v) for n, v in zip(names, inputs, strict=True) if v is not None]
    data = {
        n: numpy_helper.from_array(v.tensor.load(), n)
        for n, v in known
        if v.tensor is not None and v.tensor.size <= SMALL and _data(v.tensor) is not None
    }
    types = {n: type_proto(v.dtype, v.shape, v.wrap) for n, v in known}
    try:
        found = shape_inference.infer_node_outputs(
            operator.raw, node, types, data, opset_imports=[helper.make_opsetid("", opset)]
        )
    except shape_inference.InferenceError as error:
        raise ConversionError(f"{operator.name} rejects its inputs: {_short(error)}") from error
    return tuple(from_proto(found.get(f"o{n}")) for n in range(outputs))


def _short(error: Exception) -> str:
    return str(error).split("] ", 1)[-1].strip()


def _proto_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        n: numpy_helper.from_array(v.load()) if isinstance(v, Tensor) else v
        for n, v in attrs.items()
    }


@cache
def type_proto(
    dtype: DType | None, shape: Shape | None, wrap: tuple[str, ...] = ()
) -> onnx.TypeProto:
    """The TypeProto of a tensor, or of what is wrapped around it; not to be changed."""
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
        if not tensor.HasField("shape") or len(tensor.shape.dim) > RANK:
            return Type(dtype, None, wrap)
        return Type(dtype, tuple(_dim(d) for d in tensor.shape.dim), wrap)
    if kind == "map_type":
        inner = from_proto(proto.map_type.value_type, depth + 1)
        key = ELEMENT_TYPES[proto.map_type.key_type].value
        return inner._replace(wrap=(f"map:{key}", *inner.wrap))
    inner = from_proto(getattr(proto, kind).elem_type, depth + 1)
    return inner._replace(wrap=(kind.removesuffix("_type"), *inner.wrap))


def _dim(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None


def _spelled(
    op: str, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any], said: Type
) -> Type:
    """Improve on ONNX's inference where a computed shape is known in part."""
    where = SPELLED_SHAPE[op]
    wanted = symbolic.elements_of(inputs[where]) if len(inputs) > where else None
    x = inputs[0]
    if wanted is None or x is None:
        return said
    shape: Shape | None
    if op == "ConstantOfShape":
        shape = wanted
    elif x.shape is None:
        return said
    elif op == "Expand":
        shape = _broadcast(x.shape, wanted)
    elif op == "Tile":
        if len(wanted) != len(x.shape):
            return said
        shape = tuple(symbolic.combine("*", d, n) for d, n in zip(x.shape, wanted, strict=True))
    else:
        shape = _reshaped(x.shape, wanted, bool(attrs.get("allowzero", 0)))
    if said.shape is None or shape is None or len(said.shape) != len(shape):
        return said._replace(shape=shape or said.shape)
    return said._replace(shape=tuple(_better(a, b) for a, b in zip(said.shape, shape, strict=True)))


def _better(a: Any, b: Any) -> Any:
    return b if a is None or (isinstance(b, int) and not isinstance(a, int)) else a


def _reshaped(shape: Shape, wanted: Shape, allowzero: bool) -> Shape | None:
    """Dimensions of a Reshape: 0 copies, -1 is what is left over."""
    out = [
        shape[i] if d == 0 and not allowzero and i < len(shape) else d for i, d in enumerate(wanted)
    ]
    if -1 not in out:
        return tuple(out)
    place = out.index(-1)
    rest, left = [d for i, d in enumerate(out) if i != place], list(shape)
    for dim in list(rest):  # cancel what stands on both sides, names first
        if dim is not None and dim in left:
            left.remove(dim)
            rest.remove(dim)
    above, below = symbolic.product(tuple(left)), symbolic.product(tuple(rest))
    exact = isinstance(above, int) and isinstance(below, int)
    out[place] = above if below == 1 else symbolic.combine("/", above, below)
    if exact and below == 0:
        out[place] = None
    return tuple(out)


def _broadcast(a: Shape, b: Shape) -> Shape:
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b, strict=True)
    return tuple(_wider(x, y) for x, y in pairs)


def _wider(x: Any, y: Any) -> Any:
    if x == 1:
        return y
    if y == 1 or x == y:
        return x
    if isinstance(x, int):
        return x
    return y if isinstance(y, int) else None


def merge(a: Type, b: Type) -> Type:
    """What is true of a value that is ``a`` on one path and ``b`` on another."""
    dtype = a.dtype if a.dtype is b.dtype else None
    wrap = a.wrap if a.wrap == b.wrap else ()
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Type(dtype, None, wrap)
    dims = (x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
    return Type(dtype, tuple(dims), wrap)


def of(value: Value) -> Type:
    """The type a value carries."""
    return Type(value.dtype, value.shape, value.wrap)


def _if(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    pairs = zip(attrs["then_branch"].outputs, attrs["else_branch"].outputs, strict=True)
    return [merge(of(a), of(b)) for a, b in pairs]


def _loop(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    body = attrs["body"]
    carried = len(inputs) - 2
    found = [
        merge(of(initial), of(final)) if initial is not None else of(final)
        for initial, final in zip(inputs[2:], body.outputs[1:], strict=False)
    ]
    return found + [_stacked(of(v), None, 0) for v in body.outputs[1 + carried :]]


def _scan(inputs: Any, attrs: Mapping[str, Any], outputs: int) -> list[Type]:
    body, scanned = attrs["body"], attrs["num_scan_inputs"]
    states = len(inputs) - scanned
    found = [of(v) for v in body.outputs[:states]]
    axes = attrs.get("scan_output_axes") or (0,) * (len(body.outputs) - states)
    length = None
    first, axis = inputs[states], (attrs.get("scan_input_axes") or (0,))[0]
    if (
        first is not None
        and first.shape is not None
        and -len(first.shape) <= axis < len(first.shape)
    ):
        length = first.shape[axis]
    return found + [
        _stacked(of(v), length, a) for v, a in zip(body.outputs[states:], axes, strict=True)
    ]


def _stacked(type_: Type, length: Any, axis: int) -> Type:
    if type_.shape is None or type_.wrap:
        return type_
    at = axis if axis >= 0 else axis + len(type_.shape) + 1
    return type_._replace(shape=(*type_.shape[:at], length, *type_.shape[at:]))


def _padded(found: list[Type], outputs: int) -> tuple[Type, ...]:
    return tuple(found[:outputs]) + (UNKNOWN,) * (outputs - len(found))


BODIES = {"If": _if, "Loop": _loop, "Scan": _scan}
