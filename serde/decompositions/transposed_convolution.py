"""Transposed convolutions of images, as a convolution for each phase of the stride.

A phase is every ``stride``-th row and column of the result. It is a convolution of the image by
every ``stride``-th row and column of the kernel, which runs backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from serde.ir.graph import Value

FROM_THE_FRONT = -(2**63)  # the end of a Slice that runs backwards through all


def reverse(g, x: Value, axes: Sequence[int]) -> Value:
    """``x`` backwards along ``axes``."""
    n = len(axes)
    return g.Slice(x, [-1] * n, [FROM_THE_FRONT] * n, list(axes), [-1] * n) if n else x


class Phase(NamedTuple):
    """Every ``stride``-th row of a result: a convolution by ``taps`` rows of the kernel.

    They are ``first``, ``first + step`` and so on; ``pads`` are the zeros before and behind the
    image.
    """

    first: int
    step: int
    taps: int
    pads: tuple[int, int]

    @property
    def end(self) -> int:
        """The end of a Slice of its rows."""
        end = self.first + self.taps * self.step
        return end if end >= 0 else FROM_THE_FRONT

    @property
    def run_forwards(self) -> Phase:
        """The phase of an image by 180 degrees, in which the kernel runs forwards."""
        first = self.first + (self.taps - 1) * self.step
        return Phase(first, -self.step, self.taps, self.pads[::-1])


def find_phases(kernel: int, pads: Sequence[int], more: int, stride: int) -> list[Phase]:
    """The phases of a result that has ``stride`` rows for each of the image; none for others.

    Its row ``o`` is the sum over ``t`` of row ``first + t * stride`` of the kernel times row
    ``shift + o // stride - t`` of the image. ``more`` is ``output_padding``.
    """
    if kernel - sum(pads) + more != stride:
        return []
    results = []
    for row in range(stride):
        shift, first = divmod(row + pads[0], stride)
        taps = len(range(first, kernel, stride))
        last = first + (taps - 1) * stride
        results.append(Phase(last, -stride, taps, (taps - 1 - shift, shift)))
    return [] if any(phase.taps == 0 or min(phase.pads) < 0 for phase in results) else results


def convolve_phases(g, x: Value, w: Value, b: Value | None, *by_axis: Sequence[Phase]) -> Value:
    """The result of the phases of rows and of columns. ``w``: input channels before output ones."""
    parts = []
    for rows, columns in product(*by_axis):
        both = rows, columns
        starts, ends, steps = zip(*((p.first, p.end, p.step) for p in both), strict=True)
        kernel = g.Transpose(g.Slice(w, starts, ends, [2, 3], steps), perm=(1, 0, 2, 3))
        pads = [phase.pads[end] for end in (0, 1) for phase in both]
        shape = [phase.taps for phase in both]
        parts.append(g.Conv(x, kernel, b, kernel_shape=shape, pads=pads))
    stride = len(by_axis[0])
    return parts[0] if stride == 1 else g.DepthToSpace(g.Concat(*parts, axis=1), blocksize=stride)
