"""Rewrites operators of older releases of TVM as those of TVM 0.17.

What changed when is in the declarations of attributes (include/tvm/relay/attrs) and in the type
relations of each release. JSON names the release that wrote it, and so does text that holds
constants. Where the release is unknown and an operator changed its meaning, shapes may decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import Dim, Graph, Node, Tensor, Value
from serde.ir.map_nodes import map_nodes

Version = tuple[int, int]
Attrs = dict[str, Any]
Form = tuple[str, list[Any], Attrs]
Rewrite = Callable[[str, list[Any], Attrs, "Version | None"], Form]

RENAMED = {
    "_contrib_reverse_reshape": "contrib_reverse_reshape",
    "contrib.adaptive_avg_pool2d": "nn.adaptive_avg_pool2d",
    "contrib.adaptive_max_pool2d": "nn.adaptive_max_pool2d",
    "contrib.ndarray_size": "ndarray_size",
    "nn.contrib_conv2d_NCHWc_int8": "nn.contrib_conv2d_NCHWc",
}
# Attributes that became operands: in which order, and their defaults
SCALES = ("scale", "zero_point")
OPERANDS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "nn.pad": (("pad_value", 0.0),),
    "vision.get_valid_counts": (("score_threshold", 0.0),),
    "qnn.quantize": (("output_scale", None), ("output_zero_point", None)),
    "qnn.dequantize": (("input_scale", None), ("input_zero_point", None)),
    "qnn.requantize": tuple((f"{of}_{q}", None) for of in ("input", "output") for q in SCALES),
    **{
        op: tuple((f"{of}_{q}", None) for of in ("lhs", "rhs", "output") for q in SCALES)
        for op in ("qnn.add", "qnn.mul", "qnn.subtract")
    },
    **{
        op: tuple((f"{of}_{q}", None) for q in SCALES[::-1] for of in ("input", "kernel"))
        for op in ("qnn.conv2d", "qnn.dense")
    },
}
GIVE_RELEASE = "{}: give the release that wrote the module, as tvm='0.17'"
MOST_OPERANDS = {"nn.pad": 1, "vision.get_valid_counts": 1, "qnn.quantize": 1, "qnn.dequantize": 1,
         "qnn.requantize": 1}  # fmt: skip


def parse_release(text: str) -> Version | None:
    """``0.6.1`` as (0, 6); None for anything else."""
    numbers = [int(n) for n in text.split(".")[:2] if n.isascii() and n.isdigit() and len(n) < 9]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def upgrade_graph(graph: Graph, written: Version | None) -> Graph:
    """``graph``, written by the release ``written``, in the operators of TVM 0.17."""
    return map_nodes(graph, lambda node: _upgrade_node(node, written))


def _upgrade_node(node: Node, written: Version | None) -> Node:
    if node.op not in REWRITES and node.op not in RENAMED:
        return node
    op = RENAMED.get(node.op, node.op)
    form: Form = (op, list(node.inputs), dict(node.attrs))
    if op in REWRITES:
        form = REWRITES[op](*form, written)
    op, inputs, attrs = form
    return replace(node, op=op, inputs=tuple(inputs), attrs=attrs)


def make_constant(number: Any, name: str) -> Value:
    """A constant operand: integers are int32, others float32."""
    array = np.asarray(number)
    array = array.astype(np.int32 if array.dtype.kind in "iu" else np.float32)
    tensor = Tensor.of(array)
    return Value(name, tensor.dtype, array.shape, tensor)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def move_to_operands(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """Scales, zero points, pad values and thresholds were attributes."""
    names = OPERANDS[op]
    if len(inputs) > MOST_OPERANDS.get(op, 2):
        return op, inputs, attrs
    values = [attrs.get(name, default) for name, default in names]
    if not all(map(_is_number, values)):
        return op, inputs, attrs
    for name, _ in names:
        attrs.pop(name, None)
    for (name, _), number in zip(names, values, strict=True):
        typed = int(number) if "zero" in name else float(number)
        inputs.append(make_constant(typed, name))
    return op, inputs, attrs


def upgrade_concatenate(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """The scales and zero points of all tensors, then those of the result, were attributes."""
    quantities: list[Any] = [attrs.get(n) for n in ("output_scale", "output_zero_point")]
    scales, zeros = (attrs.get(n, ()) for n in ("input_scales", "input_zero_points"))
    lists = all(isinstance(v, tuple) for v in (scales, zeros))
    if lists and scales and all(map(_is_number, (*quantities, *scales, *zeros))):
        attrs = {"axis": attrs.get("axis", 0)}
        inputs += [make_constant(float(s), "input_scale") for s in scales]
        inputs += [make_constant(int(z), "input_zero_point") for z in zeros]
        inputs.append(make_constant(float(quantities[0]), "output_scale"))
        inputs.append(make_constant(int(quantities[1]), "output_zero_point"))
    return op, inputs, attrs


def upgrade_non_max_suppression(
    op: str, inputs: list[Any], attrs: Attrs, written: Version | None
) -> Form:
    """Up to 0.7 the limit and the threshold were attributes; in 0.6 there were no indices."""
    limit, overlap = attrs.get("max_output_size", -1), attrs.get("iou_threshold", 0.5)
    if len(inputs) < 5 and _is_number(limit) and _is_number(overlap):
        attrs = {k: v for k, v in attrs.items() if k not in ("max_output_size", "iou_threshold")}
        if len(inputs) == 2 and not attrs.get("return_indices", True):
            inputs.append(inputs[1])
        inputs.append(make_constant(int(limit), "max_output_size"))
        inputs.append(make_constant(float(overlap), "iou_threshold"))
    return op, inputs, attrs


def upgrade_resize(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """``image.resize`` of 0.6, with ``align_corners``, and of 0.7."""
    old = "align_corners" in attrs or (written is not None and written < (0, 7))
    if old:
        aligned = attrs.pop("align_corners", True)
        attrs["coordinate_transformation_mode"] = "align_corners" if aligned else "asymmetric"
    attrs["method"] = str(attrs.get("method", "bilinear")).removeprefix("bi")
    attrs["rounding_method"] = ""
    attrs["cubic_alpha"] = attrs.pop("bicubic_alpha", -0.5)
    attrs["cubic_exclude"] = attrs.pop("bicubic_exclude", 0)
    if op == "dyn.image.resize":
        return "dyn.image.resize2d", [*inputs, make_constant(np.zeros(0), "roi")], attrs
    return "image.resize2d", inputs, attrs


def upgrade_resize3d(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """In 0.7 the method was called ``trilinear``, and nearest elements were those before."""
    if attrs.get("method") == "trilinear" or (written is not None and written < (0, 8)):
        attrs["method"] = str(attrs.get("method", "trilinear")).removeprefix("tri")
        attrs.setdefault("rounding_method", "")
    return op, inputs, attrs


def upgrade_reshape(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """Up to 0.7 an attribute repeated what the operator's name tells."""
    attrs.pop("reverse", None)
    return op, inputs, attrs


def upgrade_batch_matmul(op: str, inputs: list[Any], attrs: Attrs, written: Version | None) -> Form:
    """Up to 0.7 the second matrix was always transposed."""
    if "transpose_a" in attrs or "transpose_b" in attrs or (written and written >= (0, 8)):
        return op, inputs, attrs
    if written:
        attrs["transpose_b"] = True
    return op, inputs, attrs


def upgrade_conv_transpose(op: str, inputs: list[Any], attrs: Attrs, written: Any) -> Form:
    """Up to 0.11 the layout's letters for input and output channels were swapped."""
    layout = attrs.get("kernel_layout")
    if not isinstance(layout, str) or (written and written >= (0, 12)):
        return op, inputs, attrs
    if written:
        attrs["kernel_layout"] = swap_channels(layout)
    return op, inputs, attrs


def ambiguous_nodes(graph: Graph) -> Iterator[Node]:
    """Nodes that mean another thing in a later release, where the release is not known."""
    for node in graph.all_nodes():
        rewrite = REWRITES.get(node.op)
        if rewrite is upgrade_batch_matmul:
            is_ambiguous = node.attrs.keys().isdisjoint(("transpose_a", "transpose_b"))
        else:
            layout = node.attrs.get("kernel_layout")
            is_ambiguous = rewrite is upgrade_conv_transpose and isinstance(layout, str)
        if is_ambiguous:
            yield node


def swap_channels(layout: str) -> str:
    """A layout with the letters of input and output channels swapped."""
    return layout.translate(str.maketrans("IOio", "OIoi"))


def was_transposed(x: Value, y: Value) -> bool:
    """Whether only the transpose of ``y`` can be multiplied with ``x``."""
    what = "TVM up to 0.7 transposed the second of these matrices"
    return _fits_older_only(x.ranked_shape[-1], y.ranked_shape[-2], y.ranked_shape[-1], what)


def kernel_layout_of(x: Value, w: Value, layout: str, data: str) -> str:
    """``layout``, or what it means if only a release up to 0.11 can have written it."""
    old = swap_channels(layout)
    if old == layout or len(layout) != w.rank or len(data) != x.rank:
        return layout
    now, then = (w.ranked_shape[text.index("I")] for text in (layout, old))
    if layout.startswith("IO") and now == then:
        return layout  # the default, as it is written out today
    what = f"TVM up to 0.11 meant {old} by {layout}"
    return old if _fits_older_only(x.ranked_shape[data.index("C")], now, then, what) else layout


def _fits_older_only(size: Dim, now: Dim, then: Dim, what: str) -> bool:
    """Whether ``size`` equals the dimension that an older release meant, and not today's."""
    same = [size is not None and size == other for other in (now, then)]
    if same[0] == same[1]:
        unknown = [s or not (isinstance(size, int) and isinstance(other, int))
                 for s, other in zip(same, (now, then), strict=True)]  # fmt: skip
        require(unknown[0] != unknown[1], GIVE_RELEASE.format(what))
        return unknown[1]
    return same[1]


REWRITES: Mapping[str, Rewrite] = {
    **dict.fromkeys(OPERANDS, move_to_operands),
    "contrib_reverse_reshape": upgrade_reshape,
    "dyn.image.resize": upgrade_resize,
    "image.resize": upgrade_resize,
    "image.resize3d": upgrade_resize3d,
    "nn.batch_matmul": upgrade_batch_matmul,
    "nn.conv1d_transpose": upgrade_conv_transpose,
    "nn.conv2d_transpose": upgrade_conv_transpose,
    "nn.conv3d_transpose": upgrade_conv_transpose,
    "qnn.concatenate": upgrade_concatenate,
    "qnn.conv2d_transpose": upgrade_conv_transpose,
    "reshape": upgrade_reshape,
    "vision.non_max_suppression": upgrade_non_max_suppression,
}
