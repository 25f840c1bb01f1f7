"""``mxnet.onnx.export_model``, as serde does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.ir.graph import Graph

from .mxnet_outputs import exported_outputs


def export_model(
    sym: Any,
    params: Any,
    in_shapes: Sequence[Sequence[int]] | None = None,
    in_types: Any = np.float32,
    onnx_file_path: str = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[Sequence[Any]] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Sequence[Sequence[int]] | None = None,
    *,
    opset: int | None = None,
    opset_version: int | None = None,
    large_model: bool = False,
    random: str = "onnx",
    **options: Any,
) -> str:
    """Export to ONNX with the signature of ``mxnet.onnx.export_model``; return the file's path.

    As there, operators that draw random numbers become ONNX's, unless ``random`` says otherwise,
    and the outputs have the exporter's names and order (``exported_outputs``), unless ``outputs``
    are named.

    ``in_shapes`` and ``in_types`` follow the order of the model's data inputs, or of those and its
    labels, of which the result has none. ``dynamic`` names the dimensions of
    ``dynamic_input_shapes``, or leaves all open; as in ONNX, dimensions of one name are of one
    size. ``run_shape_inference`` changes nothing: shapes are always inferred. ``input_type`` and
    ``input_shape`` are the older names of ``in_types`` and ``in_shapes``.
    ``opset_version`` and ``large_model`` are parameters of other releases of MXNet: the opset, and
    weights in a file of their own. Some had the opset in the place of ``dynamic``: a number there
    is one.
    """
    from serde import api

    if not isinstance(dynamic, bool):
        opset_version, dynamic = dynamic, False
    graph = _inference_graph(sym, params, options)
    shapes = _requested_shapes(
        in_shapes if in_shapes is not None else input_shape, dynamic, dynamic_input_shapes
    )
    types = input_type if input_type is not None else in_types
    names = [v.name for v in graph.inputs]
    if shapes is not None and len(shapes) != len(names):
        names = _inputs_of(sym, params, names, len(shapes))
    kinds = list(types) if isinstance(types, (list, tuple)) else [types]
    kinds = kinds * len(names) if len(kinds) == 1 else kinds
    if len(kinds) != len(names):
        raise UsageError(f"{len(kinds)} input types for {len(names)} inputs: {', '.join(names)}")
    specs = zip(names, shapes or [None] * len(names), kinds, strict=True)
    if large_model:
        options.setdefault("external_data", "always")
    if not options.get("outputs"):
        order, new_names = exported_outputs(graph)
        if order != [v.name for v in graph.outputs]:
            options["outputs"] = order
        options["rename"] = {**new_names, **(options.get("rename") or {})}
    report = api.convert(
        sym,
        onnx_file_path,
        params=params,
        inputs={name: (_dims(shape), kind) for name, shape, kind in specs},
        opset=opset if opset is not None else opset_version,
        to_format="onnx",
        random=random,
        **options,
    )
    if verbose:
        print(report.to_json())
    return onnx_file_path


def _requested_shapes(
    shapes: Any, dynamic: bool, dynamic_shapes: Sequence[Sequence[Any]] | None
) -> Any:
    """One shape for each input: those of ``dynamic_shapes``, where the export is dynamic."""
    shapes, dynamic_shapes = _as_list(shapes), _as_list(dynamic_shapes)
    if dynamic_shapes is None:
        return [(None,) * len(s) for s in shapes or ()] if dynamic else shapes
    if not dynamic:
        raise UsageError("dynamic_input_shapes are given: set dynamic=True to export with them")
    ranks, expected = ([len(s) for s in x or ()] for x in (dynamic_shapes, shapes))
    if shapes is not None and ranks != expected:
        raise UsageError(
            f"dynamic_input_shapes {dynamic_shapes} are not of the ranks of in_shapes {shapes}"
        )
    return dynamic_shapes


def _as_list(shapes: Any) -> Any:
    """A list of shapes; a shape alone is that of a single input."""
    if shapes is None:
        return None
    shapes = list(shapes)
    is_shape = any(isinstance(d, (int, np.integer, str)) for d in shapes)
    return [shapes] if is_shape else shapes


def _dims(shape: Any) -> Any:
    """The exporter took the text ``None`` for an open dimension."""
    return None if shape is None else tuple(None if d == "None" else d for d in shape)


def data_inputs(sym: Any, params: Any) -> list[str]:
    """A model's inputs that are neither parameters nor labels, in MXNet's order."""
    return [v.name for v in _inference_graph(sym, params, {}).inputs]


def _inference_graph(sym: Any, params: Any, options: Mapping[str, Any]) -> Graph:
    """MXNet's graph of a model, without its labels."""
    from serde import api
    from serde.formats.mxnet.passes.drop_labels import drop_labels

    graph, _ = api.read(sym, params=params, ignore_extra=True)
    return drop_labels(graph, rules=options.get("rules") or ())


def _inputs_of(sym: Any, params: Any, names: list[str], count: int) -> list[str]:
    """The inputs that ``count`` shapes are of, where these are not all ``names``.

    Labels may be among them; MXNet's exporter expects none for that of the last layer.
    """
    from serde import api

    graph, _ = api.read(sym, params=params, ignore_extra=True)
    all_ = [v.name for v in graph.inputs]
    last = f"{graph.nodes[-1].name}_label" if graph.nodes else ""
    for candidate in (all_, [n for n in all_ if n != last]):
        if len(candidate) == count:
            return candidate
    listing, labels = (
        ", ".join(map(repr, n)) for n in (names, [n for n in all_ if n not in names])
    )
    more = f"; its labels, whose shapes may be given too, are {labels}" if labels else ""
    raise UsageError(f"{count} input shapes for {len(names)} inputs: {listing}{more}")
