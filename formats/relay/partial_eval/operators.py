"""Calls of operators: their attributes as rules take them, and how many results they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from serde.errors import require
from serde.ir.graph import Value

from .. import ast, registry

# Annotations, whose result is their operand
TRANSPARENT = frozenset(
    "annotation.bitpack_end annotation.bitpack_start annotation.cast_hint annotation.checkpoint "
    "annotation.compiler_begin annotation.compiler_end annotation.stop_fusion "
    "annotation.with_funcid device_copy on_device".split()
)

# Operators whose result is a tuple of so many fields, whatever their attributes
_TUPLES = {
    "nn.batch_norm": 3,
    "nn.dropout": 2,
    "nn.sparse_transpose": 3,
    "random.normal": 2,
    "random.multinomial": 2,
    "random.threefry_split": 2,
    "random.uniform": 2,
    "dft": 2,
    "sparse_fill_empty_rows": 3,
    "sparse_reshape": 2,
    "vision.get_valid_counts": 3,
    "vision.multibox_transform_loc": 2,
    "vision.regular_non_max_suppression": 4,
}


def result_count(
    op: str, attrs: Mapping[str, Any], inputs: Sequence[Value], type_: ast.Type | None
) -> int | None:
    """How many fields the result has; None for a tensor."""
    if op in _TUPLES:
        return _TUPLES[op]
    if op == "split":
        sections = attrs.get("indices_or_sections")
        require(isinstance(sections, (int, tuple)), "split: 'indices_or_sections' is missing")
        assert sections is not None
        return sections if isinstance(sections, int) else len(sections) + 1
    if op == "meshgrid":
        return len(inputs)
    if op in ("topk", "dyn.topk"):
        return 2 if attrs.get("ret_type", "both") == "both" else None
    if op == "unique":
        return 5 if attrs.get("return_counts") else 4
    if op == "vision.non_max_suppression":
        return 2 if attrs.get("return_indices", True) else None
    if op == "vision.all_class_non_max_suppression":
        return 2 if attrs.get("output_format", "onnx") == "onnx" else 3
    return len(type_.fields) if isinstance(type_, ast.TupleType) else None


def node_attributes(attrs: ast.Attrs | None) -> Mapping[str, Any]:
    """The attributes of a call as a node has them; None is left out where it is the default."""
    if attrs is None:
        return MappingProxyType({})
    declared = registry.fields(attrs.type_key) or {}
    values = {}
    for name, value in attrs.values.items():
        plain = _strip_width(value)
        default = declared[name].default if name in declared else None
        if plain is not None or default not in (None, registry.REQUIRED):
            values[name] = plain
    return MappingProxyType(values)


def _strip_width(value: Any) -> Any:
    """A number, or numbers, without the data type."""
    if isinstance(value, ast.Imm):
        return value.value
    if isinstance(value, tuple):
        return tuple(_strip_width(v) for v in value)
    return value
