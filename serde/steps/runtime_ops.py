"""What ONNX Runtime runs in the default domain and the standard of that opset does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from serde.errors import require
from serde.geometry import Ints
from serde.graph import IR_OPSET, Graph, Node, Value
from serde.misfits import refuse_misfits
from serde.rules import RuleTable

from .common import END, size

# Operators, and the opsets at which ONNX Runtime has them although the standard has not.
BELOW_10 = range(1, 10)
LAYER_NORMALIZATION = 17  # the opset that has it
OPSETS = {
    "Affine": BELOW_10,
    "Crop": BELOW_10,
    "DynamicSlice": BELOW_10,
    "GroupNormalization": range(18, 21),
    "ImageScaler": BELOW_10,
    "LayerNormalization": range(1, LAYER_NORMALIZATION),
    "ParametricSoftplus": BELOW_10,
    "Scale": BELOW_10,
    "ScaledTanh": BELOW_10,
    "SimplifiedLayerNormalization": range(1, IR_OPSET + 1),
}
SCATTERING = ("ScatterElements", "ScatterND")
extensions = RuleTable("ONNX Runtime → ir")


def is_runtime_op(node: Node, opset: int) -> bool:
    """Whether ONNX Runtime has the node's operator at ``opset``, and the standard has not."""
    return not node.domain and opset in OPSETS.get(node.op, ())


def read_runtime_op(g: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Emit such a node in operators of the standard."""
    if node.op == "LayerNormalization":
        with g.speaking(LAYER_NORMALIZATION):
            refuse_misfits(LAYER_NORMALIZATION, node)
            return g.emit(node.op, inputs, node.attrs, len(node.outputs))
    with g.speaking(IR_OPSET):
        return extensions.apply(node, g, inputs)[: len(node.outputs)]


def with_standard_attributes(node: Node) -> Node:
    """The node with an attribute that ONNX Runtime takes for the default as the default."""
    if node.domain or node.op not in SCATTERING or node.attrs.get("reduction") != "update":
        return node
    return replace(node, attrs={**node.attrs, "reduction": "none"})


def notes(graph: Graph) -> Iterator[str]:
    """What is said of a model with such nodes: each operator, and how many there are."""
    counts: dict[str, int] = {}
    pairs = [(graph, graph.opset), *((f.body, f.body.opset) for f in graph.functions)]
    while pairs:
        body, opset = pairs.pop()
        for node in body.nodes:
            said = f"{node.op} of opset {opset}" if is_runtime_op(node, opset) else ""
            if with_standard_attributes(node) is not node:
                said = f"{node.op} with reduction='update'"
            if said:
                counts[said] = counts.get(said, 0) + 1
            pairs.extend((inner, opset) for inner in node.graphs())
    for said, count in counts.items():
        yield f"{said} ×{count}: not in the standard; read as ONNX Runtime runs it"


@extensions("SimplifiedLayerNormalization")
def read_simplified_layer_normalization(
    g, x: Value, scale: Value, *, axis=-1, epsilon=1e-5, stash_type=1
):
    """RMSNormalization, and the reciprocal of the root it divides by."""
    wide = g.Cast(x, to=stash_type)
    axes = list(range(axis % x.rank, x.rank))
    square = g.ReduceMean(g.Mul(wide, wide), axes, keepdims=1)
    inverse = g.Reciprocal(g.Sqrt(g.Add(square, epsilon)))
    y = g.RMSNormalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    return y, inverse


@extensions("GroupNormalization")
def read_group_normalization(
    g, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon=1e-5
):
    """Opsets 18 to 20 scale by group; the IR, as opset 21, by channel."""
    require(num_groups > 0, f"num_groups={num_groups}")
    for v in (scale, bias):
        (count,) = v.known if v.rank == 1 else (None,)
        fits = v.rank == 1 and (count == num_groups or not isinstance(count, int))
        require(fits, f"{count} numbers for {num_groups} groups")
    count = g.Div(size(g, x, 1), num_groups)
    shape = g.Concat([num_groups], count, axis=0)
    scale, bias = (g.Reshape(g.Expand(g.Unsqueeze(v, [1]), shape), [-1]) for v in (scale, bias))
    return g.GroupNormalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@extensions("Affine")
def read_affine(g, x: Value, *, alpha=1.0, beta=0.0):
    return g.Add(g.Mul(x, alpha), beta)


@extensions("Scale")
def read_scale(g, x: Value, *, scale=1.0):
    return g.Mul(x, scale)


@extensions("ImageScaler")
def read_image_scaler(g, x: Value, *, scale=1.0, bias: tuple[float, ...] = ()):
    require(len(bias) > 0, "ImageScaler without a bias for each channel")
    return g.Add(g.Mul(x, scale), [[[b]] for b in bias])


@extensions("ScaledTanh")
def read_scaled_tanh(g, x: Value, *, alpha: float, beta: float):
    return g.Mul(g.Tanh(g.Mul(x, beta)), alpha)


@extensions("ParametricSoftplus")
def read_parametric_softplus(g, x: Value, *, alpha: float, beta: float):
    return g.Mul(g.Softplus(g.Mul(x, beta)), alpha)


@extensions("Crop")
def read_crop(g, x: Value, *, border: Ints, scale: Ints = ()):
    """``border`` is left, top, right and bottom; ``scale``, height and width of what is left."""
    require(x.rank == 4 and len(border) == 4, f"Crop of {x.rank} axes by {len(border)} borders")
    left, top, right, bottom = border
    if scale:
        require(len(scale) == 2, f"a scale of {len(scale)} numbers")
        ends = [top + scale[0], left + scale[1]]
    else:
        ends = [-bottom or END, -right or END]
    return g.Slice(x, [top, left], ends, [2, 3])


@extensions("DynamicSlice")
def read_dynamic_slice(g, x: Value, starts: Value, ends: Value, axes=None):
    return g.Slice(x, starts, ends, axes)
