"""``--fp16``, ``--weights`` and ``--fp32``: near the source where each operation is rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import serde

from ..matrix import NotRun
from .cells import differ, run, run_optimized, write
from .models import Arrays, Model

BOUNDS = {"fp16": 2e-2, "bf16": 5e-2, "int8": 1e-1}
HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8}
LARGE = 1024  # elements of a weight that is stored in fewer bits
NODES = 2000  # of a model that onnx's evaluator runs in little time


def reduce(options: dict[str, Any], bound: float, model: Model, folder: Path) -> str | None:
    """Convert in fewer bits and run, with each operation rounded and as users run it."""
    path, target = write(model, folder), folder / "reduced.onnx"
    if not has_floats(model.proto):
        raise NotRun("it has no numbers of float32")
    report = serde.convert(path, target, verify=True, **options)
    proto = onnx.load(target)
    feeds = narrow_feeds(proto, model.feeds)
    seen = {n: np.asarray(a, np.asarray(model.feeds[n]).dtype) for n, a in feeds.items()}
    expected = run(model.proto, seen)
    if not (HALVES & set(list_elements(proto.graph))) and not has_note(report, options):
        return "silent: nothing has fewer bits"
    optimized = differ(run_optimized(target, feeds), expected, bound)
    if optimized and "weights" in options and not differ(run(target, feeds), expected, bound):
        raise NotRun("ONNX Runtime's optimizers quantize what its weights are multiplied with")
    failure = optimized or differ(run_rounded(proto, feeds), expected, bound)
    if failure and not optimized and differ(run_rounded(model.proto, seen), expected):
        failure = differ(run(target, feeds), expected, bound)  # the evaluator has it wrong
    passes = report.verification.done and report.verification.ok
    if failure is None and not passes:
        return "verification fails on a right model"
    return f"{failure}, and verification passes" if failure and passes else failure


def widen(model: Model, folder: Path) -> str | None:
    """A model of float16 made float32 again."""
    path, half, target = write(model, folder), folder / "half.onnx", folder / "single.onnx"
    if not has_floats(model.proto):
        raise NotRun("it has no numbers of float32")
    serde.convert(path, half, fp16=True)
    serde.convert(half, target, fp32=True)
    if TensorProto.FLOAT16 in set(list_elements(onnx.load(target).graph)):
        return "float16 stays"
    return differ(run_optimized(target, model.feeds), run(model.proto, model.feeds), 2e-2)


def has_floats(proto: onnx.ModelProto) -> bool:
    """Whether weights or inputs are of float32."""
    return TensorProto.FLOAT in set(list_elements(proto.graph))


def list_elements(graph: onnx.GraphProto) -> Iterator[int]:
    """The element types of weights, inputs and casts, those of bodies among them."""
    yield from (tensor.data_type for tensor in graph.initializer)
    yield from (info.type.tensor_type.elem_type for info in graph.input)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to":
                yield attribute.i
            elif attribute.name == "value":
                yield attribute.t.data_type
            elif attribute.HasField("g"):
                yield from list_elements(attribute.g)


def has_note(report: Any, options: dict[str, Any]) -> bool:
    """Whether a note names an option."""
    return any(name in note for name in options for note in report.notes)


def narrow_feeds(proto: onnx.ModelProto, feeds: Arrays) -> dict[str, Any]:
    """Inputs in the types that a model takes them in."""
    halves = {i.name for i in proto.graph.input
              if i.type.tensor_type.elem_type == TensorProto.FLOAT16}  # fmt: skip
    return {n: a.astype(np.float16) if n in halves else a for n, a in feeds.items()}


def run_rounded(proto: onnx.ModelProto, feeds: Arrays) -> list[Any]:
    """What onnx's evaluator computes, which rounds after each operation.

    Where it lacks an operator or would take long, ONNX Runtime without its optimizers.
    """
    names = {i.name for i in proto.graph.input}
    feeds = {n: a for n, a in feeds.items() if n in names}
    if len(proto.graph.node) > NODES or sum(np.size(a) for a in feeds.values()) > 1e5:
        return run(proto, feeds)
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(proto).run(None, feeds))
    except Exception:  # of operators that it has not, or not in this form
        return run(proto, feeds)


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    "--fp16": partial(reduce, {"fp16": True}, BOUNDS["fp16"]),
    "--fp16 --fp16-io": partial(reduce, {"fp16": True, "fp16_io": True}, BOUNDS["fp16"]),
    **{f"--weights {kind}": partial(reduce, {"weights": kind}, BOUNDS[kind]) for kind in BOUNDS},
    "--fp16, --fp32": widen,
}
