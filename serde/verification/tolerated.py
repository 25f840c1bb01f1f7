"""Differences that are no fault of a conversion: ties, and outputs that roundings decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import DType, Graph, Node, Value
from serde.spec.traits import ARITHMETIC, KEEPS_DIGITS, MOVES, PREDICATES, ROUNDS, SORTS
from serde.verification.compare_outputs import (
    FLOAT32_TOLERANCE,
    NONE,
    OutputComparison,
    Tolerance,
    compare_values,
    find_share,
)
from serde.verification.input_sets import NORMAL, NOT_FINITE, TIES, InputSet
from serde.verification.nan_paths import (
    NAN,
    describe_disputed,
    find_disputed,
    find_results,
    probe_each,
)
from serde.verification.quantized_steps import describe_steps, find_step
from serde.verification.source_runs import SourceModel
from serde.verification.ties import NEAR, are_tied_indices, count_new_rows, upstream_ops

Array = np.ndarray[Any, Any]
SEED = 1
LAST_DIGITS = 4.0  # by how many units in the last place inputs are moved
# The same before operators that sort: scores near each other change places once the roundings of
# all layers before them have added up.
LAST_DIGITS_SORTED = (4.0, 64.0, 1024.0)
HALF_STEP = 2.0**-10  # between numbers of float16, which results in fewer bits are compared by
ROUNDING_MOVES = {"MaxRoiPool", "ScatterElements", "ScatterND"}  # by places, or as they add
# Operators that round once, if at all, and so give the same everywhere.
EXACT = (
    (MOVES.keys() - SORTS - ROUNDING_MOVES)
    | PREDICATES | KEEPS_DIGITS | ROUNDS | ARITHMETIC | {"Cast", "Sign", "Sqrt"}
)  # fmt: skip
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
    where only equals changed places, where a quantized output is one step off in half of its
    elements at most, where elements that roundings decide are as far from the source's as those are
    from its own when it is run in another way, or, on other than normal inputs, where the largest
    number stands for infinity, as in kernels that clip, or the source itself changes as much once
    its inputs change in their last digits, if it computes with roundings that are not the same
    everywhere. So it is where the result has fewer bits and the source sorts. The last two are no
    comparison: ``not_compared`` says so.

    ``share`` of its largest magnitude is what an output may differ by at least; a ``tolerance``
    that a user gives takes its place.
    """

    def __init__(
        self, model: SourceModel | None, ir: Graph,
        probe: Callable[[Sequence[str], InputSet], Sequence[Any]], share: float = 0,
        tolerance: Tolerance | None = None, is_replaced: bool = False,
        resume: Callable[[Mapping[str, Any], Sequence[str]], Sequence[Any]] | None = None,
    ) -> None:  # fmt: skip
        self.is_replaced = is_replaced  # and the source's file cannot be read again
        self.resume = resume  # runs the result from values in its middle
        self.share, self.tolerance = share, tolerance
        self.is_half = share > FLOAT32_TOLERANCE  # whether float16 is computed in
        self.model, self.ir, self.probe = model, ir, probe
        self._noted: dict[str, list[str]] = {}
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
        return list(
            compare_values(
                name, got, expected, inputs.places, inputs.slack, self.share, self.tolerance
            )
        )

    def _compare(
        self, at: int, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any]
    ) -> list[OutputComparison]:
        value = self.ir.outputs[at]
        diffs = self._compare_values(value.name, got[at], expected[at], inputs)
        if all(c.passed for c in diffs):
            return diffs
        for other in self._other_results(at, inputs):
            again = self._compare_values(value.name, got[at], other, inputs)
            if all(c.passed for c in again):
                return again
        if inputs.name != NORMAL:
            wider, wanted = _widen_largest(got[at]), _widen_largest(expected[at])
            if all(c.passed for c in self._compare_values(value.name, wider, wanted, inputs)):
                return _pass(diffs, "the largest number in the place of infinity")
        step = None if self.tolerance else find_step(self.ir, value)
        if step and (reason := describe_steps(step, got[at], expected[at])):
            return _pass(diffs, reason)
        if self._is_disputed(value, inputs, got[at], expected[at], diffs):
            return diffs
        ops = upstream_ops(self.ir, value)
        sorts = bool(ops & SORTS)
        cause = self._find_other_order(at, inputs, got, expected, diffs) if sorts else None
        if cause is None and not ops <= EXACT:
            cause = self._find_roundings(at, inputs, expected[at], diffs, ops)
        return diffs if cause is None else _pass(diffs, cause)

    def _find_other_order(
        self, at: int, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any],
        diffs: list[OutputComparison],
    ) -> str | None:  # fmt: skip
        """Why an output behind operators that sort may differ; None where it may not."""
        value = self.ir.outputs[at]
        near = max(NEAR, find_share(expected[at]), self.share, *(self.tolerance or ())[:1])
        rows = count_new_rows(at, got, expected, near)
        if rows:
            self._note(
                f"{value.name}: {rows:,} of its rows; boxes whose scores are next to each other "
                "change places, and suppress others"
            )
        if rows is not None or self._is_tied(at, inputs, got, expected):
            return "equals stand in another order"
        if self.is_half and self._is_unstable(at, inputs, diffs, expected[at], sorts=True):
            self._note(
                f"{value.name}: the source itself sorts otherwise when its inputs change in the "
                "last digits of float16"
            )
            return NONE
        return None

    def _find_roundings(
        self, at: int, inputs: InputSet, expected: Any, diffs: list[OutputComparison],
        ops: Collection[str],
    ) -> str | None:  # fmt: skip
        """Why an output behind operators that round may differ; None where it may not."""
        value = self.ir.outputs[at]
        if self._differs_by_itself(at, inputs, diffs, expected):
            what = (
                "quantized elements next to each other"
                if not QUANTIZING.isdisjoint(ops)
                else "elements that roundings decide"
            )
            self._note(
                f"{value.name}: {what}; the source differs as much with and without its "
                "runtime's optimizers"
            )
            return what
        sorts = not SORTS.isdisjoint(ops)
        if inputs.name != NORMAL and self._is_unstable(at, inputs, diffs, expected, sorts):
            self._note(
                f"{value.name} on {inputs.name} inputs: the source itself changes as much when "
                "its inputs change in the last digits"
            )
            return NONE
        return None

    def _is_disputed(
        self, value: Value, inputs: InputSet, got: Any, expected: Any,
        diffs: list[OutputComparison],
    ) -> bool:  # fmt: skip
        """Whether an output differs by NaN or infinities on the way to it; passes it if so.

        The source has to have them itself, unless inputs are infinite: of those, kernels of one
        framework make different NaN. Numbers that come of NaN are right where the result makes
        the same of them as the source, once it is fed what the source makes of NaN.
        """
        if not _is_same_type(value, got, expected):
            return False
        disputed = self._find_disputed(value, inputs, self._probe_source)
        is_finite = inputs.name not in NOT_FINITE
        if not disputed and not is_finite:
            disputed = self._find_disputed(value, inputs, self.probe)
        if not disputed:
            return False
        again = [*compare_values(
            value.name, got, expected, "numbers", inputs.slack, self.share, self.tolerance
        )]  # fmt: skip
        is_equal = all(c.passed for c in again)
        nodes = disputed.get(NAN, [])
        if not is_equal and is_finite and not self._follows_from(nodes, value, inputs, expected):
            return False
        elements = "elements that are NaN" if is_equal else "all elements"
        self._note(f"{value.name}, {elements}: {describe_disputed(disputed)}", inputs.name)
        if is_equal:
            diffs[:] = again
        _pass(diffs, "numbers agree, NaN aside" if is_equal else NONE)
        return True

    def _find_disputed(
        self, value: Value, inputs: InputSet,
        probe: Callable[[Sequence[str], InputSet], Sequence[Any]],
    ) -> dict[str, list[Node]]:  # fmt: skip
        return find_disputed(self.ir, value, inputs.feeds, lambda names: probe(names, inputs))

    def _follows_from(
        self, nodes: Sequence[Node], value: Value, inputs: InputSet, expected: Any
    ) -> bool:
        """Whether the result computes an output from what the source makes of NaN by ``nodes``.

        What they are fed has to be the same as well.
        """
        if not nodes or self.resume is None:
            return False
        probe = partial(self._probe_source, inputs=inputs)
        results = find_results(self.ir, nodes, probe)
        operands = {v.name for n in nodes for v in n.inputs if v is not None and v.tensor is None}
        right = probe_each(sorted(operands - results.keys() - inputs.feeds.keys()), probe)
        right |= {} if value.name in results else {value.name: expected}
        try:
            got = self.resume({**inputs.feeds, **results}, [*right]) if right else []
        except SerdeError:
            return False
        return bool(results) and all(
            c.passed for n, x in zip(right, got, strict=True)
            for c in self._compare_values(n, x, right[n], inputs)
        )  # fmt: skip

    def _probe_source(self, names: Sequence[str], inputs: InputSet) -> Sequence[Any]:
        """Values of the source by name."""
        if self.model is None or self.is_replaced:
            raise SerdeError("the source is not there")
        return self.model.cut(names).run(inputs.feeds)

    def _note(self, text: str, inputs: str = "") -> None:
        """Enter what is not compared, once, with the names of the inputs that it is about."""
        names = self._noted.setdefault(text, [])
        if inputs not in names:
            names.append(inputs)

    @property
    def not_compared(self) -> list[str]:
        """What was left out, and why."""
        named = ((text, [n for n in names if n]) for text, names in self._noted.items())
        return [f"{text} (on {', '.join(names)} inputs)" if names else text
                for text, names in named]  # fmt: skip

    def _is_tied(
        self, at: int, inputs: InputSet, got: Sequence[Any], expected: Sequence[Any]
    ) -> bool:
        if isinstance(got[at], list) or isinstance(expected[at], list):
            return False

        def value_of(name: str) -> Array | None:
            if name in inputs.feeds:
                return inputs.feeds[name]
            try:
                return np.asarray(self.probe([name], inputs)[0])
            except SerdeError:
                return None

        arrays = np.asarray(got[at]), np.asarray(expected[at])
        return are_tied_indices(self.ir, self.ir.outputs[at], *arrays, value_of, self.share)

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
        step = HALF_STEP if self.is_half else 0
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
    x_float64: Array = x.astype(np.float64)
    if name not in TIES:
        return np.asarray(x_float64 * (1 + step * rng.choice([-1, 1], x.shape)), x.dtype)
    if not move.apart:
        return np.asarray(x_float64 * (1 + step), x.dtype)
    finite = np.abs(x_float64[np.isfinite(x_float64)])
    scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
    return np.asarray(x_float64 + step * scale * rng.standard_normal(x.shape), x.dtype)


def _is_same_type(value: Value, got: Any, expected: Any) -> bool:
    """Whether an output has the type, and where it is known the shape, of what it should be."""
    if not isinstance(got, np.ndarray) or not isinstance(expected, np.ndarray):
        return False
    is_known = all(isinstance(d, int) for d in value.shape or (None,))
    return got.dtype == expected.dtype and (got.shape == expected.shape or not is_known)


def _is_as_large(change: OutputComparison, diff: OutputComparison) -> bool:
    """Whether a change of the source accounts for a difference."""
    if np.isnan(diff.max_abs) or diff.is_integer:  # other places of NaN, other integers
        return not change.passed and (np.isnan(change.max_abs) or change.is_integer)
    return np.isnan(change.max_abs) or change.max_abs >= SHARE * diff.max_abs


def _pass(outputs: list[OutputComparison], reason: str) -> list[OutputComparison]:
    for output in outputs:
        output.passed, output.reason = True, reason
    return outputs


def _widen_largest(array: Any) -> Any:
    """An array of float32 with infinities in the place of the largest numbers."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        return array
    is_largest = np.abs(array) == np.finfo(np.float32).max
    return np.where(is_largest, np.copysign(np.float32(np.inf), array), array)
