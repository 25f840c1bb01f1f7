"""Stand-ins for weights that are not there, for a check of what converts.

Their shapes are inferred as MXNet infers them: from an operator's attributes and its data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Shape, Tensor, Value
from serde.ir.replace_uses import replace_values

from ..infer_shapes.merge_shapes import merge_shapes
from ..infer_shapes.propagate import ERRORS, Propagation
from ..infer_shapes.relations import channel_axis
from ..operators import describe
from ..rnn_sizes import RnnSizes
from .bind_params import missing_parameters, refuse_missing_parameters
from .declared import SHAPES, Declared
from .symbol_info import symbol_info


def add_placeholders(graph: Graph) -> Graph:
    """``graph`` with ones for the parameters, where no file of them was found.

    A parameter of which a size is not known stays an input.

    Raises:
        MalformedFile: for parameters that a file lacks.
    """
    info = symbol_info(graph)
    if info.unused is not None:
        refuse_missing_parameters(graph)
    absent = missing_parameters(graph)
    if not absent:
        return graph
    shapes = infer_parameters(graph, info.variables, absent)
    instead = {}
    for v in graph.inputs:
        if v.name in absent and (shape := shapes.get(v)) is not None:
            dtype = v.dtype or info.variables.get(v.name, Declared()).dtype or DType.FLOAT32
            instead[v] = make_placeholder(v.name, dtype, shape)
    replaced = replace_values(graph, instead)
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    note = f"{info.searched}: checked without {len(absent)} weights, whose shapes are inferred"
    return replace(
        replaced, inputs=tuple(v for v in inputs if v.tensor is None), notes=(*graph.notes, note)
    )


def make_placeholder(name: str, dtype: DType, shape: Shape) -> Value:
    """A constant of ones, which takes no memory; an input where a size is not known."""
    static = tuple(d for d in shape if isinstance(d, int))
    if len(static) < len(shape):
        return Value(name, dtype, tuple(d if isinstance(d, int) else None for d in shape))
    load = partial(np.broadcast_to, np.ones((), dtype.numpy), static)
    return Value(name, dtype, static, Tensor(dtype, static, load), name_is_original=True)


def infer_parameters(
    graph: Graph, variables: Mapping[str, Declared], absent: Mapping[str, Shape | None]
) -> dict[Value, Shape]:
    """What is known of the shapes of the parameters that are ``absent``."""
    declared = {
        v: s for v in graph.inputs if (s := variables.get(v.name, Declared()).shape) is not None
    }
    known = Propagation(graph.nodes, {**declared})
    known.run()
    parameters = {
        v: merge_shapes(declared.get(v), absent[v.name]) for v in graph.inputs if v.name in absent
    }
    for node in graph.nodes:
        x = node.inputs[0] if node.inputs else None
        shape = known.shape_of(x) if x is not None else None
        positions = describe(node.op).parameters
        if not positions:
            continue
        try:
            shapes = infer_parameter_shapes(node, shape)
        except ERRORS:
            continue  # its rule will say what is wrong with the attributes
        for at, inferred in zip(positions, shapes, strict=False):
            v = node.inputs[at] if at < len(node.inputs) else None
            if v is not None and v in parameters:
                parameters[v] = merge_shapes(parameters[v], inferred)
    return {v: s for v, s in parameters.items() if s is not None}


def infer_parameter_shapes(node: Node, x: Shape | None) -> tuple[Shape, ...]:
    """The shapes of a node's parameters, given its data's."""
    if node.op == "RNN":
        return _rnn(node.attrs, x)
    if node.op in SHAPES:
        return SHAPES[node.op](node.attrs, x)
    about = describe(node.op)
    size = None if x is None else x[channel_axis(node, about.channels or 1, len(x))]
    return ((size,),) * len(about.parameters)


def _rnn(attrs: Mapping[str, Any], x: Shape | None) -> tuple[Shape, ...]:
    """All layers in one row; where the features are not known, as many as the layer has cells."""
    sizes = RnnSizes.of(attrs)
    features = x[-1] if x is not None and isinstance(x[-1], int) else sizes.hidden
    return ((sizes.count_parameters(features),),)
