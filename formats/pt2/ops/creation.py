"""Tensors made of numbers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.arrays import arange, charge_elements, linspace
from serde.ir.graph import DType, Tensor

from ..operands import Number
from ..promotion import as_type, number_type
from ..rules import reads
from .symbols import in_row

FILLS = {"zeros": 0, "ones": 1, "empty.memory_format": 0, "empty": 0}
LIKE = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}
NEW = {"new_zeros": 0, "new_ones": 1, "new_empty": 0}


def fill(g, sizes, number, dtype: DType):
    """A tensor of sizes that holds one number."""
    shape = g.shape_from(sizes)
    if isinstance(number, Number):
        return g.Expand(as_type(g, number, dtype), shape)
    with np.errstate(over="ignore"):
        value = np.array([number], np.float64 if dtype.kind == "f" else None).astype(dtype.numpy)
    return g.ConstantOfShape(shape, value=Tensor.of(value))


@reads.for_each(FILLS)
def read_filled(number, g, sizes, *, dtype):
    return fill(g, sizes, number, dtype or DType.FLOAT32)


@reads("empty_strided", ignore=("stride",))
def read_empty_strided(g, sizes, *, dtype):
    return fill(g, sizes, 0, dtype or DType.FLOAT32)


@reads.for_each(LIKE)
def read_filled_like(number, g, x, *, dtype):
    return g.full_like(x, number, dtype)


@reads.for_each(NEW)
def read_new(number, g, x, sizes, *, dtype):
    return fill(g, sizes, number, dtype or x.type)


@reads("full")
def read_full(g, sizes, number, *, dtype):
    return fill(g, sizes, number, dtype or number_type(number))


@reads("full_like")
def read_full_like(g, x, number, *, dtype):
    return g.Expand(as_type(g, number, dtype or x.type), g.Shape(x))


@reads("new_full")
def read_new_full(g, x, sizes, number, *, dtype):
    return fill(g, sizes, number, dtype or x.type)


@reads("zero", "zeros_like.default")
def read_zero(g, x):
    return g.full_like(x, 0)


@reads("arange")
def read_arange(g, end, *, dtype):
    return make_range(g, 0, end, 1, dtype)


@reads("arange.start")
def read_arange_start(g, start, end, *, dtype):
    return make_range(g, start, end, 1, dtype)


@reads("arange.start_step")
def read_arange_step(g, start, end, step, *, dtype):
    return make_range(g, start, end, step, dtype)


def make_range(g, start, end, step, dtype):
    """Numbers from ``start``; in doubles where they are no integers, as PyTorch computes them."""
    numbers = (start, end, step)
    is_whole = all(number_type(n) is DType.INT64 for n in numbers)
    dtype = dtype or (DType.INT64 if is_whole else DType.FLOAT32)
    if is_whole:
        parts = [g.Squeeze(in_row(g, n, DType.INT64), [0]) for n in numbers]
        return g.cast(g.Range(*parts), dtype)
    require(not any(isinstance(n, Number) for n in numbers), "a range of computed numbers that "
            "are no integers: compute it from a range of integers")  # fmt: skip
    count = max(0, math.ceil((end - start) / step))
    return g.const((start + arange(count) * step).astype(dtype.numpy))


@reads("linspace")
def read_linspace(g, start, end, steps, *, dtype):
    require(isinstance(steps, int), "a number of steps that is computed: make it a number")
    return g.const(linspace(start, end, steps).astype((dtype or DType.FLOAT32).numpy))


@reads.for_each({"hann_window": 0.5, "hamming_window": 0.54})
def read_window(alpha, g, length, *, dtype):
    return window(g, alpha, length, True, dtype)


@reads.for_each({"hann_window.periodic": 0.5, "hamming_window.periodic": 0.54})
def read_periodic_window(alpha, g, length, periodic, *, dtype):
    return window(g, alpha, length, periodic, dtype)


def window(g, alpha, length, periodic, dtype):
    """One wave of a cosine, from its least to its greatest."""
    require(isinstance(length, int), "a window of a computed length: make it a number")
    turns = arange(length) / max(length if periodic else length - 1, 1)
    values = alpha - (1 - alpha) * np.cos(2 * np.pi * turns) if length > 1 else np.ones(length)
    return g.const(values.astype((dtype or DType.FLOAT32).numpy))


WINDOWS = {
    "bartlett": np.bartlett, "blackman": np.blackman, "kaiser": partial(np.kaiser, beta=12.0),
}  # fmt: skip


@reads.for_each({f"{name}_window": make for name, make in WINDOWS.items()})
def read_symmetric_window(make, g, length, *, dtype):
    return sample_window(g, make, length, True, dtype)


@reads.for_each({f"{name}_window.periodic": make for name, make in WINDOWS.items()})
def read_sampled_window(make, g, length, periodic, *, dtype):
    return sample_window(g, make, length, periodic, dtype)


@reads("kaiser_window.beta")
def read_kaiser_window(g, length, periodic, beta, *, dtype):
    return sample_window(g, lambda n: np.kaiser(n, beta), length, periodic, dtype)


def sample_window(g, make, length, periodic, dtype):
    """A symmetric window, or one without the last sample of the next."""
    require(isinstance(length, int), "a window of a computed length: make it a number")
    charge_elements(length)
    is_cut = periodic and length > 1
    values = make(length + 1)[:-1] if is_cut else make(length)
    return g.const(values.astype((dtype or DType.FLOAT32).numpy))


@reads("logspace")
def read_logspace(g, start, end, steps, base, *, dtype):
    exponents = read_linspace(g, start, end, steps, dtype=DType.FLOAT64)
    powers = g.Pow(g.const(float(base), DType.FLOAT64), exponents)
    return g.cast(powers, dtype or DType.FLOAT32)


@reads.for_each({"fft_fftfreq": np.fft.fftfreq, "fft_rfftfreq": np.fft.rfftfreq})
def read_frequencies(function, g, n, d, *, dtype):
    require(isinstance(n, int) and n > 0, f"the frequencies of {n} samples: give a number")
    charge_elements(n)
    return g.const(function(n, d).astype((dtype or DType.FLOAT32).numpy))


@reads("eye")
def read_eye(g, n, *, dtype):
    return read_eye_m(g, n, n, dtype=dtype)


@reads("eye.m")
def read_eye_m(g, n, m, *, dtype):
    rows, columns = (g.index_range(d) for d in (n, m))
    same = g.Equal(g.Unsqueeze(rows, [1]), g.Unsqueeze(columns, [0]))
    return g.cast(same, dtype or DType.FLOAT32)


@reads.for_each({"tril": 0, "triu": 1})
def read_triangle(upper, g, x, diagonal):
    if x.type in (DType.BOOL, DType.INT32):
        return g.cast(g.Trilu(g.cast(x, DType.INT64), diagonal, upper=upper), x.type)
    return g.Trilu(x, diagonal, upper=upper)


@reads("_to_copy", "to.dtype_layout", ignore=("copy",))
def read_to_copy(g, x, *, dtype):
    return g.Identity(x) if dtype is None else g.cast(x, dtype)


@reads("to.dtype", "prims.convert_element_type", ignore=("copy",))
def read_to_dtype(g, x, dtype):
    return g.cast(x, dtype)


@reads("view.dtype")
def read_bits(g, x, dtype):
    """The same bits as integers of a sign or without."""
    is_whole = {x.type.kind, dtype.kind} <= {"i", "u"} and x.type.bits == dtype.bits
    require(is_whole or x.type is dtype, f"the bits of {x.type.value} as {dtype.value}: "
            "compute with the numbers")  # fmt: skip
    return g.cast(x, dtype)


@reads("to.device", ignore=("copy",))
def read_to_device(g, x, device, dtype):
    return g.cast(x, dtype)


@reads("type_as", "to.other", ignore=("copy",))
def read_type_as(g, x, like):
    return g.cast(x, like.type)


@reads("one_hot")
def read_one_hot(g, x, classes):
    require(isinstance(classes, int) and classes > 0, "one_hot without num_classes: give it")
    return g.OneHot(x, classes, g.const([0, 1], DType.INT64), axis=-1)


@reads.for_each({"triu_indices": np.triu_indices, "tril_indices": np.tril_indices})
def read_triangle_places(make, g, rows, columns, offset):
    charge_elements(rows, columns)
    return g.const(np.stack(make(rows, offset, columns)), DType.INT64)
