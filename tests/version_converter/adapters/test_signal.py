"""Fourier transforms at opsets without them; of frames, against NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.from_ir import from_ir
from serde.version_converter.adapters import signal as signals
from testing.onnx_live import ir_of, run
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

WINDOW = np.hanning(16)
SIGNALS = {"float[2,N] x": (2, 50), "float[2,N,1] x": (2, 50, 1), "float[2,N,2] x": (2, 50, 2)}
FORMS = {  # operands behind the step, and whether frames are known when the file is written
    "a window": ("w", True),
    "a length": (", length", True),
    "both": ("w, length", True),
    "a computed window": ("v", False),
}
DRAWS = np.random.default_rng(11)
REAL = DRAWS.standard_normal((2, 3, 4, 1)).astype(np.float32)
COMPLEX = DRAWS.standard_normal((2, 3, 4, 2)).astype(np.float32)
TRANSFORMS = [
    Single("DFT", (REAL, None, np.int64(1))),
    Single("DFT", (REAL, np.int64(6), np.int64(-2)), {"onesided": 1}),
    Single("DFT", (COMPLEX, np.int64(5), np.int64(1)), {"inverse": 1}),
]


def transform(x: np.ndarray, window: np.ndarray, one_sided: int) -> np.ndarray:
    """Frames of 16, 6 apart, weighed and transformed."""
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[2] == 2 else 0)
    starts = range(0, x.shape[1] - 15, 6)
    frames = np.stack([signal[:, at : at + 16] for at in starts], axis=1) * window
    spectra = np.fft.fft(frames)[..., : 9 if one_sided else 16]
    return np.stack([spectra.real, spectra.imag], axis=-1)


@pytest.mark.parametrize(("version", "op"), rules_of(signals))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("one_sided", [0, 1])
def test_frames(form, signal, one_sided):
    operands, is_known = FORMS[form]
    numbers = ", ".join(map(str, WINDOW))
    graph = ir_of(
        f"g ({signal}) => (float[2,F,B,2] y) <int64 step = {{6}}, int64 length = {{16}}, "
        f"float[16] w = {{{numbers}}}> {{ z = ReduceMin<keepdims = 0>(x) n = Sub(z, z) "
        f"v = Add(w, n) y = STFT<onesided = {one_sided}>(x, step, {operands}) }}"
    )
    x = np.random.default_rng(0).standard_normal(SIGNALS[signal], np.float32)
    (got,) = run(graph, {"x": x}, 16)
    window = np.ones(16) if form == "a length" else WINDOW
    expected = transform(x.reshape(2, 50, -1).astype(np.float64), window, one_sided)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    operators = {node.op for node in from_ir(graph, 16).nodes}
    assert ("Conv" in operators) == is_known


@pytest.mark.parametrize("case", TRANSFORMS, ids=lambda c: c.id)
def test_axes_and_lengths_that_are_computed(case: Single) -> None:
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])
