"""Models in ONNX Runtime, with its optimizers and without."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from testing.onnx_live import LEVELS, run_at

from .matrix import NotRun

RANDOM = frozenset(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
    .split()
)  # fmt: skip


def run_onnx(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    """What ONNX Runtime computes, in both ways alike, or else onnx.reference.

    Raises:
        AssertionError: where the two ways of ONNX Runtime differ.
    """
    from onnx.reference import ReferenceEvaluator

    optimized, plain = run_both_ways(model, feeds)
    if isinstance(plain, Exception):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return ReferenceEvaluator(model).run(None, dict(feeds))
            except Exception as error:
                raise NotRun(f"{_line(plain)}; onnx.reference: {_line(error)}") from error
    return require_agreement(model, optimized, plain)


def run_both_ways(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime computes, or raises, with its optimizers and without."""
    runs: list[Any] = []
    for level in LEVELS:
        try:
            results = run_at(level, model, feeds)
            runs.append([*map(_with_type, results, model.graph.output)])
        except Exception as error:  # its exceptions have no common base but this
            runs.append(error)
    return runs


def require_agreement(model: onnx.ModelProto, optimized: Any, plain: Any) -> Sequence[Any]:
    """What ONNX Runtime computes both ways.

    Raises:
        AssertionError: where they differ, or one fails.
    """
    if isinstance(plain, Exception):
        if "locale" in str(plain):
            raise NotRun("the system lacks the locale that StringNormalizer asks for")
        raise AssertionError(f"it does not load or run: {_line(plain)}")
    if isinstance(optimized, Exception):
        raise AssertionError(f"optimised, it does not load: {_line(optimized)}")
    if not _is_random(model.graph) and not all(map(_is_same, optimized, plain)):
        raise AssertionError("ONNX Runtime computes something else where it optimises")
    return plain  # type: ignore[no-any-return]


RARE = frozenset(  # element types that ONNX Runtime's Python has no arrays of; all are float32s
    getattr(onnx.TensorProto, name)
    for name in "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ INT4 UINT4".split()
)
RARE_TYPES = frozenset(map(onnx.helper.tensor_dtype_to_np_dtype, RARE))


def with_float32_ends(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and outputs of float32 in place of ``RARE`` types."""
    casted = onnx.ModelProto()
    casted.CopyFrom(model)
    graph = casted.graph
    for end in (*graph.input, *graph.output):
        tensor, is_input = end.type.tensor_type, end in graph.input
        if tensor.elem_type not in RARE:
            continue
        inner = f"{end.name} as declared"
        for node in graph.node:
            node.input[:] = [inner if n == end.name else n for n in node.input]
            node.output[:] = [inner if n == end.name else n for n in node.output]
        names, kind = ([end.name], [inner]), tensor.elem_type
        if is_input:
            graph.node.insert(0, onnx.helper.make_node("Cast", *names, to=kind))
        else:
            graph.node.append(
                onnx.helper.make_node("Cast", *names[::-1], to=onnx.TensorProto.FLOAT)
            )
        tensor.elem_type = onnx.TensorProto.FLOAT
    return casted


def as_float32(feed: Any) -> Any:
    is_rare = getattr(feed, "dtype", None) in RARE_TYPES
    return feed.astype(np.float32) if is_rare else feed


def as_declared(result: Any, output: onnx.ValueInfoProto) -> Any:
    kind = output.type.tensor_type.elem_type
    return result.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind in RARE else result


def _with_type(array: Any, output: onnx.ValueInfoProto) -> Any:
    """An output of ONNX Runtime, which returns the bytes of 8-bit floats."""
    elements = output.type.tensor_type.elem_type
    if elements == onnx.TensorProto.UINT8 or getattr(array, "dtype", None) != np.uint8:
        return array
    return array.view(onnx.helper.tensor_dtype_to_np_dtype(elements))


def _is_random(graph: onnx.GraphProto) -> bool:
    """Whether a node draws random numbers."""
    return any(
        n.op_type in RANDOM or any(_is_random(a.g) for a in n.attribute if a.HasField("g"))
        for n in graph.node
    )


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, dict)) or a is None:
        return repr(a) == repr(b)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "V":  # bfloat16 and 8-bit floats
        a, b = a.astype(np.float32), b.astype(np.float32)
    if a.dtype.kind != "f":
        if a.dtype.kind in "OUS":
            return bool(np.array_equal(a, b))
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
        return bool(apart <= 1)  # an integer that is rounded may lie next to its neighbour
    scale = np.abs(b[np.isfinite(b)], dtype=np.float64).max(initial=1)
    bound = 1e-2 if a.dtype.itemsize == 2 else 1e-4
    return bool(np.isclose(a, b, rtol=bound, atol=bound * scale, equal_nan=True).all())
