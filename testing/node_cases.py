"""ONNX's own node tests, as cases for reading, raising, lowering and writing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import raise_to_ir
from serde.legalize.target import LOWEST_WRITTEN
from serde.spec import schema
from testing.onnx_live import OPTIMIZED, PLAIN, run_at

ORT_OPSET, ORT_IR = 26, 13  # the newest ONNX Runtime 1.31 takes
ONNX_RUNTIME, UNOPTIMIZED = "ONNX Runtime", "ONNX Runtime without its optimizers"
# Whose numbers no runtime gives: onnx.reference counts the places in the shape that follows from the
# window, which is none that a MaxPool counted them in; ONNX Runtime and TVM in ``output_shape``.
OF_THE_REFERENCE = frozenset({"test_maxunpool_export_with_output_shape"})
RANDOM = ("bernoulli", "training_dropout", "random", "multinomial")


@dataclass(frozen=True)
class Case:
    """One node test: its model, and feeds with the outputs they should give."""

    name: str
    model: onnx.ModelProto
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def ops(self) -> set[str]:
        """The operators of the default domain the model uses."""
        return {n.op_type for n in self.model.graph.node if not n.domain}

    @property
    def opset(self) -> int:
        """The opset the model is written in."""
        return _opset(self.model)

    @property
    def is_random(self) -> bool:
        """Whether the outputs are drawn, so that only their types can be compared."""
        return any(word in self.name for word in RANDOM)


def _opset(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every node test of the installed onnx."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    return tuple(Case(t.name, t.model, _data(t), t.rtol, t.atol) for t in loaded)


def _data(test: Any) -> list[tuple[Any, ...]]:
    """The feeds of a test, and the outputs that they should give."""
    data = [tuple(map(_arrays, d)) for d in test.data_sets]
    if test.name not in OF_THE_REFERENCE:
        return data
    model = _for_onnxruntime(test.model)
    assert model is not None
    return [
        (feeds, run_at(PLAIN, model.SerializeToString(), _name_feeds(model, feeds)))
        for feeds, _ in data
    ]


def _arrays(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    return [_arrays(v) for v in value] if isinstance(value, (list, tuple)) else value


def subject(case: Case) -> str | None:
    """The operator a test is about, if it is of the default domain."""
    nodes = case.model.graph.node
    if "_expanded" in case.name or nodes[-1].domain:
        return None
    ops = {n.op_type for n in nodes if n.op_type not in ("Constant", "Identity")} or case.ops
    if len(ops) == 1:
        return ops.pop()
    named = [o for o in ops if o.lower() in case.name.replace("_", "")]
    return max(named, key=len) if named else None


def freeze(case: Case, holds_all: bool = False) -> Case | None:
    """The case with its small integer and scalar operands held as constants, or all but the first.

    Bounds, axes and sizes come as inputs in the node tests; in models they are nearly always
    constants. None where there is nothing to hold, or the data sets disagree.
    """
    graph = case.model.graph
    if len(case.data) != 1:
        return None
    held = {
        i: value
        for i, value in enumerate(case.data[0][0])
        if i > 0
        and isinstance(value, np.ndarray)
        and (
            holds_all
            or (
                value.ndim <= 1 and (value.dtype.kind in "iu" or value.ndim == 0 or value.size <= 8)
            )
        )
        and value.dtype != object
    }
    if not held or len(graph.input) != len(case.data[0][0]):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for i, value in held.items():
        model.graph.initializer.append(numpy_helper.from_array(value, graph.input[i].name))
    kept = [i for i in range(len(graph.input)) if i not in held]
    del model.graph.input[:]
    model.graph.input.extend(graph.input[i] for i in kept)
    data = [([feeds[i] for i in kept], outputs) for feeds, outputs in case.data]
    return Case(case.name, model, data, case.rtol, case.atol)


def convert(model: onnx.ModelProto, opset: int | None = None) -> onnx.ModelProto:
    """The model read, raised, lowered to ``opset`` (its own, if None) and written."""
    graph = decode(model)
    own = max(graph.opset, LOWEST_WRITTEN)  # a model of other domains only imports no default one
    return to_proto(from_ir(raise_to_ir(graph), own if opset is None else opset))


def results(model: onnx.ModelProto, feeds: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What each runtime makes of the model: its name with the outputs, or with the error."""
    yield from onnxruntime_results(model, feeds)
    yield "onnx.reference", _attempt(_reference, model, _name_feeds(model, feeds))


def onnxruntime_results(model: onnx.ModelProto, feeds: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What ONNX Runtime makes of the model, as users run it and without its optimizers."""
    if (fit := _for_onnxruntime(model)) is not None:
        data, named = fit.SerializeToString(), _name_feeds(model, feeds)
        for runtime, level in ((ONNX_RUNTIME, OPTIMIZED), (UNOPTIMIZED, PLAIN)):
            yield runtime, _attempt(partial(run_at, level), data, named)


def _name_feeds(model: onnx.ModelProto, feeds: Sequence[Any]) -> dict[str, Any]:
    held = {t.name for t in model.graph.initializer}  # inputs as well before IR version 4
    names = [i.name for i in model.graph.input if i.name not in held]
    return dict(zip(names, feeds, strict=True))


def _for_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model as ONNX Runtime takes it: of a lower opset if its operators are the same there."""
    opset = _opset(model)
    if opset <= ORT_OPSET:
        return model if model.ir_version <= ORT_IR and opset >= LOWEST_WRITTEN else None
    if not all(_same_below(n, opset) for n in _nodes(model.graph)):
        return None
    fit = onnx.ModelProto()
    fit.CopyFrom(model)
    fit.ir_version = min(fit.ir_version, ORT_IR)
    for entry in fit.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = ORT_OPSET
    return fit


def _same_below(node: onnx.NodeProto, opset: int) -> bool:
    if node.domain:
        return True
    now, then = (schema.find(node.op_type, v) for v in (opset, ORT_OPSET))
    return now is not None and then is not None and now.since == then.since


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _attempt(run: Any, model: Any, feeds: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run(model, feeds)
        except Exception as error:  # a runtime that cannot run a model raises what it likes
            return error


def _reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, feeds))


def difference(case: Case, expected: Sequence[Any], got: Sequence[Any]) -> str | None:
    """How the outputs differ, None if they are the same within the case's tolerance."""
    if len(expected) != len(got):
        return f"{len(got)} outputs instead of {len(expected)}"
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        reason = _differs(a, b, case)
        if reason:
            return f"output {i}: {reason}"
    return None


def _differs(a: Any, b: Any, case: Case) -> str | None:
    if a is None or b is None:
        return None if a is b else f"{b!r} instead of {a!r}"
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return "another number of elements"
        return next((s for x, y in zip(a, b, strict=True) if (s := _differs(x, y, case))), None)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shape {b.shape} instead of {a.shape}"
    if a.dtype != b.dtype and not {a.dtype.kind, b.dtype.kind} <= set("OUS"):
        return f"{b.dtype} instead of {a.dtype}"
    if case.is_random:
        return None
    if a.dtype.kind in "OUS":
        same = [str(x) for x in a.ravel()] == [str(x) for x in b.ravel()]
        return None if same else "other strings"
    if a.dtype.kind == "V" or a.dtype.itemsize == 1:
        a, b = (x.astype(np.float64) for x in (a, b))
    finite = np.abs(a[np.isfinite(a)], dtype=np.float64) if a.dtype.kind == "f" else np.zeros(1)
    atol = max(case.atol, 1e-6 * finite.max(initial=1))  # relative to the tensor's largest
    close = np.isclose(b, a, rtol=case.rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    worst = np.abs(b[~close].astype(np.complex128) - a[~close]).max()
    return f"{(~close).sum()} of {a.size} elements, by up to {worst:.3g}"


def verdict(case: Case, model: onnx.ModelProto) -> str:
    """``right``, or what is wrong with ``model`` as a translation of the case's.

    Where ONNX Runtime is right without its optimizers, it has to be right as users run it.
    """
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return f"invalid: {str(error).splitlines()[0]}"
    for feeds, expected in case.data:
        faults: dict[str, str] = {}
        for runtime, got in results(model, feeds):  # the slow reference comes last, if at all
            fault = _fault(case, expected, got)
            if fault is None:
                break
            faults[runtime] = fault
        else:
            return "; ".join(f"{r} {fault}" for r, fault in faults.items())
        if runtime == UNOPTIMIZED:
            return f"{ONNX_RUNTIME} {faults[ONNX_RUNTIME]}"
    return "right"


def _fault(case: Case, expected: Sequence[Any], got: Any) -> str | None:
    if isinstance(got, Exception):
        return f"cannot run it: {_first_line(got)}"
    how = difference(case, expected, got)
    return None if how is None else f"differs: {how}"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:160]
