"""Forms of valid models that ONNX Runtime gets wrong, and what is written in their place.

A model is right when ONNX Runtime computes it with its graph optimizers, as users run it, and
without them. ``FORMS`` declares each form that is avoided; ``docs/reference/onnxruntime.md`` is
printed from it. The rules see every node of the lowered graph, so that all sources and opsets are
covered.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any, NamedTuple

from serde.ir.builder import Builder
from serde.ir.graph import DType, Graph, Node, Value
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import opset_target
from serde.passes import drop_dead
from serde.rewrite.rules import RuleTable
from serde.spec.traits import RESHAPES
from serde.version_converter.adapters.resize import every_axis

from .pools import POOLS, emit_node, legalize_pool, reaches_kernel

MEASURED = ("1.20.1", "1.23.2", "1.27.0", "1.31.1", "1.32.0")  # releases of ONNX Runtime


class Form(NamedTuple):
    """A form that ONNX Runtime gets wrong in ``releases`` of ``MEASURED``.

    ``optimizer`` is the graph optimizer that rewrites it wrongly, empty where a kernel refuses it.
    """

    what: str
    optimizer: str
    effect: str
    written: str
    releases: tuple[str, ...] = MEASURED


FORMS = {
    "moved-int8": Form(
        "`Transpose`, `Reshape`, `Squeeze`, `Unsqueeze`, `Slice` or `MaxPool` of what a "
        "`DequantizeLinear` of int8 with a zero point made, from opset 21 on",
        "QDQS8ToU8Transformer",
        "the model does not load: the pair put behind the operator becomes one of uint8, but for "
        "its attribute `output_dtype`",
        "the operator on the integers, and `DequantizeLinear` after it",
        MEASURED[2:],
    ),
    "multiplied-int8": Form(
        "`MatMul` of more axes than two, whose left operand a `DequantizeLinear` of int8 made, and "
        "`Add` of a vector, from opset 21 on",
        "QDQS8ToU8Transformer",
        "the model does not load: `MatMulAddFusion` makes both `Gemm` between `Reshape`s with a "
        "pair of their own, which becomes one of uint8 but for its attribute `output_dtype`",
        "the vector with an axis more",
        MEASURED[2:],
    ),
    "pad-pool": Form(
        "`Pad` of zeros before `MaxPool` or `AveragePool`",
        "PadFusion",
        "the zeros become the pool's pads, which a maximum leaves out, and a mean too in some "
        "releases; pads that reach the kernel do not load; with `ceil_mode` the shape is another",
        "where the pool's pads mean the same, these; else `Pad` with its operand `axes`. Below "
        "opset 18 a pool without pads has `auto_pad=VALID`; before others `Pad` adds one element "
        "more, and `Slice` leaves it out",
        MEASURED[:-1],
    ),
    "pads-reach-kernel": Form(
        "a pool whose `pads` are not less than its kernel",
        "",
        "the model does not load",
        "the pads as a `Pad`, and for a mean without pads the sum and the number of elements",
    ),
    "pooled-regions": Form(
        "`MaxRoiPool`, from opset 22 on",
        "",
        "the model does not load: there is no kernel",
        "the largest element of each cell, in a `Loop` over the regions",
    ),
    "transposed-matrix-vector": Form(
        "`MatMul` of a transposed tensor and a vector",
        "MatmulTransposeFusion",
        "other numbers: the transposition is lost",
        "the vector as the first operand, and the tensor transposed once more",
    ),
    "transposed-half": Form(
        "`MatMul` in float16 of a constant matrix and a tensor whose first axis a `Transpose` "
        "moved behind all others, or all but the last",
        "MatmulTransposeFusion",
        "the process ends where the model is loaded",
        "the product first, and `Transpose` after it; where the first axis came last, the matrix "
        "with as many axes as the tensor",
        MEASURED[1:],
    ),
    "transposed-resize": Form(
        "`Resize` with mode `cubic`, or with `axes`, of images that a `Transpose` made",
        "TransposeOptimizer",
        "the model does not load or run: cubic kernels take no channels last, and the operands for "
        "some axes are permuted as if they were for all",
        "every axis listed; cubic images with their first two axes as one",
    ),
}
# Operators ONNX Runtime has no kernel for, and the opset from which it spells them out no more.
WITHOUT_KERNEL = {"Swish": 25}
# Operators that ONNX Runtime moves no Transpose through.
OPAQUE = frozenset(
    "AveragePool Conv ConvTranspose Einsum Flatten GRU Gather GatherElements GatherND Gemm If LSTM "
    "Loop LpPool MatMul MaxPool NonZero RNN Reshape Scan TopK".split()
)
MOVES = (*sorted(RESHAPES - {"Flatten"}), "Slice", "Transpose")
POOLED_REGIONS = 22  # the opset whose MaxRoiPool has no kernel
INT8_PAIRS = 21  # the opset from which pairs that ONNX Runtime puts in tell their type twice
MOST_SEARCHED = 64  # nodes above one that are searched for a Transpose


def operators_without_kernel(opset: int) -> frozenset[str]:
    """Operators to be written as older ones at ``opset``."""
    return frozenset(op for op, first in WITHOUT_KERNEL.items() if opset >= first)


def avoid_runtime_forms(graph: Graph) -> Graph:
    """``graph``, lowered to its opset, without the forms that ONNX Runtime gets wrong."""
    if graph.functions:
        bodies = [replace(f, body=avoid_runtime_forms(f.body)) for f in graph.functions]
        graph = replace(graph, functions=tuple(bodies))
    present = {n.op for n in graph.all_nodes()}
    if not any(_may_have_form(n, present) for n in graph.all_nodes() if n.op in RULES):
        return graph
    builder = Legalizer(graph.name, opset_target(graph.opset))
    table = RuleTable("forms for ONNX Runtime", fallback=_legalize)
    return drop_dead(table.rewrite(graph, builder))


def _may_have_form(node: Node, present: Set[str]) -> bool:
    """Whether a rule may apply: what it looks for above a node is ``present`` in the graph."""
    if not present.isdisjoint(ABOVE[node.op]):
        return True
    pads, kernel = node.attrs.get("pads"), node.attrs.get("kernel_shape")
    is_known = isinstance(pads, tuple) and isinstance(kernel, tuple)
    return node.op in POOLS and is_known and reaches_kernel(pads, kernel)  # type: ignore[arg-type]


def _legalize(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """A node in another form where ``RULES`` has one for it, else as it is."""
    rule = RULES.get(node.op) if not node.domain else None
    if rule is None:
        return g.keep(node, inputs)
    legal = rule(g, node if inputs == node.inputs else replace(node, inputs=inputs))
    return g.keep(node, inputs) if legal is None else legal


def legalize_matmul(g: Any, node: Any) -> Any:
    """A product with a vector on the left: a Transpose before it is taken in rightly there."""
    x, vector = node.inputs
    if x is None or vector is None or x.shape is None or vector.shape is None:
        return None
    if len(vector.shape) == 2 and vector.tensor is not None and vector.dtype is DType.FLOAT16:
        return _multiply_half(g, x, vector)
    if len(vector.shape) != 1 or len(x.shape) < 2 or not _is_transposed(g, x):
        return None
    rank = len(x.shape)
    return g.MatMul(vector, g.Transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2)))


def _multiply_half(g: Any, x: Value, w: Value) -> Any:
    """A product with a matrix, whose left operand no Transpose makes that moves the first axis."""
    transposed, rank = g.producer(x), len(x.ranked_shape)
    if rank < 3 or transposed is None or transposed.op != "Transpose":
        return None
    perm = transposed.attrs["perm"]
    if perm == (*range(1, rank - 1), 0, rank - 1):
        return g.Transpose(g.MatMul(transposed.inputs[0], w), perm=perm)
    return g.MatMul(x, g.Unsqueeze(w, [*range(rank - 2)])) if perm == (*range(1, rank), 0) else None


def legalize_resize(g: Any, node: Any) -> Any:
    """Every axis listed; cubic images arranged so that no optimizer transposes them."""
    x, axes = node.inputs[0], node.attrs.get("axes")
    is_cubic = node.attrs.get("mode") == "cubic" and not node.attrs.get("antialias", 0)
    if x is None or x.shape is None or len(x.shape) != 4 or not (is_cubic or axes):
        return None
    if not _is_transposed(g, x):
        return None
    policy = node.attrs.get("keep_aspect_ratio_policy", "stretch")
    if axes and policy == "stretch":
        operands = (*node.inputs, None, None, None)[:4]
        operands = every_axis(g, *operands, keep_aspect_ratio_policy=policy, axes=axes)
        attrs = {n: v for n, v in node.attrs.items() if n != "axes"}
        node = replace(node, inputs=operands, attrs=attrs)
    return (
        _rearrange_resize(g, node, x) if is_cubic or "axes" in node.attrs else emit_node(g, node, x)
    )


def _rearrange_resize(g: Any, node: Any, x: Value) -> Any:
    """A Resize of the last two axes, the two before them as one, or left out where they are 1."""
    images, channels = x.ranked_shape[:2]
    is_single = images == channels == 1
    if is_single:
        y = g.Squeeze(x, [0, 1])
    else:
        y = g.Reshape(x, [1, -1, 0, 0] if channels == 1 else [-1, 1, 0, 0])
    operands, attrs = node.inputs[1:], dict(node.attrs)
    if "axes" not in attrs:
        operands = _operands_of_last_axes(g, y, is_single, *operands)
    elif is_single:
        attrs["axes"] = tuple(a % 4 - 2 for a in attrs["axes"])
    y = emit_node(g, replace(node, inputs=(y, *operands), attrs=attrs), y)
    if is_single:
        return g.Unsqueeze(y, [0, 1])
    around = [-1, channels] if isinstance(channels, int) else g.Shape(x, end=2)
    return g.Reshape(y, g.Concat(around, [0, 0], axis=0))


def _operands_of_last_axes(
    g: Any, y: Value, is_single: bool, roi: Value | None, scales: Value | None = None,
    sizes: Value | None = None,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The operands of a Resize that leaves the first two axes, for ``y`` in their place."""

    def last(operand: Value | None) -> Any:
        if operand is None or operand.shape == (0,):
            return operand
        ends = [g.Slice(operand, [a], [a + 2], [0]) for a in range(2, operand.static_shape[0], 4)]
        return g.Concat(*ends, axis=0)

    if is_single:
        return last(roi), last(scales), last(sizes)
    if sizes is None:
        return roi, scales
    return roi, scales, g.Concat(g.Shape(y, end=2), last(sizes), axis=0)


def legalize_move(g: Any, node: Node) -> Any:
    """Elements moved as the integers that one scale and one zero point make floats of."""
    x = node.inputs[0]
    producer = None if x is None else g.producer(x)
    if g.opset < INT8_PAIRS or len(node.outputs) > 1 or producer is None or producer.domain:
        return None
    is_dequantized = producer.op == "DequantizeLinear" and len(producer.inputs) == 3
    if not is_dequantized or producer.inputs[0].dtype is not DType.INT8:
        return None
    if any(v is None or v.shape not in ((), (1,)) for v in producer.inputs[1:]):
        return None
    attrs = {n: v for n, v in producer.attrs.items() if n != "axis"}
    moved = emit_node(g, node, producer.inputs[0])
    return emit_node(g, replace(producer, inputs=(moved, *producer.inputs[1:]), attrs=attrs), moved)


def legalize_sum(g: Any, node: Any) -> Any:
    """A vector behind a product of dequantized int8 as a matrix of one row."""
    for x, vector in (node.inputs, node.inputs[::-1]):
        product = g.producer(x) if x is not None and g.opset >= INT8_PAIRS else None
        if product is None or product.op != "MatMul" or vector is None or vector.tensor is None:
            continue
        left = g.producer(product.inputs[0])
        if left is None or left.op != "DequantizeLinear" or left.inputs[0].dtype is not DType.INT8:
            continue
        if len(vector.shape) == 1 and x.shape is not None and len(x.shape) > 2:
            row = g.Unsqueeze(vector, [0])
            return g.Add(x, row) if x is node.inputs[0] else g.Add(row, x)
    return None


def legalize_max_roi_pool(g: Any, node: Any) -> Any:
    """Regions pooled without the operator, where it has no kernel."""
    if g.opset < POOLED_REGIONS:
        return None
    from serde.decompositions.roi import pool_regions

    return pool_regions(g, *node.inputs, **node.attrs)


def _is_transposed(g: Any, x: Value) -> bool:
    """Whether a Transpose stands above ``x`` that ONNX Runtime may move down to it."""
    nodes: set[Node] = set()
    stack = [x]
    while stack and len(nodes) < MOST_SEARCHED:
        node = g.producer(stack.pop())
        if node is None or node in nodes or node.domain or node.op in OPAQUE:
            continue
        if node.op == "Transpose":
            return True
        nodes.add(node)
        stack.extend(v for v in node.inputs if v is not None and v.tensor is None)
    return False


RULES: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(MOVES, legalize_move),
    "Add": legalize_sum,
    "MatMul": legalize_matmul,
    "MaxRoiPool": legalize_max_roi_pool,
    "Resize": legalize_resize,
    **dict.fromkeys(POOLS, legalize_pool),
    "MaxPool": lambda g, node: legalize_move(g, node) or legalize_pool(g, node),
}
# What rules look for above a node.
ABOVE: dict[str, frozenset[str]] = {
    **dict.fromkeys(MOVES, frozenset({"DequantizeLinear"})),
    **dict.fromkeys(("MatMul", "Resize"), frozenset({"Transpose"})),
    "Add": frozenset({"DequantizeLinear"}),
    "MaxRoiPool": frozenset({"MaxRoiPool"}),
    **dict.fromkeys(POOLS, frozenset({"Pad"})),
    "MaxPool": frozenset({"DequantizeLinear", "Pad"}),
}
