"""Elements by their places, which PyTorch's layers and functions count from the front."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.passes.value_ranges import may_be_negative
from serde.spec.traits import RESHAPES

from ..target import TorchBuilder, legalizations, writes

OF_INPUTS = RESHAPES | {"Cast", "Identity", "Slice", "Transpose"}  # operators that keep numbers


@legalizations("Gather")
def legalize_gather(g, x: Value, indices: Value, *, axis: int):
    """Rows of a table, which ``nn.Embedding`` counts from the front; an input that does not is a
    mistake, of which it tells.
    """
    if not is_table(x, axis) or (indices.tensor is not None and indices.rank == 0):
        return None
    if is_model_input(g, indices) or not may_be_negative(g, indices):
        return None
    return g.Gather(x, count_from_front(g, x, indices, axis), axis=axis)


@legalizations.for_each({op: op for op in ("GatherElements", "ScatterElements")})
def legalize_elements(op: str, g, x: Value, indices: Value, *updates: Value, axis: int, **form):
    if not may_be_negative(g, indices):
        return None
    return g[op](x, count_from_front(g, x, indices, axis), *updates, axis=axis, **form)


def count_from_front(g, x: Value, indices: Value, axis: int) -> Value:
    size = g.size_of(x, axis)
    length = g.const(size, DType.INT64) if isinstance(size, int) else g.Squeeze(size, [0])
    return g.Mod(g.cast(indices, DType.INT64), length)


def is_table(x: Value, axis: int) -> bool:
    """Whether rows of a weight are looked up."""
    return x.tensor is not None and x.rank == 2 and x.type.kind == "f" and axis == 0


def is_model_input(g, indices: Value) -> bool:
    """Whether indices are an input of the model."""
    node = g.producer(indices)
    while node is not None and node.op in OF_INPUTS and node.inputs[0] is not None:
        indices = node.inputs[0]
        node = g.producer(indices)
    return node is None and indices.tensor is None


@writes("Gather")
def write_gather(t: TorchBuilder, x: Value, indices: Value, *, axis: int):
    lead = (slice(None),) * axis
    if indices.tensor is not None and indices.rank == 0:
        return t["[]"](x, *lead, int(indices.array()))
    if is_table(x, axis):
        return t.module("nn.Embedding", [indices], x.static_shape, parameters={"weight": x})
    if t.exportable and indices.rank == 0:  # PyTorch would make it a number
        return t[".squeeze"](t["[]"](x, *lead, t[".reshape"](indices, 1)), axis)
    return t["[]"](x, *lead, indices)


@writes("GatherElements")
def write_gather_elements(t: TorchBuilder, x: Value, indices: Value, *, axis: int):
    return t.torch.gather(x, axis, as_places(t, indices))


def as_places(t: TorchBuilder, indices: Value) -> Value:
    return indices if indices.type is DType.INT64 else t[".to"](indices, DType.INT64)


@legalizations("GatherND")
def legalize_gather_nd(g, x, indices, *, batch_dims: int):
    return g.decompose("GatherND", 12, x, indices, batch_dims=batch_dims) if batch_dims else None


@writes("GatherND", only={"batch_dims": (0,)})
def write_gather_nd(t: TorchBuilder, x: Value, indices: Value):
    count = indices.ranked_shape[-1]
    require(isinstance(count, int), "indices of dynamic length")
    is_one = t.exportable and indices.rank == 1
    places = t[".unsqueeze"](indices, 0) if is_one else indices
    y = t["[]"](x, *(t["[]"](places, ..., at) for at in range(count)))
    return t[".squeeze"](y, 0) if is_one else y


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@writes("ScatterElements")
def write_scatter_elements(t: TorchBuilder, x: Value, indices: Value, updates: Value, *,
                           axis: int, reduction: str):  # fmt: skip
    at = as_places(t, indices)
    if reduction == "none":
        return t.torch.scatter(x, axis, at, updates)
    return t.torch.scatter_reduce(x, axis, at, updates, reduce=REDUCTIONS[reduction])


@legalizations("ScatterND")
def legalize_scatter_nd(g, x, indices, updates, *, reduction: str):
    """``index_put`` adds; other reductions are written out."""
    if reduction in ("none", "add"):
        return None
    version = 18 if reduction in ("max", "min") else 16  # the opset that brought it
    return g.decompose("ScatterND", version, x, indices, updates, reduction=reduction)


@writes("ScatterND")
def write_scatter_nd(t: TorchBuilder, x: Value, indices: Value, updates: Value, *, reduction: str):
    require(reduction in ("none", "add"), f"reduction={reduction!r} of blocks")
    count = indices.ranked_shape[-1]
    require(isinstance(count, int), "indices of dynamic length")
    places = tuple(t["[]"](indices, ..., at) for at in range(count))
    accumulate = True if reduction == "add" else None
    return t.torch.index_put(x, places, updates, accumulate=accumulate)
