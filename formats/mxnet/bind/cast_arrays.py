"""Arrays in the types that MXNet infers: ``Module.set_params`` casts what a file holds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from serde.errors import UsageError
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.ir.printer import list_first
from serde.ir.replace_uses import replace_values

from ..infer_shapes.infer_inputs import have_one_type
from ..operators import describe
from .declared import Declared

FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})
BY_NAME = {dtype.value: dtype for dtype in FLOATS}
Types = dict[Value, DType]


def cast_arrays(graph: Graph, variables: Mapping[str, Declared]) -> Graph:
    """Return ``graph`` with arrays of floats cast where its inputs have another type.

    The types of inputs are those callers name, or variables declare. Where none has one, and the
    arrays contradict each other, inputs are float32, as MXNet takes it. A note tells of casts.

    Raises:
        UsageError: for an array whose variable declares its type, which MXNet refuses.
    """
    declared = {v: v.dtype or variables.get(v.name, Declared()).dtype for v in graph.inputs}
    seeds = {v: dtype for v, dtype in declared.items() if dtype in FLOATS and dtype is not None}
    casts = _find_casts(graph, seeds)
    if casts and not seeds:
        casts = _find_casts(graph, {v: DType.FLOAT32 for v, dtype in declared.items() if not dtype})
    if not casts:
        return graph
    for v, dtype in casts.items():
        if variables.get(v.name, Declared()).dtype == v.dtype and v.dtype is not None:
            raise UsageError(
                f"{v.name!r} is declared as {v.dtype.value}, and is computed with {dtype.value}, "
                "the type of the inputs: MXNet refuses that. Leave out the types of inputs, or "
                "give --fp32, which computes everything in float32"
            )
    instead = {v: _cast(v, dtype) for v, dtype in casts.items()}
    notes = (*graph.notes, _describe(casts))
    return replace(replace_values(graph, instead), notes=notes)


def _find_casts(graph: Graph, seeds: Types) -> Types:
    """The arrays whose type is not the one that is inferred, and that."""
    types, casts = dict(seeds), Types()
    for node in graph.nodes:
        named = BY_NAME.get(str(node.attrs.get("dtype", "float32")))
        about, operands = describe(node.op), have_one_type(node)
        known = (types[v] for v in operands if v is not None and v in types)
        dtype = next(known, None) or (None if seeds else _type_of_parameters(node))
        if about.names_type and (seeds or not about.parameters):
            dtype = named
        if dtype is None:
            continue
        types.update(dict.fromkeys(node.outputs, dtype))
        for at, v in enumerate(node.inputs):
            is_parameter = at in about.parameters or v in operands
            if v is not None and v.tensor is not None and is_parameter and v.dtype in FLOATS:
                is_wide = about.has_float32_parameters and dtype is not DType.FLOAT64
                expected = DType.FLOAT32 if is_wide else dtype
                if v.dtype is not expected:
                    casts.setdefault(v, expected)
    return casts


def _type_of_parameters(node: Node) -> DType | None:
    """The type of a layer's first array of floats, if it has one."""
    about = describe(node.op)
    if about.has_float32_parameters:
        return None
    parameters = (v for at, v in enumerate(node.inputs) if v and at in about.parameters)
    return next((v.dtype for v in parameters if v.tensor and v.dtype in FLOATS), None)


def _cast(value: Value, dtype: DType) -> Value:
    assert value.tensor is not None
    tensor = Tensor(dtype, value.tensor.shape, partial(_load_as, value.tensor, dtype))
    result = Value(value.name, dtype, value.shape, tensor, name_is_original=value.name_is_original)
    result.origins = value.origins
    return result


def _load_as(tensor: Tensor, dtype: DType) -> Any:
    return tensor.load().astype(dtype.numpy)


def _describe(casts: Types) -> str:
    names = [f"{v.name!r} to {dtype.value}" for v, dtype in casts.items()]
    return f"arrays are cast as Module.set_params casts them: {list_first(names, 4)}"
