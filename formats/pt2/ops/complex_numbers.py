"""Complex numbers and Fourier transforms.

A rule ``complex.OP`` is that of ``OP`` where an operand or a result is complex: such are
``Complex``. Operators that only move elements are applied to both parts (``rules.PARTWISE``).
"""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..operands import Complex
from ..promotion import as_type, promote_to_float
from ..rules import reads
from .binary import read_atan2, read_div, read_product
from .creation import fill
from .shape import read_roll

PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
POWERS = (0.0, -0.5, -1.0)  # of the count, by PyTorch's number of a normalization
NORMS = {None: (0, 2), "backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


@reads("complex.view_as_complex")
def read_view_as_complex(g, x):
    return Complex(g, pair=x)


@reads("complex.view_as_real")
def read_view_as_real(g, x):
    return x.pair


@reads("complex.complex")
def read_complex(g, real, imaginary):
    return Complex(g, real, imaginary)


@reads("complex.polar")
def read_polar(g, length, angle):
    return Complex(g, g.Mul(length, g.Cos(angle)), g.Mul(length, g.Sin(angle)))


@reads("complex.real")
def read_real(g, x):
    return x.real


@reads("complex.imag")
def read_imaginary(g, x):
    return x.imaginary


@reads("complex.abs")
def read_abs(g, x):
    return g.Sqrt(g.Add(g.Mul(x.real, x.real), g.Mul(x.imaginary, x.imaginary)))


@reads("complex.angle")
def read_angle(g, x):
    return read_atan2(g, x.imaginary, x.real)


@reads("complex._conj", "complex.conj", "complex._conj_physical", "complex.conj_physical")
def read_conjugate(g, x):
    return Complex(g, x.real, g.Neg(x.imaginary))


@reads("complex._to_copy", "complex.to.dtype", ignore=("dtype",))
def read_to_complex(g, x):
    return as_complex(g, x)


@reads.for_each({"complex.zeros": 0.0, "complex.ones": 1.0})
def read_complex_filled(number, g, sizes, *, dtype):
    part = PARTS[dtype]
    return Complex(g, fill(g, sizes, number, part), fill(g, sizes, 0.0, part))


def as_complex(g, x, dtype=DType.FLOAT32):
    """A tensor or a number as a complex one; ``dtype`` is that of a literal's parts."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, complex):
        return Complex(g, *(as_type(g, part, dtype) for part in (x.real, x.imag)))
    (x,) = promote_to_float(g, x)
    return Complex(g, x, as_type(g, 0.0, x.type))


def as_pair(g, x, y):
    """Two operands, of which one may be a literal: that is of the other's type."""
    if isinstance(y, complex):
        x = as_complex(g, x)
        return x, as_complex(g, y, x.real.type)
    return as_complex(g, x), as_complex(g, y)


@reads.for_each({"complex.add.Tensor": "Add", "complex.sub.Tensor": "Sub"})
def read_complex_sum(op, g, x, y):
    x, y = as_pair(g, x, y)
    return Complex(g, g[op](x.real, y.real), g[op](x.imaginary, y.imaginary))


@reads("complex.mul.Tensor")
def read_complex_product(g, x, y):
    if isinstance(y, complex):
        x, y = as_pair(g, x, y)
    if not isinstance(x, Complex):
        x, y = y, x
    if not isinstance(y, Complex):
        return Complex(g, read_product("Mul", g, x.real, y), read_product("Mul", g, x.imaginary, y))
    real = g.Sub(g.Mul(x.real, y.real), g.Mul(x.imaginary, y.imaginary))
    return Complex(g, real, g.Add(g.Mul(x.real, y.imaginary), g.Mul(x.imaginary, y.real)))


@reads("complex.div.Tensor")
def read_complex_quotient(g, x, y):
    if isinstance(y, complex):
        x, y = as_pair(g, x, y)
    if not isinstance(y, Complex):
        return Complex(g, read_div(g, x.real, y), read_div(g, x.imaginary, y))
    norm = g.Add(g.Mul(y.real, y.real), g.Mul(y.imaginary, y.imaginary))
    product = read_complex_product(g, as_complex(g, x), read_conjugate(g, y))
    return Complex(g, g.Div(product.real, norm), g.Div(product.imaginary, norm))


@reads("complex.exp")
def read_complex_exponential(g, x):
    length = g.Exp(x.real)
    return Complex(g, g.Mul(length, g.Cos(x.imaginary)), g.Mul(length, g.Sin(x.imaginary)))


@reads.for_each({"fft_fftshift": 0, "fft_ifftshift": 1})
def read_shifted_spectrum(more, g, x, dims):
    """Rolled by half of each axis, that the frequency 0 is in the middle, and back."""
    axes = [axis_of(d, x.rank) for d in dims] if dims else list(range(x.rank))
    sizes = [x.ranked_shape[a] for a in axes]
    require(all(isinstance(s, int) for s in sizes), "a shift along an axis of unknown size: fix it")
    return read_roll(g, x, [(s + more) // 2 for s in sizes], axes)


@reads("complex.einsum", ignore=("path",))
def read_complex_einsum(g, equation, xs):
    require(len(xs) == 2, f"einsum of {len(xs)} complex tensors: take two at a time")
    (a, b), (c, d) = ((x.real, x.imaginary) for x in (as_complex(g, x) for x in xs))
    ac, bd, ad, bc = (g.Einsum(*p, equation=equation) for p in ((a, c), (b, d), (a, d), (b, c)))
    return Complex(g, g.Sub(ac, bd), g.Add(ad, bc))


@reads("complex._fft_r2c")
def read_fft_r2c(g, x, dims, normalization, onesided):
    return transform(g, x, dims, None, normalization, inverse=False, halves=onesided)


@reads("complex._fft_c2r")
def read_fft_c2r(g, x, dims, normalization, last):
    return to_real(g, x, dims, None, normalization, last)


@reads("complex._fft_c2c")
def read_fft_c2c(g, x, dims, normalization, forward):
    return transform(g, x, dims, None, normalization, inverse=not forward)


def transform(g, x, dims, lengths, normalization, *, inverse, halves=False):
    """A transform along axes, of real or complex numbers; the last axis gives one half of them."""
    rank = x.rank
    axes = [axis_of(d, rank) for d in dims]
    lengths = list(lengths or [None] * len(axes))
    y = x.pair if isinstance(x, Complex) else g.Unsqueeze(x, [rank])
    count = count_terms(g, y, axes, lengths)
    for axis, length in reversed(list(zip(axes, lengths, strict=True))):
        y = g.DFT(y, number(g, length), g.const(axis), inverse=int(inverse),
                  onesided=int(halves and axis == axes[-1]))  # fmt: skip
    return Complex(g, pair=normalize(g, y, count, normalization, inverse))


def to_real(g, x, dims, lengths, normalization, last):
    """The inverse transform of what mirrors itself along the last axis."""
    rank = x.rank
    axes = [axis_of(d, rank) for d in dims]
    lengths = [*(lengths or [None] * len(axes))[:-1], last]
    y = x.pair
    count = count_terms(g, y, axes, lengths)
    for axis, length in list(zip(axes, lengths, strict=True))[:-1]:
        y = g.DFT(y, number(g, length), g.const(axis), inverse=1)
    y = g.DFT(y, number(g, last), g.const(axes[-1]), inverse=1, onesided=1)
    return g.Squeeze(normalize(g, y, count, normalization, True), [rank])


def number(g, length):
    """A length as the operator takes it."""
    return None if length is None else g.Squeeze(g.shape_from([length]), [0])


def count_terms(g, y, axes, lengths):
    """How many terms each sum has."""
    sizes = [g.size_of(y, a) if n is None else n for a, n in zip(axes, lengths, strict=True)]
    return g.multiply_sizes(sizes)


def normalize(g, y, count, normalization, inverse):
    """Times a power of the count; the inverse operator divides by the count already."""
    power = POWERS[normalization] + int(inverse)
    if power == 0:
        return y
    if isinstance(count, int):
        return g.Mul(y, as_type(g, float(count) ** power, y.type))
    return g.Mul(y, g.Pow(g.cast(count, y.type), as_type(g, power, y.type)))


FORWARD = {"fft_fft": False, "fft_ifft": True}


@reads.for_each({f"complex.{name}": inverse for name, inverse in FORWARD.items()})
def read_fft(inverse, g, x, n, dim, norm):
    return transform(g, x, [dim], [n], norm_of(norm, inverse), inverse=inverse)


@reads.for_each({f"complex.{name}{kind}": i for name, i in FORWARD.items() for kind in ("2", "n")})
def read_fft_n(inverse, g, x, sizes, dims, norm):
    dims = all_dims(x, sizes, dims)
    return transform(g, x, dims, sizes, norm_of(norm, inverse), inverse=inverse)


@reads("complex.fft_rfft")
def read_rfft(g, x, n, dim, norm):
    return transform(g, x, [dim], [n], norm_of(norm, False), inverse=False, halves=True)


@reads("complex.fft_rfft2", "complex.fft_rfftn")
def read_rfft_n(g, x, sizes, dims, norm):
    dims = all_dims(x, sizes, dims)
    return transform(g, x, dims, sizes, norm_of(norm, False), inverse=False, halves=True)


@reads("complex.fft_irfft")
def read_irfft(g, x, n, dim, norm):
    return to_real(g, x, [dim], [n], norm_of(norm, True), n or whole_size(g, x, dim))


@reads("complex.fft_irfft2", "complex.fft_irfftn")
def read_irfft_n(g, x, sizes, dims, norm):
    dims = all_dims(x, sizes, dims)
    last = sizes[-1] if sizes else whole_size(g, x, dims[-1])
    return to_real(g, x, dims, sizes, norm_of(norm, True), last)


def norm_of(norm, inverse):
    """PyTorch's number of a normalization by name."""
    require(norm in NORMS, f"norm={norm!r}: use one of {', '.join(n for n in NORMS if n)}")
    return NORMS[norm][inverse]


def all_dims(x, sizes, dims):
    """The axes of a transform: the last ones of the sizes, or all."""
    rank = x.rank
    return dims or range(rank - len(sizes or range(rank)), rank)


def whole_size(g, x, dim):
    """The size of what a half of is there."""
    size = g.size_of(x.pair, axis_of(dim, x.rank))
    return 2 * (size - 1) if isinstance(size, int) else g.Mul(g.Sub(size, 1), 2)


@reads("complex.stft", ignore=("align_to_window",))
def read_stft(g, x, size, step, length, window, normalized, onesided, complex_result):
    """Frames of a signal; a shorter window is padded on both sides."""
    require(x.type is not DType.FLOAT64 and not isinstance(x, Complex), "stft of such numbers: "
            "cast them to float32")  # fmt: skip
    length, step = length or size, step or size // 4
    if window is None:
        window = g.const([1.0] * length, x.type)
    start = (size - length) // 2
    window = g.Pad(window, [start, size - length - start])
    lead = x.rank == 1
    x = g.Unsqueeze(x, [0] if lead else [2])
    x = g.Unsqueeze(x, [2]) if lead else x
    y = g.STFT(x, g.const(step), window, g.const(size), onesided=int(onesided is not False))
    y = g.Mul(y, as_type(g, size**-0.5, y.type)) if normalized else y
    y = g.Transpose(y, perm=[0, 2, 1, 3])
    return Complex(g, pair=g.Squeeze(y, [0]) if lead else y)


@reads("complex.istft")
def read_istft(
    g, x, size, step, length, window, center, normalized, onesided, count, complex_result
):  # fmt: skip
    """A signal of frames that overlap, over the sum of the windows' squares."""
    require(not complex_result, "istft to complex numbers: let return_complex be False")
    length, step = length or size, step or size // 4
    lead = x.rank == 2
    pair = g.Unsqueeze(x.pair, [0]) if lead else x.pair
    if onesided is False:
        pair = g.slice_axis(pair, 1, 0, size // 2 + 1)
    frames = g.DFT(pair, number(g, size), g.const(1), inverse=1, onesided=1)
    frames = g.Squeeze(frames, [3])
    frames = g.Mul(frames, as_type(g, size**0.5, frames.type)) if normalized else frames
    if window is None:
        window = g.const([1.0] * length, frames.type)
    start = (size - length) // 2
    window = g.Unsqueeze(g.Pad(window, [start, size - length - start]), [1])
    squares = g.Expand(g.Mul(window, window), g.shape_from([1, *g.sizes_of(frames)[1:]]))
    totals = [add_frames(g, rows, size, step) for rows in (g.Mul(frames, window), squares)]
    begin = size // 2 if center else 0
    end = -begin if center else np.iinfo(np.int64).max
    if count is not None:
        end = begin + count if isinstance(count, int) else g.Add(count, begin)
    y = g.Div(*(g.slice_axis(sums, 2, begin, end) for sums in totals))
    y = g.Squeeze(y, [0, 1] if lead else [1])
    return y if count is None else fill_up(g, y, count)


def add_frames(g, frames, size, step):
    """The sum of frames, each of which begins ``step`` elements behind the one before."""
    arrays.charge_elements(size, size)
    one = g.const(np.eye(size, dtype=frames.type.numpy).reshape(size, 1, size))
    return g.ConvTranspose(frames, one, strides=(step,))


def fill_up(g, x, count):
    """Zeros behind what is shorter than ``count`` along the last axis."""
    size = g.size_of(x, x.rank - 1)
    if isinstance(size, int) and isinstance(count, int):
        return g.Pad(x, [0] * (2 * x.rank - 1) + [count - size]) if count > size else x
    missing = g.Max(g.Sub(g.shape_from([count]), size), g.const([0]))
    return g.Pad(x, g.Concat([0] * (2 * x.rank - 1), missing, axis=0))
