"""Two models compared layer by layer: the first that differs is where a fault is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError, show_attribute
from serde.ir.graph import Graph, Node, Value
from serde.passes.layout.place import to_first, to_last
from serde.spec.traits import SORTS
from serde.verification.compare_outputs import (
    OutputComparison,
    Tolerance,
    compare,
    describe_size,
    find_share,
    narrow_both,
)
from serde.verification.given_arrays import is_sequence
from serde.verification.match_layers import Match, find_source, match_layers
from serde.verification.nan_paths import NAN, describe_disputed, find_disputed
from serde.verification.quantized_steps import describe_steps, find_roundings
from serde.verification.ties import NEAR, are_tied_indices, count_new_rows

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]
MOST_BYTES = 1 << 29  # of values held at once, of one model
UNKNOWN_SIZE = 64  # of a dimension that no input tells, when bytes are estimated
MOST_ATTRIBUTES = 12  # that a message shows


class CutModel(NamedTuple):
    """A model that can end at any of its values: its graph, and how it is run up to some."""

    graph: Graph
    run: Callable[[Sequence[str], Feeds], Sequence[Any]]


@dataclass
class LayerComparison:
    """A layer of the first model compared with the same layer of the second.

    ``layer`` is what its source calls it; ``value`` and ``other`` are the names of its result in
    both models. Where a tool made the name that they have in common, it ``is_generated``.
    """

    op: str
    layer: str
    attrs: dict[str, str]
    value: str
    other: str
    outcome: OutputComparison
    is_generated: bool = False

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in [*self.attrs.items()][:MOST_ATTRIBUTES])
        return f"{self.layer!r} ({self.op}{'; ' if shown else ''}{shown})"


@dataclass
class LayersComparison:
    """The layers that both models have, in the order of the first.

    ``first`` is the place of the first that differs among ``layers``, None where all agree.
    ``statement`` is why none was compared; ``not_compared`` says what was left out, and why. Where
    ``outputs_agree`` a layer that differs was rewritten, and is no fault.
    """

    layers: list[LayerComparison] = field(default_factory=list)
    first: int | None = None
    statement: str = ""
    not_compared: list[str] = field(default_factory=list)
    outputs_agree: bool = False

    def tell_outputs_agree(self) -> None:
        """Leave out layers that differ and have generated names: these count other layers."""
        self.outputs_agree = True
        others = [x for x in self.layers if x.is_generated and not x.outcome.passed]
        self.layers = [x for x in self.layers if x not in others]
        self.not_compared += [
            f"{x.value}: a number made the name, of another layer in the second" for x in others
        ]
        self.first = find_first(self.layers)

    def __str__(self) -> str:
        if self.statement:
            return self.statement
        if self.first is None:
            return f"{len(self.layers)} layers compared: all agree"
        layer, o = self.layers[self.first], self.layers[self.first].outcome
        differing = sum(not x.outcome.passed for x in self.layers)
        agreeing = "the outputs agree; a layer that was rewritten or rounded is no fault: "
        what = f"{agreeing if self.outputs_agree else ''}the first layer that differs is"
        parts = [f"{what} {layer}: {o.reason}"]
        if not np.isnan(o.max_abs):
            parts.append(f"tolerance {o.tolerance:.3g}")
        if o.worst is not None:
            parts.append(str(o.worst))
        if self.first:
            parts.append(f"{self.layers[self.first - 1].layer!r} before it agrees")
        parts.append(f"{differing} of {len(self.layers)} layers differ")
        return "; ".join(parts)


def compare_layers(
    first: CutModel, second: CutModel, feeds: Feeds, ir: Graph, tolerance: Tolerance | None = None,
    share: float = 0,
) -> LayersComparison:  # fmt: skip
    """Run both models up to each layer that they have in common, and compare the results.

    ``ir`` is the graph of the IR of the first: it says where equals may stand in any order.
    ``share`` of its largest magnitude is what a layer may differ by at least.
    """
    matches = [*match_layers(first.graph, second.graph)]
    if not matches:
        return LayersComparison(
            statement="not compared: no layer has the same recorded source in both models, nor a "
            "name that is not generated"
        )
    result, judge = LayersComparison(), _LayerJudge(first, feeds, ir, tolerance, share)
    for part in _divide(matches, feeds, first.graph):
        for match, got, expected in _run_both(first, second, part, feeds, result):
            _enter(result, match, got, expected, judge)
    if not result.layers:
        result.statement = "not compared: " + "; ".join(result.not_compared[:3])
    result.first = find_first(result.layers)
    return result


def find_first(layers: Iterable[LayerComparison]) -> int | None:
    """The place of the first layer that differs."""
    return next((i for i, x in enumerate(layers) if not x.outcome.passed), None)


def _divide(matches: Sequence[Match], feeds: Feeds, graph: Graph) -> Iterator[list[Match]]:
    """Parts of the layers whose results are held at once."""
    tensors = [v for v in graph.inputs if v.name in feeds and not is_sequence(v)]
    fed = [(v.shape or (), feeds[v.name].shape) for v in tensors]
    pairs = (pair for dims, shape in fed for pair in zip(dims, shape, strict=False))
    sizes = {d: n for d, n in pairs if isinstance(d, str)}
    part: list[Match] = []
    part_bytes = 0
    for match in matches:
        shape = match.value.shape or match.other.shape or (UNKNOWN_SIZE,) * 3
        count = 4
        for dim in shape:
            count *= dim if isinstance(dim, int) else sizes.get(dim or "", UNKNOWN_SIZE)
        if part and part_bytes + count > MOST_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(match)
        part_bytes += count
    yield part


def _run_both(
    first: CutModel, second: CutModel, part: list[Match], feeds: Feeds, result: LayersComparison
) -> Iterator[tuple[Match, Any, Any]]:
    """Run both models up to some layers; layers that one refuses to end at are left out."""
    try:
        expected = first.run([m.value.name for m in part], feeds)
        got = second.run([m.other.name for m in part], feeds)
    except SerdeError as error:
        if len(part) == 1:
            result.not_compared.append(f"{part[0].value.name}: {str(error).splitlines()[0]}")
            return
        middle = len(part) // 2
        yield from _run_both(first, second, part[:middle], feeds, result)
        yield from _run_both(first, second, part[middle:], feeds, result)
        return
    yield from zip(part, got, expected, strict=True)


def _enter(
    result: LayersComparison, match: Match, got: Any, expected: Any, judge: _LayerJudge
) -> None:  # fmt: skip
    name = match.value.name
    if isinstance(got, list) or isinstance(expected, list):
        result.not_compared.append(f"{name}: a sequence")
        return
    if reason := describe_size([got, expected]):
        result.not_compared.append(f"{name}: {reason}")
        return
    got, expected = narrow_both(np.asarray(got), judge.read_real(name, np.asarray(expected), got))
    forms = [a for a in _list_orders(got) if a.shape == expected.shape]
    if not forms or got.dtype != expected.dtype:
        result.not_compared.append(
            f"{name}: {expected.dtype}{list(expected.shape)} in the first model, "
            f"{got.dtype}{list(got.shape)} in the second"
        )
        return
    outcomes = [
        compare(match.other.name, a, expected, least=judge.share, tolerance=judge.tolerance)
        for a in forms
    ]
    by_error = zip(outcomes, forms, strict=True)
    outcome, got = min(by_error, key=lambda pair: (not pair[0].passed, pair[0].max_abs))
    if not outcome.passed and (reason := judge.describe_steps(name, got, expected)):
        outcome.passed, outcome.reason = True, reason
    if not outcome.passed and (reason := judge.excuse(name, outcome, got, expected)):
        result.not_compared.append(f"{name}: {reason}")
        return
    source = find_source(match.node)
    op = source.op if source else match.node.op
    layer = (source.name if source else match.node.name) or name
    result.layers.append(
        LayerComparison(
            op, layer, dict(_show_attributes(match.node)), name, match.other.name, outcome,
            match.is_generated,
        )
    )  # fmt: skip


def _list_orders(array: Array) -> Iterator[Array]:
    """An array as it is, and with its last axis, or its second, taken for channels."""
    yield array
    if array.ndim > 2:
        yield array.transpose(to_first(array.ndim))
        yield array.transpose(to_last(array.ndim))


def _show_attributes(node: Node) -> Iterator[tuple[str, str]]:
    for name, value in sorted(node.attrs.items()):
        yield name, "a subgraph" if isinstance(value, Graph) else show_attribute(value)


class _LayerJudge:
    """Tells layers with equals in another order, what follows them, and quantized ones."""

    def __init__(
        self, model: CutModel, feeds: Feeds, ir: Graph, tolerance: Tolerance | None, share: float
    ) -> None:
        self.model, self.feeds, self.ir = model, feeds, ir
        self.tolerance, self.share = tolerance, share
        self.behind = {v.name: v for v in values_behind(ir, SORTS)}
        self.values = {v.name: v for node in ir.nodes for v in node.outputs}
        self.is_reordered = False
        self.roundings = find_roundings(ir)

    def read_real(self, name: str, expected: Array, got: Any) -> Array:
        """What integers stand for, where the other model has real numbers."""
        is_real = np.asarray(got).dtype.kind == "f" and expected.dtype.kind in "iu"
        rounding = self.roundings.get(name) if is_real else None
        return expected if rounding is None else rounding.read_real(expected)

    def describe_steps(self, name: str, got: Array, expected: Array) -> str:
        """What to say of a layer whose numbers are a step apart once they are quantized."""
        rounding = self.roundings.get(name) if got.dtype.kind == "f" else None
        if rounding is None:
            return ""
        return describe_steps(1.0, rounding.quantize(got), rounding.quantize(expected))

    def excuse(self, name: str, outcome: OutputComparison, got: Array, expected: Array) -> str:
        """Why a layer that differs is left out; empty for one that is a difference, or a tie.

        A tie passes.
        """
        has_other_nan = got.dtype.kind == "f" and (np.isnan(got) != np.isnan(expected)).any()
        if has_other_nan and (reason := self._describe_dispute(name)):
            return reason
        value = self.behind.get(name)
        if value is None:
            return ""
        near = max(NEAR, find_share(expected), self.share)
        is_tied = count_new_rows(0, [got], [expected], near) is not None or are_tied_indices(
            self.ir, value, got, expected, self._probe, self.share
        )
        if is_tied:
            outcome.passed, outcome.reason = True, "equals stand in another order"
            self.is_reordered = True
        elif self.is_reordered:
            return "follows equals that stand in another order"
        return ""

    def _describe_dispute(self, name: str) -> str:
        """Which operator before a layer makes of NaN what its runtime likes; empty if none does."""
        value = self.values.get(name)
        if value is None:
            return ""
        disputed = find_disputed(
            self.ir, value, self.feeds, lambda names: self.model.run(names, self.feeds)
        )
        return describe_disputed({k: v for k, v in disputed.items() if k == NAN})

    def _probe(self, name: str) -> Array | None:
        if name in self.feeds:
            return self.feeds[name]
        try:
            return np.asarray(self.model.run([name], self.feeds)[0])
        except SerdeError:
            return None


def values_behind(graph: Graph, ops: Iterable[str]) -> set[Value]:
    """The values that operators of some kinds compute, and all that is computed of those."""
    kinds, values = frozenset(ops), set[Value]()
    for node in graph.nodes:
        inner = {n.op for g in node.graphs() for n in g.all_nodes()}
        reads = any(v in values for v in node.inputs if v is not None)
        if reads or node.op in kinds or inner & kinds:
            values.update(node.outputs)
    return values
