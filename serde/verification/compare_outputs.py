"""One output compared with what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from serde.ir.graph import DType

Array = np.ndarray[Any, Any]
Places = Literal["exact", "finite", "numbers"]  # of infinities and NaN
# What an output may differ by, as a share of its largest magnitude.
TOLERANCE = {DType.FLOAT16: 2e-2, DType.BFLOAT16: 1e-1, DType.FLOAT64: 1e-6}
FLOAT32_TOLERANCE = 1e-4
MOST_TOLERANCE = 0.1  # however much slack there is
VANISHING = 1e-30  # products that underflow on the way have no share of their bits right
# The bins of a histogram: equal, below 2^LOWEST of the tolerance, one for each power of two from
# there on, 2^HIGHEST of the tolerance and more.
LOWEST, HIGHEST = -16, 4


@dataclass
class WorstElement:
    """The element that is furthest off, or the first that differs where numbers do not tell."""

    index: tuple[int, ...]
    value: Any
    expected: Any

    def __str__(self) -> str:
        return f"element {list(self.index)} is {self.value}, not {self.expected}"


@dataclass
class OutputComparison:
    """One output: how far it is from what it should be; ``passed`` says whether that is enough.

    ``reason`` says why it is not, or on what ground it is although it differs. ``histogram``
    counts the elements by their error: equal ones, then those below each power of two, from
    2^LOWEST to 2^HIGHEST, of the tolerance, then those beyond.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float
    max_rel: float
    rmse: float
    cosine: float
    tolerance: float
    passed: bool
    reason: str = ""
    histogram: tuple[int, ...] = ()
    worst: WorstElement | None = None


def compare_values(
    name: str, got: Any, expected: Any, places: Places = "exact", slack: float = 1, least: float = 0
) -> Iterator[OutputComparison]:
    """Compare an output; of a sequence each of its tensors."""
    if not isinstance(expected, list) or not isinstance(got, list):
        yield compare(name, got, expected, places, slack, least)
    elif len(got) != len(expected):
        shown = OutputComparison(name, (len(got),), "sequence", 0.0, 0.0, 0.0, 1.0, 0.0, True)
        yield mark_failed(shown, f"{len(got)} tensors where the source has {len(expected)}")
    else:
        for at, (g, w) in enumerate(zip(got, expected, strict=True)):
            yield compare(f"{name}[{at}]", g, w, places, slack, least)


def compare(
    name: str, got: Any, expected: Any, places: Places = "exact", slack: float = 1, least: float = 0
) -> OutputComparison:
    """Compare one output with what it should be.

    The tolerance is a share of the largest finite magnitude of ``expected``; integers and
    booleans must be equal, and so must shapes, types, and the places of NaN and infinity. With
    ``places="finite"`` NaN may stand for an infinity; with ``"numbers"`` elements are not compared
    where either is NaN, which kernels of one framework do not agree on. ``slack`` is a
    factor of the tolerance, which is the share ``least`` at least.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    dtype = DType.of(expected.dtype)
    shown = OutputComparison(name, got.shape, got.dtype.name, 0.0, 0.0, 0.0, 1.0, 0.0, True)
    if got.shape != expected.shape:
        return mark_failed(
            shown, f"shape {list(got.shape)} where the source has {list(expected.shape)}"
        )
    if got.dtype != expected.dtype:
        return mark_failed(shown, f"{got.dtype} elements where the source has {expected.dtype}")
    if dtype.kind not in "fc":
        differing = _differ(got, expected)
        if not differing.any():
            return shown
        return mark_failed(shown, "not equal", _find_first(differing, got, expected))
    a, b = _numbers(got), _numbers(expected)
    if places == "numbers":
        a, b = (x[~(np.isnan(a) | np.isnan(b))] for x in (a, b))
    finite = np.isfinite(b)
    is_same = places == "finite" or np.array_equal(a[~finite], b[~finite], equal_nan=True)
    if not np.array_equal(finite, np.isfinite(a)) or not is_same:
        reason = "NaN or infinity in other places than in the source"
        return mark_failed(shown, reason, _find_other_place(got, expected))
    a, b = a[finite], b[finite]
    if not a.size:
        return shown
    share = TOLERANCE.get(dtype, FLOAT32_TOLERANCE)
    _measure(shown, a, b, max(share, least, min(share * slack, MOST_TOLERANCE)))
    if not shown.passed:
        shown.worst = _find_worst(got, expected)
    return shown


def narrow_both(got: Any, expected: Any) -> tuple[Any, Any]:
    """Two outputs of floats in the type of fewer bits of the two; others as they are."""
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        pairs = [narrow_both(a, b) for a, b in zip(got, expected, strict=True)]
        return [a for a, _ in pairs], [b for _, b in pairs]
    if not isinstance(got, np.ndarray) or not isinstance(expected, np.ndarray):
        return got, expected
    types = DType.of(got.dtype), DType.of(expected.dtype)
    if types[0] is types[1] or {t.kind for t in types} != {"f"}:
        return got, expected
    dtype = min(types, key=lambda t: t.bits).numpy
    with np.errstate(over="ignore"):
        return got.astype(dtype), expected.astype(dtype)


def _differ(got: Array, expected: Array) -> Array:
    return np.asarray(got != expected)


def _find_first(differing: Array, got: Array, expected: Array) -> WorstElement:
    index = np.unravel_index(int(np.argmax(differing)), differing.shape)
    return WorstElement(tuple(map(int, index)), _plain(got[index]), _plain(expected[index]))


def _find_other_place(got: Array, expected: Array) -> WorstElement:
    """The first element that is no number, or another one than the source's."""
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, expected))
    differing = (np.isfinite(a) != np.isfinite(b)) | (~np.isfinite(b) & (a != b))
    return _find_first(differing & ~(np.isnan(a) & np.isnan(b)), got, expected)


def _find_worst(got: Array, expected: Array) -> WorstElement:
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, expected))
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)
    at = np.unravel_index(int(np.nanargmax(np.where(np.isfinite(gap), gap, -1))), gap.shape)
    return WorstElement(tuple(map(int, at)), _plain(got[at]), _plain(expected[at]))


def _plain(element: Any) -> Any:
    """A Python number for one of NumPy's or ml_dtypes'."""
    if isinstance(element, (str, bytes)):
        return element
    number = np.asarray(element)
    if number.dtype.kind == "c":
        return str(element)
    return number.item() if number.dtype.kind in "fiubO" else float(element)


def not_run(name: str, reason: str) -> OutputComparison:
    """An output that could not be computed."""
    nan = float("nan")
    return OutputComparison(name, (), "", nan, nan, nan, nan, nan, False, reason)


def _numbers(array: Array) -> Array:
    """The elements as float64, complex ones as two each."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128).ravel().view(np.float64)
    return array.astype(np.float64).ravel()


def _measure(shown: OutputComparison, a: Array, b: Array, share: float) -> OutputComparison:
    gap = np.abs(a - b)
    scale = float(np.abs(b).max())
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    shown.max_abs = float(gap.max())
    shown.max_rel = float((gap / np.maximum(np.abs(b), 1e-3 * scale + VANISHING)).max())
    shown.rmse = float(np.sqrt(np.mean(gap**2)))
    shown.cosine = float(a @ b) / norms if norms else 1.0
    shown.tolerance = max(share * scale, VANISHING) if scale else share
    shown.passed = shown.max_abs <= shown.tolerance
    shown.histogram = _count_errors(gap, shown.tolerance)
    shown.reason = "" if shown.passed else f"off by {shown.max_abs:.3g}"
    return shown


def _count_errors(gap: Array, tolerance: float) -> tuple[int, ...]:
    """The histogram of errors, by the exponent of their share of the tolerance."""
    exponents = np.frexp(gap / tolerance)[1]  # 2^(e-1) <= share < 2^e
    bins = np.clip(exponents, LOWEST, HIGHEST + 1) - LOWEST + 1
    counts = np.bincount(np.where(gap == 0, 0, bins), minlength=HIGHEST - LOWEST + 3)
    return tuple(counts.tolist())


def mark_failed(
    shown: OutputComparison, reason: str, worst: WorstElement | None = None
) -> OutputComparison:
    """Enter why an output is not what it should be."""
    shown.passed, shown.reason, shown.worst = False, reason, worst
    shown.max_abs = shown.max_rel = shown.rmse = float("nan")
    shown.cosine = float("nan")
    return shown
