"""What the ONNX standard says of an operator: the only user of ``onnx.defs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from serde.errors import ConversionError, MissingDependency, UnsupportedOp
from serde.ir.graph import IR_OPSET, AttrRef, DType, Graph, Tensor

if defs.onnx_opset_version() < IR_OPSET:
    raise MissingDependency(
        f"onnx {onnx.__version__} knows opsets up to {defs.onnx_opset_version()}, and serde needs "
        f"{IR_OPSET}: pip install -U onnx"
    )

KEPT = 1 << 14  # answers about operators by name: files may name any

# The attributes a Constant may hold its value in, and the element types they imply.
CONSTANT_FORMS = {
    "value_float": DType.FLOAT32,
    "value_floats": DType.FLOAT32,
    "value_int": DType.INT64,
    "value_ints": DType.INT64,
    "value_string": DType.STRING,
    "value_strings": DType.STRING,
}


class _Codes(dict[int, DType]):
    """Element types by ONNX's codes; a node that names another code cannot be converted."""

    def __missing__(self, code: int) -> DType:
        raise ConversionError(f"{code} is the code of no element type")


# Element types by their names in schemas: tensor(float).
DTYPES_BY_NAME = {d.name.lower(): d for d in DType}
DTYPES_BY_NAME |= {"float": DType.FLOAT32, "double": DType.FLOAT64}
ELEMENT_TYPES: Mapping[int, DType] = _Codes(
    {
        code: DTYPES_BY_NAME[name.lower()]
        for name, code in onnx.TensorProto.DataType.items()
        if name.lower() in DTYPES_BY_NAME
    }
)
ELEMENT_CODES: Mapping[DType, int] = MappingProxyType({d: c for c, d in ELEMENT_TYPES.items()})

SIZE_OPERANDS = frozenset("K axes ends pads repeats roi scales shape sizes starts steps".split())


class Formal(NamedTuple):
    """One declared input or output: its name, its type variable and the element types allowed."""

    name: str
    tie: str
    variadic: bool
    optional: bool
    types: frozenset[DType]


class Operator(NamedTuple):
    """An operator at one opset, as the standard declares it."""

    name: str
    since: int
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: frozenset[str]
    defaults: Mapping[str, Any]
    required: frozenset[str]
    deterministic: bool
    has_bodies: bool
    raw: defs.OpSchema

    def takes(self, count: int) -> bool:
        """Whether the operator can have ``count`` inputs."""
        return count <= len(self.inputs) or (bool(self.inputs) and self.inputs[-1].variadic)

    def input(self, index: int) -> Formal:
        """The formal input at ``index``; the last one repeats where it is variadic."""
        return self.inputs[min(index, len(self.inputs) - 1)]


@lru_cache(KEPT)
def operator(op: str, opset: int = IR_OPSET, domain: str = "") -> Operator:
    """Look ``op`` up at ``opset``; refuse an unknown one, naming the opset that has it."""
    entry = find(op, opset, domain)
    if entry is not None:
        return entry
    newer = find(op, IR_OPSET, domain)
    hint = f"; opset {first_version(op, domain)} is the lowest that has it" if newer else ""
    raise UnsupportedOp(f"ONNX opset {opset} has no operator {op!r}{hint}")


@lru_cache(KEPT)
def find(op: str, opset: int = IR_OPSET, domain: str = "") -> Operator | None:
    """Like ``operator``, but None for an operator that is unknown or withdrawn."""
    if not 0 < opset <= IR_OPSET:
        return None
    try:
        raw = defs.get_schema(op, max_inclusive_version=opset, domain=domain)
    except defs.SchemaError:
        return None
    if raw.deprecated:
        return None
    return Operator(
        op,
        raw.since_version,
        tuple(_formal(raw, f) for f in raw.inputs),
        tuple(_formal(raw, f) for f in raw.outputs),
        frozenset(raw.attributes),
        _defaults(raw),
        frozenset(n for n, a in raw.attributes.items() if a.required),
        _is_deterministic(raw),
        any(_kind(a) in ("GRAPH", "GRAPHS") for a in raw.attributes.values()),
        raw,
    )


def list_sizes(op: str, inputs: Sequence[Any]) -> list[Any]:
    """The operands of an operator that list sizes, axes or bounds."""
    if op == "ConstantOfShape":
        return list(inputs)
    formal = operator(op).input
    return [v for at, v in enumerate(inputs) if formal(at).name in SIZE_OPERANDS]


def defaults_of(op: str) -> Mapping[str, Any]:
    """The defaults of an operator's attributes; none for one of another domain."""
    entry = find(op)
    return {} if entry is None else entry.defaults


@lru_cache(KEPT)
def first_version(op: str, domain: str = "") -> int | None:
    """The lowest opset that has ``op`` in its present life, None if there is none."""
    version, lowest = IR_OPSET, None
    while version:
        try:
            raw = defs.get_schema(op, max_inclusive_version=version, domain=domain)
        except defs.SchemaError:
            break
        lowest = lowest if raw.deprecated else raw.since_version
        version = raw.since_version - 1
    return lowest


@cache
def names(opset: int = IR_OPSET) -> tuple[str, ...]:
    """Every operator of the default domain that is alive at ``opset``, sorted."""
    known = {s.name for s in defs.get_all_schemas_with_history() if s.domain == ""}
    return tuple(sorted(n for n in known if find(n, opset)))


def _is_deterministic(raw: defs.OpSchema) -> bool:
    schema: Any = raw  # its type stub lacks node_determinism
    return bool(schema.node_determinism != defs.OpSchema.NodeDeterminism.NonDeterministic)


def _kind(attribute: Any) -> str:
    """The kind of a declared attribute: ``INT``, ``FLOATS``, …"""
    return str(attribute.type.name)


def _formal(raw: defs.OpSchema, formal: Any) -> Formal:
    allowed = [t for c in raw.type_constraints if c.type_param_str == formal.type_str
               for t in c.allowed_type_strs] or [formal.type_str]  # fmt: skip
    option = formal.option
    return Formal(
        formal.name,
        formal.type_str,
        option == defs.OpSchema.FormalParameterOption.Variadic,
        option == defs.OpSchema.FormalParameterOption.Optional,
        frozenset(d for t in allowed if (d := _parse_element_type(t)) is not None),
    )


@cache
def _parse_element_type(text: str) -> DType | None:
    inner = text[text.rfind("(") + 1 :].rstrip(")").split(",")[-1].strip()
    return DTYPES_BY_NAME.get(inner)


def _defaults(raw: defs.OpSchema) -> Mapping[str, Any]:
    defaults = {}
    for name, attribute in raw.attributes.items():
        proto = attribute.default_value
        if proto.type:
            defaults[name] = to_python_attribute(helper.get_attribute_value(proto))
    return MappingProxyType(defaults)


# What attributes of a kind are in the IR; an empty tuple is a list of any kind.
KINDS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"FLOAT": (float,), "INT": (int,), "STRING": (str, bytes), "TENSOR": (Tensor,)}
    | {"GRAPH": (Graph,), "TYPE_PROTO": (onnx.TypeProto,), "SPARSE_TENSOR": (Tensor,)}
)


def illegal_attributes_reason(operator: Operator, attrs: Mapping[str, Any]) -> str | None:
    """Say which of ``attrs`` is of another kind than ``operator`` declares, or which it lacks."""
    for name, value in attrs.items():
        declared = operator.raw.attributes.get(name)
        if declared is None or isinstance(value, AttrRef):
            continue
        kind = _kind(declared)
        if kind == "STRING" and isinstance(value, bytes) and operator.name != "Constant":
            return f"attribute {name!r} of {operator.name} is not UTF-8"
        if not _is_of(kind, value):
            return f"attribute {name!r} of {operator.name} has to be of kind {kind}"
    missing = sorted(operator.required - attrs.keys())
    return f"{operator.name} lacks the attribute {missing[0]!r}" if missing else None


def _is_of(kind: str, value: Any) -> bool:
    single = KINDS.get(kind)
    if single is not None:
        return isinstance(value, single)
    kinds = KINDS.get(kind.removesuffix("S"), ())
    return isinstance(value, tuple) and all(isinstance(v, kinds) for v in value)


def make_empty_attribute(op: str, name: str, domain: str = "") -> onnx.AttributeProto:
    """Attribute ``name`` of ``op`` as an empty list, of integers where nothing says of what."""
    entry = find(op, IR_OPSET, domain)
    declared = entry.raw.attributes.get(name) if entry is not None else None
    kind = "INTS" if declared is None else _kind(declared)
    return onnx.AttributeProto(name=name, type=onnx.AttributeProto.AttributeType.Value(kind))


def to_proto_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of the IR as onnx makes nodes of them: tensors as messages."""
    return {
        n: numpy_helper.from_array(v.load()) if isinstance(v, Tensor) else v
        for n, v in attrs.items()
    }


def to_python_attribute(value: Any) -> Any:
    """Turn an attribute's value as onnx gives it into the IR's: str, tuples, short floats."""
    if type(value) is int:
        return value
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, float):
        return shortest_float(value)
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return tuple(to_python_attribute(v) for v in value)
    return value


def shortest_float(value: float) -> float:
    """Round to the shortest decimal that is the same float32: attributes are stored as float32."""
    return _shortest_float(value) if value else value  # the sign of 0 is no part of a cache's key


@lru_cache(1024)
def _shortest_float(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
