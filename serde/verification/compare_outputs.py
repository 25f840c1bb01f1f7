"""One output compared with what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from serde.errors import UsageError
from serde.io.memory import MOST, find_memory_limit
from serde.ir.graph import DType

Array = np.ndarray[Any, Any]
Places = Literal["exact", "finite", "numbers"]  # of infinities and NaN
# What an output may differ by, as a share of its largest magnitude.
TOLERANCE = {DType.FLOAT16: 2e-2, DType.BFLOAT16: 1e-1, DType.FLOAT64: 1e-6}
FLOAT32_TOLERANCE = 1e-4
LEAST_NORMAL = 2.0**-14  # of float16; smaller numbers have fewer digits
MOST_TOLERANCE = 0.1  # however much slack there is
NONE = "not compared"  # why an output passes
COMPARING = 80  # bytes of memory that comparing takes for each element
VANISHING = 1e-30  # products that underflow on the way have no share of their bits right
# The bins of a histogram: equal, below 2^LOWEST of the tolerance, one for each power of two from
# there on, 2^HIGHEST of the tolerance and more.
LOWEST, HIGHEST = -16, 4


class Tolerance(NamedTuple):
    """What a user allows an element to differ by: ``atol + rtol * |expected|``, as NumPy does."""

    rtol: float = 0.0
    atol: float = 0.0

    @classmethod
    def of(cls, rtol: float | None, atol: float | None) -> Tolerance | None:
        """The tolerance that is given, if any.

        Raises:
            UsageError: for one that is negative or no number.
        """
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and not (isinstance(value, (int, float)) and 0 <= value < np.inf):
                raise UsageError(f"{name} is {value!r}: give a finite number, 0 or more")
        return None if rtol is None and atol is None else cls(rtol or 0.0, atol or 0.0)

    def allow(self, expected: Array, slack: float) -> Array:
        """What each element may differ by."""
        rtol = max(self.rtol, min(self.rtol * slack, MOST_TOLERANCE))
        return np.asarray(self.atol * slack + rtol * np.abs(expected))


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
    2^LOWEST to 2^HIGHEST, of the tolerance, then those beyond. Of integers ``max_abs`` is one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float | int
    max_rel: float
    rmse: float
    cosine: float
    tolerance: float
    passed: bool
    reason: str = ""
    histogram: tuple[int, ...] = ()
    worst: WorstElement | None = None

    @property
    def is_integer(self) -> bool:
        """Whether ``max_abs`` is a difference of integers."""
        return isinstance(self.max_abs, int)

    @property
    def is_compared(self) -> bool:
        """Whether any element was compared, of floats a number; or there is none."""
        is_float = self.dtype.lstrip("b").startswith(("float", "complex"))
        has_numbers = any(self.histogram) or not is_float or 0 in self.shape
        return has_numbers and not self.reason.startswith(NONE)

    def describe(self) -> tuple[str, str, str]:
        """The numbers of its line, the verdict, and the reason."""
        measures = {"max_abs": self.max_abs, "max_rel": self.max_rel, "cosine": self.cosine,
                    "tolerance": self.tolerance}  # fmt: skip
        known = ((n, x) for n, x in measures.items() if not np.isnan(x))
        numbers = ", ".join(f"{n} {show_measure(x, '.8f' if n == 'cosine' else '.3g')}"
                            for n, x in known)  # fmt: skip
        head = f"{self.name} {self.dtype}{list(self.shape)}: {numbers}{': ' if numbers else ''}"
        reason = f" ({self.reason})" if self.reason else ""
        return head, "pass" if self.passed else "FAIL", reason

    def __str__(self) -> str:
        return "".join(self.describe())


def show_measure(number: float | int, form: str = ".3g") -> str:
    """A measure, short; a difference of integers whole."""
    return f"{number:,}" if isinstance(number, int) else f"{number:{form}}"


def describe_size(value: Any) -> str:
    """Why an output, or each of a list, takes too much memory to compare; nothing where it fits."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(describe_size, value)), "")
    most, needed = find_memory_limit(), np.size(value) * COMPARING >> 20
    if most is None or needed <= most:
        return ""
    return (
        f"comparing {np.size(value):,} elements takes {needed:,} MiB of memory, more than the "
        f"{most:,} MiB it may take; the variable {MOST} of the environment allows more"
    )


def compare_values(
    name: str, got: Any, expected: Any, places: Places = "exact", slack: float = 1,
    least: float = 0, tolerance: Tolerance | None = None,
) -> Iterator[OutputComparison]:  # fmt: skip
    """Compare an output; of a sequence each of its tensors."""
    rest = places, slack, least, tolerance
    if not isinstance(expected, list) or not isinstance(got, list):
        yield compare(name, got, expected, *rest)
    elif len(got) != len(expected):
        shown = OutputComparison(name, (len(got),), "sequence", 0.0, 0.0, 0.0, 1.0, 0.0, True)
        yield mark_failed(shown, f"{len(got)} tensors where the source has {len(expected)}")
    else:
        for at, (g, w) in enumerate(zip(got, expected, strict=True)):
            yield compare(f"{name}[{at}]", g, w, *rest)


def compare(
    name: str, got: Any, expected: Any, places: Places = "exact", slack: float = 1,
    least: float = 0, tolerance: Tolerance | None = None,
) -> OutputComparison:  # fmt: skip
    """Compare one output with what it should be.

    The tolerance is a share of the largest finite magnitude of ``expected``; integers and
    booleans must be equal, and so must shapes, types, and the places of NaN and infinity. With
    ``places="finite"`` NaN may stand for an infinity; with ``"numbers"`` elements are not compared
    where either is NaN, which kernels of one framework do not agree on. ``slack`` is a
    factor of the tolerance, which is the share ``least`` at least. A ``tolerance`` that a user
    gives takes the place of all this, and is that of integers as well.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    dtype = DType.of(expected.dtype)
    named = DType.of(got.dtype).title
    shown = OutputComparison(name, got.shape, named, 0.0, 0.0, 0.0, 1.0, 0.0, True)
    if got.shape != expected.shape:
        return mark_failed(
            shown, f"shape {list(got.shape)} where the source has {list(expected.shape)}"
        )
    if got.dtype != expected.dtype:
        return mark_failed(shown, f"{got.dtype} elements where the source has {expected.dtype}")
    if dtype.kind in "iu":
        return _compare_integers(shown, got, expected, tolerance)
    if dtype.kind not in "fc":
        differing = _differ(got, expected)
        if not differing.any():
            return shown
        reason = f"not equal: {int(differing.sum()):,} of {differing.size:,} elements"
        return mark_failed(shown, reason, _find_first(differing, got, expected))
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
    share = find_share(expected)
    scale = float(np.abs(b).max())
    if tolerance is None:
        share = max(share, least, min(share * slack, MOST_TOLERANCE))
        is_half = dtype is DType.FLOAT16 or least == TOLERANCE[DType.FLOAT16]
        normal = max(scale, LEAST_NORMAL) if is_half else scale
        allowed = np.asarray(max(share * normal, VANISHING) if scale else share)
    else:
        allowed = tolerance.allow(b, slack)
    _measure(shown, a, b, allowed)
    if not shown.passed:
        every = allowed if tolerance is None else tolerance.allow(_numbers(expected), slack)
        shown.worst = _find_worst(got, expected, every)
    return shown


def _compare_integers(
    shown: OutputComparison, got: Array, expected: Array, tolerance: Tolerance | None
) -> OutputComparison:
    """Compare integers, which are equal unless a user allows more."""
    differing = _differ(got, expected)
    if not differing.any():
        return shown
    widest = np.uint64 if DType.of(expected.dtype).kind == "u" else np.int64
    a, b = (x.astype(widest).ravel() for x in (got, expected))
    gap = np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)  # wraps right
    allowed = np.asarray(0.0) if tolerance is None else tolerance.allow(_numbers(expected), 1)
    _measure(shown, _numbers(got), _numbers(expected), allowed)
    shown.max_abs = int(gap.max())
    shown.passed = bool((gap <= allowed).all())
    count = f"{int(differing.sum()):,} of {differing.size:,} elements"
    shown.reason = "" if shown.passed else f"not equal: {count}, by {shown.max_abs:,} at most"
    if not shown.passed:
        at = np.unravel_index(int(np.argmax(gap)), got.shape)
        shown.worst = WorstElement(tuple(map(int, at)), _plain(got[at]), _plain(expected[at]))
    return shown


def find_share(expected: Any) -> float:
    """The share of its largest magnitude that an output may differ by, by its element type."""
    return TOLERANCE.get(DType.of(np.asarray(expected).dtype), FLOAT32_TOLERANCE)


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


def _find_worst(got: Array, expected: Array, allowed: Array) -> WorstElement:
    """The element that is furthest off, as a share of what it may be."""
    a, b = _numbers(got), _numbers(expected)
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)
        share = np.where(np.isfinite(a) & np.isfinite(b), _share_of(gap, allowed), -1)
    at = _find_widest(share, gap)
    index = np.unravel_index(at // (a.size // got.size), got.shape)
    return WorstElement(tuple(map(int, index)), _plain(got[index]), _plain(expected[index]))


def _share_of(gap: Array, allowed: Array) -> Array:
    """Differences as shares of what is allowed: 0 where there is none, whatever is allowed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, gap / allowed)


def _find_widest(share: Array, gap: Array) -> int:
    """Where the largest share is; of several, as where nothing is allowed, the largest gap."""
    return int(np.argmax(np.where(share == share.max(), gap, -1)))


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


def _measure(shown: OutputComparison, a: Array, b: Array, allowed: Array) -> OutputComparison:
    """Enter how far finite numbers are from others, and from what is allowed, of all or of each."""
    gap = np.abs(a - b)
    scale = float(np.abs(b).max())
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    share = _share_of(gap, allowed)
    shown.max_abs = float(gap.max())
    shown.max_rel = float((gap / np.maximum(np.abs(b), 1e-3 * scale + VANISHING)).max())
    shown.rmse = float(np.sqrt(np.mean(gap**2)))
    shown.cosine = float(a @ b) / norms if norms else 1.0
    at = _find_widest(share, gap)
    shown.tolerance = float(allowed if not allowed.ndim else allowed[at])
    shown.passed = bool((gap <= allowed).all())
    shown.histogram = _count_errors(gap, share)
    shown.reason = "" if shown.passed else f"off by {float(gap[at]):.3g}"
    return shown


def _count_errors(gap: Array, share: Array) -> tuple[int, ...]:
    """The histogram of errors, by the exponent of their share of the tolerance."""
    exponents = np.frexp(np.minimum(share, 2.0 ** (HIGHEST + 1)))[1]  # 2^(e-1) <= share < 2^e
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
