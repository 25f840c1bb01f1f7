"""From the IR to a graph of TensorFlow Lite's operators."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, DType, Graph, Value
from serde.legalize.convert import require_legal, without_functions
from serde.legalize.target import Target
from serde.passes.dce import drop_dead
from serde.passes.fold_batchnorm import fold_batchnorm
from serde.passes.group_norms import merge_group_norms
from serde.passes.layout.ends import turn_ends
from serde.passes.layout.place import place
from serde.passes.layout.shuffles import turn_shuffles
from serde.passes.merge_gelu import merge_gelus
from serde.passes.same_pads import settle_same_pads
from serde.passes.single_precision import NARROW, to_float32
from serde.passes.stacked_terms import add_stacked_terms
from serde.plugins.targets import get_consumer
from serde.spec.traits import RESHAPES
from serde.version_converter.element_types import format_type

from . import ops
from .legalize import IMAGES, MOST_AXES, is_quantized_graph, legalize_for_tflite, tflite_target
from .limits import SIGNED
from .ops.detection import mark_kept_boxes
from .passes.fuse import fuse
from .passes.quantize import quantize
from .support_table import KERNELS, STORED
from .target import DOMAIN, TITLE, TfliteBuilder, writes
from .versions import find_newer, parse_release

__all__ = ["from_ir", "ops"]

NO_ELEMENTS = "{!r} has no elements, and a size by name: give numbers (--static, --input)"
# What to do about inputs of types that there are no kernels of.
INPUTS = {
    **dict.fromkeys(("sequence", "optional"), "Export the model with tensors in its place"),
    "string": "Look texts up outside of the model, and feed numbers",
    "bfloat16": "Export the model in float32",
    "uint64": "Make it int64",
}
CHANGE = "Export the model with another type: float32 or int8"
LARGE = 4096  # elements of float16 weights that stay so


def from_ir(
    graph: Graph, *, channels_last: Sequence[str] | None = None, tflite: str | None = None,
    profile: str | None = None,
) -> Graph:  # fmt: skip
    """Rewrite the IR into operators of TensorFlow Lite, of a release, that a profile takes.

    Raises:
        Unconvertible: for all inputs and nodes that its kernels have no way for, at once.
        UsageError: for names of no inputs and outputs, and what is no release.
    """
    consumer = None if profile is None else get_consumer(profile, DOMAIN)
    release = None if tflite is None else parse_release(tflite)
    problems = [
        Problem("input", EMPTY, reason, (value.name,), writes.name)
        for value in graph.inputs
        if (reason := _explain(value)) is not None
    ] + [
        Problem("output", EMPTY, NO_ELEMENTS.format(value.name), (value.name,), writes.name)
        for value in graph.outputs
        if 0 in (value.shape or ()) and not value.is_static
    ]
    if problems:
        raise Unconvertible(writes.name, problems)
    graph = widen_halves(graph)
    if channels_last:
        graph = turn_ends(graph, channels_last)
    target = tflite_target(is_quantized_graph(graph), release, profile)
    done = lower(graph, target, unsigned=profile not in SIGNED)
    if tflite is not None and (newer := [*find_newer(done, tflite, writes.name)]):
        raise Unconvertible(writes.name, newer)
    return done if consumer is None or consumer.prepare is None else consumer.prepare(done)


def lower(graph: Graph, target: Target, unsigned: bool = True) -> Graph:
    """Rewrite an IR graph into the operators of a target, with layers of uint8 or without."""
    settled = settle_same_pads(mark_kept_boxes(graph))
    merged = add_stacked_terms(merge_gelus(merge_group_norms(settled)))
    legal = require_legal(legalize_for_tflite(fold_batchnorm(merged), target), target)
    placed = place(turn_shuffles(legal), IMAGES)
    return quantize(fuse(drop_dead(writes.rewrite(placed, TfliteBuilder(graph.name)))), unsigned)


def widen_halves(graph: Graph) -> Graph:
    """Arithmetic of float16 in float32, unless kernels have it; large weights stay float16."""
    half = DType.FLOAT16
    is_computed = any(
        node.op not in {"Cast", *RESHAPES} and half not in KERNELS.get(node.op, ())
        and any(v.dtype is half for v in node.outputs)
        for node in graph.all_nodes()
    )  # fmt: skip
    if not is_computed or "BitCast" in graph.operators():
        return graph
    return to_float32(without_functions(graph), NARROW, keeps_ends=True, most=LARGE)


def _explain(value: Value) -> str | None:
    """Why a model cannot have such an input, None where it can."""
    if value.container or value.dtype is None or value.dtype not in STORED:
        dtype = "" if value.dtype is None else format_type(value.dtype)
        kind = " of ".join(filter(None, (*value.container, dtype))) or "an unknown type"
        advice = INPUTS.get((*value.container, dtype)[0], CHANGE)
        return f"{value.name!r} is of {kind}, which {TITLE} does not compute with. {advice}"
    if value.shape is None or None in value.shape:
        return f"{value.name!r} has no known shape: give it (--input)"
    if 0 in value.shape:
        return f"{value.name!r} has no elements: give another size (--input)"
    if len(value.shape) > MOST_AXES:
        return f"{value.name!r} has more than {MOST_AXES} axes: reshape it"
    return None
