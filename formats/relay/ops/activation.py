"""Activations."""

from __future__ import annotations

from serde.decompositions.elementwise import prelu
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import legalizations, set_type, writes
from .widths import compute_widely


@reads("nn.relu")
def read_relu(g, x):
    """ONNX Runtime has no Relu of int64."""
    if x.type is DType.INT64:
        return g.Max(x, g.const(0, x.type))
    return x if x.type.kind == "u" else compute_widely(g, lambda g, x: g.Relu(x), x)


@reads("nn.leaky_relu")
def read_leaky_relu(g, x, *, alpha=0.25):
    return g.LeakyRelu(x, alpha=alpha)


@reads("nn.prelu")
def read_prelu(g, x, slope, *, axis=1):
    """A slope for each element along one axis."""
    axis = axis_of(axis, x.rank)
    if slope.rank == 1 and axis != x.rank - 1:
        slope = g.Unsqueeze(slope, list(range(1, x.rank - axis)))
    return g.PRelu(x, slope)


# Activations


@writes("LeakyRelu")
def write_leaky_relu(r, x, *, alpha: float):
    return r.nn.leaky_relu(x, alpha=alpha)


@legalizations("PRelu")
def legalize_prelu(g, x, slope):
    """A slope for each channel stays, as Relay has it; others are decomposed."""
    if is_per_channel(x, slope):
        return None
    return prelu(g, x, slope)


def is_per_channel(x: Value, slope: Value) -> bool:
    """Whether ``slope`` has one number for each channel of ``x``, which has some."""
    dims = slope.static_shape if slope.is_static else (0, 0)
    axes = [at - len(dims) + x.rank for at, d in enumerate(dims) if d != 1]
    return (
        x.type.kind == "f" and x.rank > 1 and axes == [1] and x.ranked_shape[1] == dims[1 - x.rank]
    )


@writes("PRelu")
def write_prelu(r, x, slope):
    flat = r.reshape(slope, newshape=(-1,)) if slope.rank != 1 else slope
    return r.nn.prelu(x, set_type(flat, x.dtype, (x.ranked_shape[1],)))
