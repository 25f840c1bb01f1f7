"""Fourier transforms and sketches: MXNet has them on GPUs only, so NumPy tells what is right."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import case, f32, of, operator_test, refuses


def compute_fft(case):
    y = np.fft.fft(case.inputs[0])
    parts = np.stack([y.real, y.imag], -1)
    return [parts.reshape(*y.shape[:-1], -1).astype("float32")]


def turned_back(case):
    """MXNet's own test divides by the length afterwards."""
    x = case.inputs[0]
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    y = np.fft.ifft(pairs[..., 0] + 1j * pairs[..., 1]).real
    return [(y * y.shape[-1]).astype("float32")]


def count_sketch(case):
    x, places, signs = case.inputs
    y = np.zeros((*x.shape[:-1], int(case.attrs["out_dim"])), "float32")
    for i, (place, sign) in enumerate(zip(places[0].astype(int), signs[0], strict=True)):
        y[..., place] += sign * x[..., i]
    return [y]


PLACES, SIGNS = of([[0, 1, 2, 1]]), of([[1, -1, 1, 1]])
CASES = [
    *(case("_contrib_fft", f32(*s)).but(oracle=compute_fft) for s in ((2, 4), (2, 5), (2, 3, 6))),
    *(case("_contrib_ifft", f32(*s)).but(oracle=turned_back) for s in ((2, 4), (2, 10), (3, 2, 6))),
    *(
        case("_contrib_count_sketch", f32(*s, 4), PLACES, SIGNS, out_dim=n).but(oracle=count_sketch)
        for s, n in (((2,), 3), ((3,), 5), ((2, 3, 2), 3))
    ),
    refuses("_contrib_count_sketch", f32(2, 4), PLACES, SIGNS, out_dim=0, says="out_dim=0"),
]
test_spectra = operator_test(CASES)
