"""Calls of transforms, convolutions, and what measures signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call

NORMS = (None, "backward", "ortho", "forward", "other")


def transform(function: Any, is_complex: bool = True) -> Any:
    """Calls of a transform along an axis."""

    def case(d: Draw) -> Call:
        x = d.array("f", rank=(1, 3), least=2)
        y = d.array("f", shape=x.shape, dtype=x.dtype) if is_complex and d.flag() else None
        apply = lambda x, y, *a, **o: function(x if y is None else x + y * 1j, *a, **o)
        return call(apply, x, y, d.pick(None, 2, 3, 5), d.axis(x), norm=d.pick(*NORMS))

    return case


def transform_several(function: Any) -> Any:
    """Calls of a transform over several axes."""

    def case(d: Draw) -> Call:
        x = d.array("f", rank=(2, 3), least=2)
        sizes, axes = d.pick((None, (0, -1)), ((3, 4), (0, 1)), ((2, 3), (-1, -2)), (None, (5,)))
        return call(function, x, sizes, axes, norm=d.pick(*NORMS[:-1]))

    return case


def make_shift(function: Any) -> Any:
    """Calls of a shift of a spectrum."""
    return lambda d: call(function, (x := d.array(rank=(1, 3))), d.axes(x))


def make_convolve(function: Any) -> Any:
    """Calls of a convolution of two vectors."""
    return lambda d: call(function, d.array("iuf", rank=(1, 1), low=-4, high=4), d.array(
        "iuf", rank=(1, 1), low=-4, high=4), d.pick("full", "same", "valid", "else"))  # fmt: skip


def draw_interp(d: Draw) -> Call:
    places = [[-1.0, 0, 2], [3.0, 4, 1]]
    return call(np.interp, d.array("iuf"), *places, left=d.pick(None, 7), right=d.pick(None, 9))


def make_cov(function: Any) -> Any:
    """Calls of a covariance."""
    return lambda d: call(function, d.array("if", rank=(1, 2), least=2), rowvar=d.flag())


SEVERAL = "fft2 ifft2 fftn ifftn rfft2 rfftn irfft2 irfftn".split()
CASES: dict[str, Any] = {
    **{f"np.fft.{n}": transform(getattr(np.fft, n)) for n in ("fft", "ifft", "irfft", "hfft")},
    **{f"np.fft.{n}": transform(getattr(np.fft, n), False) for n in ("rfft", "ihfft")},
    **{f"np.fft.{n}": transform_several(getattr(np.fft, n)) for n in SEVERAL},
    "np.fft.fftshift": make_shift(np.fft.fftshift),
    "np.fft.ifftshift": make_shift(np.fft.ifftshift),
    "np.convolve": make_convolve(np.convolve),
    "np.correlate": make_convolve(np.correlate),
    "np.interp": draw_interp,
    "np.cov": make_cov(np.cov),
    "np.corrcoef": lambda d: call(lambda x: np.corrcoef(x + np.arange(x.size).reshape(x.shape)
                                                        ** 2), d.array("f", shape=(3, 4))),
    "np.gradient": lambda d: call(np.gradient, (x := d.array("if", rank=(1, 2), least=2)),
                                  d.pick(1, 0.5), axis=d.pick(None, d.axis(x))),
    "np.polyval": lambda d: call(np.polyval, [1, -2, 3], d.array("if", low=-8, high=8)),
    "np.apply_along_axis": lambda d: call(np.apply_along_axis, d.pick(
        lambda v: v.sum(), lambda v: v[::-1] * 2), d.axis(x := d.array("if", rank=(1, 3))), x),
}  # fmt: skip
