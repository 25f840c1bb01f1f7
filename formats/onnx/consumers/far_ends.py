"""Ends of slices and other 64-bit constants, for consumers that compute in 32 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value

INT32 = np.iinfo(np.int32)
MOST_SEARCHED = 1 << 20  # elements of a constant that is looked into


def within_int32(graph: Graph) -> Graph:
    """Move the far ends of slices to the ends of 32 bits; note other constants beyond them."""
    moved: list[str] = []
    done = _with_near_slices(graph, moved)
    notes = [f"ends of {len(moved)} slice(s) moved within 32 bits"] if moved else []
    far = [
        v.name for v in done.constants()
        if v.tensor is not None and v.tensor.size <= MOST_SEARCHED and v.dtype is DType.INT64
        and _is_beyond(v)
    ]  # fmt: skip
    if far:
        notes.append(f"64-bit constants that do not fit in 32 bits: {', '.join(far)}")
    return replace(done, notes=(*done.notes, *notes)) if notes else done


def _with_near_slices(graph: Graph, moved: list[str]) -> Graph:
    return replace(graph, nodes=tuple(_move_ends(n, moved) for n in graph.nodes))


def _move_ends(node: Node, moved: list[str]) -> Node:
    if node.op != "Slice" or node.domain:
        bodies = {k: _with_near_slices(g, moved)
                  for k, g in node.attrs.items() if isinstance(g, Graph)}  # fmt: skip
        return replace(node, attrs={**node.attrs, **bodies}) if bodies else node
    bounds = [_clip_constant(v) if at in (1, 2) else v for at, v in enumerate(node.inputs)]
    if all(a is b for a, b in zip(bounds, node.inputs, strict=True)):
        return node
    moved.append(node.name)
    return replace(node, inputs=tuple(bounds))


def _is_beyond(value: Value) -> bool:
    array = value.array()
    return array.size > 0 and bool(array.max() > INT32.max or array.min() < INT32.min)


def _clip_constant(value: Value | None) -> Value | None:
    if value is None or value.tensor is None or value.dtype is not DType.INT64:
        return value
    if not _is_beyond(value):
        return value
    tensor = Tensor.of(np.clip(value.array(), INT32.min, INT32.max))
    return Value(f"{value.name}_int32", tensor.dtype, tensor.shape, tensor)
