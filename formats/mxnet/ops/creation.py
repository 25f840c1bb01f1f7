"""Tensors made from nothing."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.dim_expr import combine
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..infer_shapes.shape_checks import OPEN
from ..io.params import TYPES
from ..rules import dtype_of, reads, reads_second
from ..target import scalar_value, writes
from .dynamic_shapes import Sizes, emit_arange, emit_iterations

MOST = 1 << 22  # elements written into the model


def make_full(g, shape: Ints, number, dtype: str):
    require(all(d >= 0 for d in shape), f"the size -1 in shape={shape} {OPEN}")
    require(np.prod(shape, dtype=np.float64) <= MOST, f"shape={shape} is large for a constant")
    return g.const(arrays.full(shape, number, dtype_of(dtype).numpy))


@reads("_zeros", ignore=("ctx",))
def read_zeros(g, *, shape: Ints = (), dtype="float32"):
    return make_full(g, shape, 0, dtype)


@reads_second("_zeros", ignore=("ctx",))
def read_second_zeros(g, *, shape: Ints = (), dtype: str | None = None):
    return make_full(g, shape, 0, dtype or "float32")


@reads("_zeros_without_dtype", ignore=("ctx",))
def read_zeros_of_a_code(g, *, shape: Ints = (), dtype=-1):
    """The type is one of MXNet's codes, or -1: one that the tensor's use tells."""
    return read_zeros(g, shape=shape, dtype=TYPES[dtype].value if dtype >= 0 else "float32")


def read_filled(number, g, *, shape: Ints = (), dtype="float32"):
    return make_full(g, shape, number, dtype)


reads("_npi_zeros", ignore=("ctx",))(partial(read_filled, 0))
reads("_ones", "_npi_ones", ignore=("ctx",))(partial(read_filled, 1))


@reads("_full", ignore=("ctx",))
def read_full(g, *, value: float, shape: Ints = (), dtype="float32"):
    return make_full(g, shape, value, dtype)


@reads_second("_npi_full", ignore=("ctx",))
def read_second_full(
    g, *, shape: Ints = (), double_value: float, int_value: int, uint_value: int, value_type: int,
    dtype: str | None = None,
):  # fmt: skip
    """``value_type`` tells which of the numbers is meant."""
    number = choose_number(value_type, double_value, int_value, uint_value)
    return make_full(g, shape, number, dtype or "float32")


def choose_number(kind: int, double: float, integer: int, unsigned: int):
    """The number that MXNet 2 means."""
    require(kind in (0, 1, 2), f"value_type={kind} is unknown")
    return (integer, unsigned, double)[kind]


@reads_second("_npi_linspace", ignore=("ctx",))
def read_second_linspace(
    g, *, start_double: float, stop_double: float, start_int: int, stop_int: int, start_uint: int,
    stop_uint: int, num: int, endpoint=True, value_type=0, dtype: str | None = None,
):  # fmt: skip
    start = choose_number(value_type, start_double, start_int, start_uint)
    stop = choose_number(value_type, stop_double, stop_int, stop_uint)
    kind = dtype or "float32"
    return read_linspace(g, start=start, stop=stop, num=num, endpoint=endpoint, dtype=kind)


def read_filled_like(number, g, x):
    """A ``dtype`` that is said is not looked at: MXNet keeps the tensor's."""
    return g.full_like(x, number)


reads("zeros_like", ignore=("dtype",))(partial(read_filled_like, 0))
reads("ones_like", ignore=("dtype",))(partial(read_filled_like, 1))


@reads("_arange", "_npi_arange", ignore=("ctx",), only={"infer_range": (False,)})
def read_arange(g, *, start: float, stop: float | None = None, step=1.0, repeat=1, dtype="float32"):
    """Start and step are taken in the type of the result, whose length they do not change."""
    start, stop = (0.0, start) if stop is None else (start, stop)
    kind = dtype_of(dtype).numpy
    require(step and math.isfinite((stop - start) / step) and repeat > 0, "no end")
    count = max(math.ceil((stop - start) / step), 0)
    require(count * repeat <= MOST, f"{count * repeat} elements are many for a constant")
    values = np.array(start).astype(kind) + arrays.arange(count).astype(kind) * np.array(step, kind)
    return g.const(arrays.repeat(values, repeat))


@reads("_contrib_arange_like", ignore=("ctx",))
def read_arange_like(g, x, *, start=0.0, step=1.0, repeat=1, axis: int | None = None):
    """0, 1, 2 … of the size of an axis, or of all of ``x`` in its shape."""
    size = g.multiply_sizes(g.sizes_of(x)) if axis is None else g.size_of(x, axis_of(axis, x.rank))
    y = g.index_range(size) if repeat == 1 else g.Div(g.index_range(size), repeat)
    y = g.cast(y, x.type)
    y = y if step == 1.0 else g.Mul(y, g.scalar(step, x))
    y = y if start == 0.0 else g.Add(y, g.scalar(start, x))
    return g.Reshape(y, g.Shape(x)) if axis is None else y


@reads("_eye", ignore=("ctx",))
def read_eye(g, *, N: int, M=0, k=0, dtype="float32"):
    require(0 <= N * (M or N) <= MOST, f"{N} by {M or N} elements are many for a constant")
    return g.const(arrays.eye(N, M or N, k, dtype_of(dtype).numpy))


@reads("_npi_eye", ignore=("ctx",))
def read_numpy_eye(g, *, N: int, M: int | None = None, k=0, dtype="float32"):
    return g.const(arrays.eye(N, M, k, dtype_of(dtype).numpy))


@reads("_npi_identity", ignore=("ctx",))
def read_numpy_identity(g, *, shape: Ints = (), dtype="float32"):
    require(len(shape) == 2 and shape[0] == shape[1], f"shape={shape}, which MXNet fills otherwise")
    return g.const(arrays.eye(shape[0], dtype=dtype_of(dtype).numpy))


@reads("_npi_indices", ignore=("ctx",))
def read_indices(g, *, dimensions: Ints, dtype="int32"):
    return g.const(arrays.indices(dimensions, dtype_of(dtype).numpy))


@reads_second("_npi_indices", ignore=("ctx",))
def read_second_indices(g, *, dimensions: Ints, dtype: str | None = None):
    return read_indices(g, dimensions=dimensions, dtype=dtype or "int64")


@reads("_linspace", ignore=("ctx",))
def read_linspace(g, *, start: float, stop: float, num: int, endpoint=True, dtype="float32"):
    values = arrays.linspace(start, stop, num, endpoint)
    return g.const(values.astype(dtype_of(dtype).numpy))


@reads("_npi_logspace", ignore=("ctx",))
def read_logspace(
    g, *, start: float, stop: float, num: int, endpoint=True, base=10.0, dtype="float32"
):
    arrays.charge_elements(num)
    values = np.logspace(start, stop, num, endpoint, base)
    return g.const(values.astype(dtype_of(dtype).numpy))


def read_window(window, g, *, M: int | None = None, dtype="float32"):
    """A window for spectra; without a length it has none."""
    kind = dtype_of(dtype)
    require(kind.kind == "f", f"a window of {kind.value}, which MXNet cuts to zeros")
    arrays.charge_elements(M or 0)
    return g.const(window(M or 0).astype(kind.numpy))


for _name in ("blackman", "hamming", "hanning"):
    reads(f"_npi_{_name}", ignore=("ctx",))(partial(read_window, getattr(np, _name)))


@reads("_npi_full_like", ignore=("ctx",))
def read_full_like(g, x, *, fill_value: float, dtype: str | None = None):
    kind = dtype_of(dtype) if dtype else x.type
    number = bool(fill_value) if kind is DType.BOOL else fill_value
    return g.full_like(x, number if kind.kind == "f" else int(number), kind)


@reads("_contrib_index_array")
def read_index_array(g, x, *, axes: Ints | None = None):
    """Where each element lies, along all axes or some, in one more last axis."""
    chosen = range(x.rank) if axes is None else axes_of(axes, x.rank)
    places = [
        g.Unsqueeze(g.index_range(g.size_of(x, a)), list(range(1, x.rank - a))) for a in chosen
    ]
    coordinates = [g.Unsqueeze(g.Expand(p, g.Shape(x)), [x.rank]) for p in places]
    return g.Concat(*coordinates, axis=x.rank)


@writes("Range")
def write_range(s, start, limit, delta, *, sizes: Hint[Sizes | None] = None):
    """Steps up to a size that tensors have; ``sizes`` is the limit. Others are counted first."""
    first, step = scalar_value(start), scalar_value(delta)
    if sizes is None:
        return _range_of(s, start, limit, delta)
    is_integer = isinstance(first, int) and isinstance(step, int) and step > 0
    require(is_integer, "steps to a size of a tensor that are no integers")
    above = combine("+", combine("-", sizes[0], first), step - 1)
    steps = s["_mul_scalar"](emit_arange(s, combine("/", above, step)), scalar=step)
    return s.Cast(s["_plus_scalar"](steps, scalar=first), dtype=start.type.value)


def _range_of(s, start: Value, limit: Value, delta: Value):
    """``start + i · delta`` below ``limit``."""
    kind = start.type.value
    first, last, step = (
        s.Reshape(s.Cast(v, dtype="float64"), shape=(1,)) for v in (start, limit, delta)
    )
    turns = emit_iterations(s, s.ceil(s.broadcast_div(s.broadcast_sub(last, first), step)))
    return s.Cast(s.broadcast_add(s.broadcast_mul(turns, step), first), dtype=kind)
