"""Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

from serde.ir.geometry import axis_of

from ..rules import reads
from ..target import legalizations, writes


@reads("nn.softmax", "nn.fast_softmax")
def read_softmax(g, x, *, axis=-1):
    return g.Softmax(x, axis=axis_of(axis, x.rank))


@reads("nn.log_softmax")
def read_log_softmax(g, x, *, axis=-1):
    return g.LogSoftmax(x, axis=axis_of(axis, x.rank))


@writes("Softmax")
def write_softmax(r, x, *, axis: int):
    return r.nn.softmax(x, axis=axis)


@legalizations("LogSoftmax")
def legalize_log_softmax(g, x, *, axis: int):
    if x.is_static:
        return None
    low = g.Sub(x, g.ReduceMax(x, [axis], keepdims=1))
    return g.Sub(low, g.Log(g.ReduceSum(g.Exp(low), [axis], keepdims=1)))


@writes("LogSoftmax")
def write_log_softmax(r, x, *, axis: int):
    return r.nn.log_softmax(x, axis=axis)
