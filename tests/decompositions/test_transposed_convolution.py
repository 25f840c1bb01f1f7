"""Transposed convolutions as a convolution for each phase, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions.transposed_convolution import Phase, convolve_phases, find_phases, reverse
from testing.decomposed import compute

DRAWS = np.random.default_rng(0)
FORMS = [  # kernel, pads, output_padding, stride of rows and of columns
    ((4, 4), ((1, 1), (1, 1)), (0, 0), 2), ((3, 3), ((1, 0), (0, 1)), (0, 0), 2),
    ((3, 4), ((1, 1), (1, 1)), (1, 0), 2), ((6, 5), ((2, 1), (1, 1)), (0, 0), 3),
    ((3, 1), ((1, 1), (0, 0)), (0, 0), 1), ((2, 2), ((0, 0), (0, 0)), (0, 0), 2),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "pads", "more", "stride"), FORMS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_phases_together_are_the_layer(kernel, pads, more, stride, has_bias) -> None:
    x = DRAWS.standard_normal((2, 3, 5, 4)).astype(np.float32)
    w = DRAWS.standard_normal((3, 2, *kernel)).astype(np.float32)
    b = [DRAWS.standard_normal(2).astype(np.float32)] if has_bias else []
    phases = [find_phases(k, p, m, stride) for k, p, m in zip(kernel, pads, more, strict=True)]
    assert all(len(p) == stride for p in phases)
    flat = [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]
    (expected,) = compute(
        lambda g, x, w, *b: g.ConvTranspose(
            x, w, *b, strides=[stride] * 2, pads=flat, output_padding=list(more)
        ), x, w, *b,
    )  # fmt: skip
    (got,) = compute(
        lambda g, x, w, *b: convolve_phases(g, x, w, b[0] if b else None, *phases), x, w, *b
    )
    assert got.shape == (2, 2, 5 * stride, 4 * stride)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kernel", "pads", "more", "stride"), [
    (5, (1, 1), 0, 2), (3, (0, 0), 0, 2), (1, (-1, 0), 0, 2), (2, (2, -2), 0, 2),
])  # fmt: skip
def test_results_of_another_size_have_no_phases(kernel, pads, more, stride) -> None:
    """Nor those with a phase that no row of the kernel is of, or that is cut off."""
    assert find_phases(kernel, pads, more, stride) == []


def test_a_phase_that_runs_forwards_is_that_of_an_image_turned() -> None:
    """Its rows are the same, from the first to the last; pads change places."""
    phase = Phase(3, -2, 2, (0, 1))
    turned = phase.run_forwards
    rows = np.arange(4)
    np.testing.assert_array_equal(rows[turned.first : turned.end : turned.step], [1, 3])
    assert (turned, turned.run_forwards) == (Phase(1, 2, 2, (1, 0)), phase)
    assert (phase.end < -4, Phase(3, -1, 2, (0, 0)).end) == (True, 1)


@pytest.mark.parametrize("axes", [[], [0], [2, 1]])
def test_axes_run_backwards(axes: list[int]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (got,) = compute(lambda g, x: g.Identity(reverse(g, x, axes)), x)
    np.testing.assert_array_equal(got, np.flip(x, axes))
