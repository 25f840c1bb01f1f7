"""Let equal constants be one."""

from __future__ import annotations

from collections.abc import Hashable

from serde.ir.graph import DType, Graph, Value
from serde.ir.replace_uses import replace_values
from serde.passes.optional import optional

COMPARED = 1 << 16  # bytes; larger constants are equal only if they are the same bytes of a file


@optional("share_constants")
def share_constants(graph: Graph) -> Graph:
    """Return ``graph`` with one Value for all constants of the same type and contents.

    Those of a class of their own, of which a format keeps more than the elements, stay.
    Weights that the source named stay, each by its name, whatever else holds the same; but copies
    of them, which branches of one ``If`` read, are read no more.
    """
    first: dict[Hashable, Value] = {}
    instead: dict[Value, Value] = {}
    originals = {v.tensor: v for v in graph.constants() if v.name_is_original}
    for value in graph.constants():
        original = originals.get(value.tensor, value)
        if original is not value and not value.name_is_original:
            instead[value] = original
            continue
        key = _key(value)
        if key is not None and (same := first.setdefault(key, value)) is not value:
            instead[value] = same
    return replace_values(graph, instead)


def _key(value: Value) -> Hashable | None:
    tensor = value.tensor
    is_own = value.name_is_original or value.origins or type(value) is not Value
    if is_own or tensor is None or tensor.dtype is DType.STRING:
        return None
    if tensor.where is not None:
        return (tensor.dtype, tensor.shape, tensor.where)
    if tensor.nbytes > COMPARED:
        return (id(tensor),)
    return (tensor.dtype, tensor.shape, tensor.load().tobytes())
