"""Differences that are no fault of a conversion: ties, and outputs that roundings decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import DType, Graph
from serde.spec.traits import EXTREMES, SORTS
from serde.verification.compare_outputs import OutputComparison, compare_values
from serde.verification.input_sets import NORMAL, NOT_FINITE, TIES, InputSet
from serde.verification.source_runs import SourceModel
from serde.verification.ties import are_tied_indices, count_new_rows, upstream_ops

Array = np.ndarray[Any, Any]
SEED = 1
LAST_DIGITS = 4.0  # by how many units in the last place inputs are moved
# The same before operators that sort: scores near each other change places once the roundings of
# all layers before them have added up.
LAST_DIGITS_SORTED = (4.0, 64.0, 1024.0)
HALF_STEP = 2.0**-10  # between numbers of float16, which results in fewer bits are compared by
# Operators that round once, if at all, and so give the same everywhere.
EXACT = frozenset(
    "Abs Add And Cast Ceil Clip Concat Div Equal Expand Flatten Floor Gather GatherElements "
    "GatherND Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Max MaxPool Min Mul Neg "
    "Not Or Pad ReduceMax ReduceMin Relu Reshape Round Sign Slice Split Sqrt Squeeze Sub Tile "
    "Transpose Unsqueeze Where Xor".split()
)
# Operators before which a rounding may decide between two neighbours.
QUANTIZING = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
SHARE = 1 / 16  # of a difference; what the source itself moves by, as roundings inside add up


class Move(NamedTuple):
    """A change of floats by ``units`` in the last place, of equal numbers ``apart`` or together.

    ``step`` is the least that a unit is, as a share.
    """

    units: float
    apart: bool
    step: float = 0


class Judge:
    """Compares outputs of a result with those of its source.

    An output that differs is right where the source computes it when it is run in another way,
    where only equals changed places, where elements that roundings decide are as far from the
    source's as those are from its own when it is run in another way, or, on other than normal
    inputs, where the source itself changes as much once its inputs change in their last digits, if
    it computes with roundings that are not the same everywhere. So it is where the result has fewer
    bits and the source sorts. The last two are no comparison: ``not_compared`` says so.

    ``share`` of its largest magnitude is what an output may differ by at least.
    """

    def __init__(
        self, model: SourceModel | None, ir: Graph,
        probe: Callable[[str, InputSet], Sequence[Any]], share: float = 0,
    ) -> None:  # fmt: skip
        self.share = share
        self.model, self.ir, self.probe = model, ir, probe
        self.not_compared: list[str] = []
        self._results: dict[tuple[str, str, Move | None], Sequence[Any] | None] = {}

    def compare(
        self, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any]
    ) -> list[OutputComparison]:
        """Compare the outputs as they came of ``inputs``."""
        diffs = []
        for at in range(len(expected)):
            diffs += self._compare(at, inputs, got, expected)
        return diffs

    def _compare_values(
        self, name: str, got: Any, expected: Any, inputs: InputSet
    ) -> list[OutputComparison]:
        """Compare one output, with the tolerance for ``inputs``."""
        return list(compare_values(name, got, expected, inputs.places, inputs.slack, self.share))

    def _compare(
        self, at: int, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any]
    ) -> list[OutputComparison]:
        value, extra = self.ir.outputs[at], inputs.name != NORMAL
        diffs = self._compare_values(value.name, got[at], expected[at], inputs)
        if all(c.passed for c in diffs):
            return diffs
        for other in self._other_results(at, inputs):
            again = self._compare_values(value.name, got[at], other, inputs)
            if all(c.passed for c in again):
                return again
        ops = upstream_ops(self.ir, value)
        sorts = bool(ops & SORTS)
        rows = count_new_rows(at, got, expected) if sorts else None
        if rows:
            self._note(
                f"{value.name}: {rows:,} of its rows; boxes whose scores are next to each other "
                "change places, and suppress others"
            )
        if rows is not None or (sorts and self._is_tied(at, inputs, got, expected)):
            return _pass(diffs, "equals stand in another order")
        if self.share and sorts and self._is_unstable(at, inputs, diffs, expected[at], sorts):
            self._note(
                f"{value.name}: the source itself sorts otherwise when its inputs change in the "
                "last digits of float16"
            )
            return _pass(diffs, "not compared")
        if not ops <= EXACT and self._differs_by_itself(at, inputs, diffs, expected[at]):
            what = (
                "quantized elements next to each other"
                if ops & QUANTIZING
                else "elements that roundings decide"
            )
            self._note(
                f"{value.name}: {what}; the source differs as much with and without its "
                "runtime's optimizers"
            )
            return _pass(diffs, what)
        # where NaN may be the largest, or none
        if (sorts or ops & EXTREMES) and inputs.name in NOT_FINITE:
            self._note(
                f"{value.name} on {inputs.name} inputs: runtimes sort and compare NaN in different "
                "ways"
            )
            return _pass(diffs, "not compared")
        if extra and not ops <= EXACT and self._is_unstable(at, inputs, diffs, expected[at], sorts):
            self._note(
                f"{value.name} on {inputs.name} inputs: the source itself changes as much when "
                "its inputs change in the last digits"
            )
            return _pass(diffs, "not compared")
        return diffs

    def _note(self, text: str) -> None:
        if text not in self.not_compared:
            self.not_compared.append(text)

    def _is_tied(
        self, at: int, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any]
    ) -> bool:
        if isinstance(got[at], list) or isinstance(expected[at], list):
            return False

        def value_of(name: str) -> Array | None:
            if name in inputs.feeds:
                return inputs.feeds[name]
            try:
                return np.asarray(self.probe(name, inputs)[0])
            except SerdeError:
                return None

        arrays = np.asarray(got[at]), np.asarray(expected[at])
        return are_tied_indices(self.ir, self.ir.outputs[at], *arrays, value_of)

    def _other_results(self, at: int, inputs: InputSet) -> Iterator[Any]:
        """What the source computes for an output when it is run in other ways."""
        for setting in () if self.model is None else self.model.settings:
            results = self._result(inputs, setting)
            if results is not None:
                yield results[at]

    def _differs_by_itself(
        self, at: int, inputs: InputSet, diffs: Sequence[OutputComparison], expected: Any
    ) -> bool:
        """Whether the source, run in another way, is as far from itself as the result is."""
        for other in self._other_results(at, inputs):
            changes = self._compare_values("", other, expected, inputs)
            if len(changes) == len(diffs) and all(
                f.passed or c.max_abs >= f.max_abs for c, f in zip(changes, diffs, strict=True)
            ):
                return True
        return False

    def _is_unstable(
        self,
        at: int,
        inputs: InputSet,
        diffs: Sequence[OutputComparison],
        expected: Any,
        sorts: bool,
    ) -> bool:
        step = HALF_STEP if self.share else 0
        for units in LAST_DIGITS_SORTED if sorts and not step else (LAST_DIGITS,):
            moved = self._result(inputs, "", Move(units, sorts, step))
            if moved is None:
                return False
            changes = self._compare_values("", moved[at], expected, inputs)
            if len(changes) != len(diffs):
                return True
            if all(f.passed or _is_as_large(c, f) for c, f in zip(changes, diffs, strict=True)):
                return True
        return False

    def _result(
        self, inputs: InputSet, setting: str = "", move: Move | None = None
    ) -> Sequence[Any] | None:
        """What the source computes, once; None where it refuses."""
        if self.model is None:
            return None
        key = (inputs.name, setting, move)
        if key not in self._results:
            feeds = {n: move_floats(x, inputs.name, move) for n, x in inputs.feeds.items()}
            try:
                self._results[key] = self.model.run(feeds, setting)
            except SerdeError:
                self._results[key] = None
        return self._results[key]


def move_floats(x: Array, name: str, move: Move | None) -> Array:
    """Change floats in their last digits.

    Equal numbers are changed together, and stay equal, unless they are to become different.
    """
    if move is None or DType.of(x.dtype).kind != "f":
        return x
    rng = np.random.default_rng(SEED)
    step = move.units * max(float(np.finfo(x.dtype).eps), move.step)
    wide: Array = x.astype(np.float64)
    if name not in TIES:
        return np.asarray(wide * (1 + step * rng.choice([-1, 1], x.shape)), x.dtype)
    if not move.apart:
        return np.asarray(wide * (1 + step), x.dtype)
    finite = np.abs(wide[np.isfinite(wide)])
    scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
    return np.asarray(wide + step * scale * rng.standard_normal(x.shape), x.dtype)


def _is_as_large(change: OutputComparison, diff: OutputComparison) -> bool:
    """Whether a change of the source accounts for a difference."""
    if np.isnan(diff.max_abs):  # other places of NaN, other integers
        return not change.passed and np.isnan(change.max_abs)
    return np.isnan(change.max_abs) or change.max_abs >= SHARE * diff.max_abs


def _pass(outputs: list[OutputComparison], reason: str) -> list[OutputComparison]:
    for output in outputs:
        output.passed, output.reason = True, reason
    return outputs
