"""What a quantized source computes without its roundings, proved by putting them back.

``dequantize`` makes floats of a source that rounds to integers at every layer: their outputs
differ by as much as that changes. With the source's own roundings
at the same places, the floats compute what the source does. Where that holds, the outputs of the
floats are what a result is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.replace_uses import replace_inputs
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder
from serde.verification.compare_outputs import compare_values

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]
Run = Callable[[Feeds], Sequence[Any]]
DRAWS, SEED, STEPS = 4, 5, 127  # STEPS: of the largest number of an input
QUANTIZE = {"axis": 1, "block_size": 0, "output_dtype": 0, "precision": 0, "saturate": 1}
DEQUANTIZE = ("axis", "block_size", "output_dtype")
SCALE = 6  # the place of a result's scale among the operands of QLinearConv and QLinearMatMul
SHOWN = 3  # names in a message
DYNAMIC = "DynamicQuantizeLinear"
LAYERS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}
rules = RuleTable("roundings", fallback=keep)


class NotProved(SerdeError):
    """Floats with the source's roundings do not compute what the source does."""


@dataclass
class DequantizedRun:
    """Runs a source, the floats that it becomes, and these with its roundings.

    ``missing`` are the values that the floats lack, which are not rounded.
    """

    run: Run
    floats: Run
    rounded: Run
    missing: Sequence[str]

    def __call__(self, feeds: Feeds) -> list[Any]:
        """The outputs of the floats.

        Raises:
            NotProved: where they cannot be trusted.
        """
        expected, got = self.run(feeds), self.rounded(feeds)
        if wrong := [*self._find_differing(feeds, got, expected)]:
            names = ", ".join(map(repr, self.missing[:SHOWN]))
            what = f"without those of {names}, for which it has no value, " if names else ""
            raise NotProved(
                f"not compared: with the source's roundings to integers, {what}the result differs "
                f"from it: {wrong[0]}. Compare with the source's outputs: serde compare"
            )
        return [_keep_numbers(*pair) for pair in zip(self.floats(feeds), expected, strict=True)]

    def _find_differing(
        self, feeds: Feeds, got: Sequence[Any], expected: Sequence[Any]
    ) -> Iterator[str]:
        """Outputs that differ by more than the source itself does once inputs move in a step.

        A number half-way between two integers may be rounded to either.
        """
        moved: list[Sequence[Any]] = []
        for at, (a, b) in enumerate(zip(got, expected, strict=True)):
            failed = [c for c in compare_values(f"output {at}", a, b) if not c.passed]
            if not failed:
                continue
            moved = moved or [self.run(f) for f in move_feeds(feeds)]
            is_alike = not isinstance(b, list) and np.shape(a) == np.shape(b)
            changes = [measure(m[at], b) for m in moved] if is_alike else []
            if not changes or not measure(a, b) <= max(changes):  # NaN among them
                yield f"{failed[0].name} is {failed[0].reason}"


def _keep_numbers(floats: Any, expected: Any) -> Any:
    """An output of the floats; where they alone are NaN, what the source computes."""
    if not _is_float(floats) or not _is_float(expected) or floats.shape != expected.shape:
        return floats
    return np.where(np.isnan(floats) & ~np.isnan(expected), expected, floats)


def put_roundings_back(source: Graph, floats: Graph) -> tuple[Graph, list[str]]:
    """The floats with the roundings of the source, and the names of values that are missing."""
    values = {v.name: v for v in (*floats.inputs, *(v for n in floats.nodes for v in n.outputs))}
    floats_by_node = {n.name: n.outputs[0] for n in floats.nodes if len(n.outputs) == 1}
    readers: dict[Value, list[Value]] = {}
    for node in source.nodes:
        if node.op == "DequantizeLinear" and node.inputs[0] is not None:
            readers.setdefault(node.inputs[0], []).append(node.outputs[0])
    places: dict[Value, Node] = {}
    missing = []
    for node in source.nodes:
        x = node.inputs[0] if node.inputs else None
        is_constant = x is None or x.tensor is not None
        if node.op not in ("QuantizeLinear", DYNAMIC, *LAYERS) or is_constant:
            continue
        assert x is not None
        name = f"{node.name}/{LAYERS[node.op]}" if node.op in LAYERS else x.name
        names = (name, *(v.name for v in readers.get(node.outputs[0], ())))
        value = next((values[n] for n in names if n in values), floats_by_node.get(node.name))
        if value is None:
            missing.append(x.name)
        else:
            places.setdefault(value, node)
    shown = {v.name for v in source.outputs if any(v in some for some in readers.values())}
    return _round(floats, places, shown), missing


def _round(graph: Graph, places: Mapping[Value, Node], shown: set[str]) -> Graph:
    """``graph`` with values rounded as nodes of the source round them; so are the outputs of the
    names ``shown``.
    """
    instead = {v: Value(f"{v.name}/rounded", v.dtype, v.shape) for v in places}
    ends = {v: instead[v] for v in graph.outputs if v in instead and v.name in shown}
    nodes: list[Node] = []
    for value in graph.inputs:
        nodes += _make_pair(value, places, instead)
    for node in graph.nodes:
        nodes.append(replace_inputs(node, instead))
        for value in node.outputs:
            nodes += _make_pair(value, places, instead)
    outputs = tuple(ends.get(v, v) for v in graph.outputs)
    return rules.rewrite(replace(graph, nodes=tuple(nodes), outputs=outputs),
                         OnnxBuilder(graph.name))  # fmt: skip


def _make_pair(
    value: Value, places: Mapping[Value, Node], instead: Mapping[Value, Value]
) -> Iterator[Node]:
    """A value quantized as by a node of the source, and dequantized."""
    node = places.get(value)
    if node is None:
        return
    attrs = {**QUANTIZE, **(node.attrs if node.op == "QuantizeLinear" else {})}
    back = {name: attrs[name] for name in DEQUANTIZE}
    if node.op == DYNAMIC:
        q, scale, zero = (
            Value(f"{value.name}/{i}", v.dtype, v.shape) for i, v in enumerate(node.outputs)
        )
        yield Node(DYNAMIC, (value,), (q, scale, zero), {}, "", f"{value.name}/quantize")
    else:
        at = SCALE if node.op in LAYERS else 1
        scale, zero = (*node.inputs[at : at + 2], None)[:2]  # type: ignore[assignment]
        q = Value(f"{value.name}/0", node.outputs[0].dtype, value.shape)
        inputs = (value, scale, zero)
        yield Node("QuantizeLinear", inputs, (q,), attrs, "", f"{value.name}/quantize")
    back["output_dtype"] = 0
    inputs = (q, scale, zero)
    result = (instead[value],)
    yield Node("DequantizeLinear", inputs, result, back, "", f"{value.name}/dequantize")


def move_feeds(feeds: Feeds) -> list[dict[str, Any]]:
    """Inputs of floats moved by less than half of a step, some times."""
    rng = np.random.default_rng(SEED)
    floats = [n for n, x in feeds.items() if _is_float(x)]
    return [
        {n: _move(x, rng) if n in floats else x for n, x in feeds.items()}
        for _ in range(DRAWS if floats else 0)
    ]


def measure(got: Any, expected: Any) -> float:
    """How far an output is off: the root of the mean square, of integers the share that differs."""
    a, b = np.asarray(got), np.asarray(expected)
    if not _is_float(b):
        return float(np.mean(a != b)) if a.size else 0.0
    with np.errstate(invalid="ignore"):  # infinities
        gap = (a.astype(np.float64) - b.astype(np.float64)).ravel()
    return float(np.sqrt(np.mean(gap**2))) if gap.size else 0.0


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and DType.of(x.dtype).kind == "f"


def _move(x: Array, rng: np.random.Generator) -> Array:
    finite = np.abs(x[np.isfinite(x)])
    step = float(finite.max(initial=0)) / STEPS
    return np.asarray(x + step * rng.uniform(-0.5, 0.5, x.shape), x.dtype)
