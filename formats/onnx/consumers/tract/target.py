"""What tract accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from itertools import zip_longest
from math import prod

from serde.decompositions.table import add_decompositions
from serde.ir.dim_expr import Elements, product, shape_data_of, split_coefficient
from serde.ir.graph import DType, Node, Shape
from serde.legalize.target import IllegalForm, Target, TypeConstraints
from serde.spec.traits import REDUCES

from ..illegal_forms import (
    check_suppressed,
    check_transposed_pads,
    require_constants,
    require_int32,
    require_known_axes,
)
from ..shared_sizes import require_shared_sizes
from ..support_table import EMULATED, require_measured_types, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset it was measured at
# What the node tests of one operator leave out.
UNTESTED: dict[str, TypeConstraints] = {"Shape": {}}
BYTES = frozenset({DType.INT8, DType.UINT8})  # it cuts off what overflows
FLOATS = frozenset(d for d in DType if d.kind == "f")
OF_FLOATS: dict[str, TypeConstraints] = {
    op: {tie: types & FLOATS for tie, types in SUPPORTED[op].items()} for op in ("Einsum", "PRelu")
}
SUPPORTS = without_types(SUPPORTED, ["Mul"], BYTES) | UNTESTED | OF_FLOATS
ARITHMETIC = frozenset("Add Div Max Min Mod Mul Sub Where".split())  # which tract does in sizes
UNDIVIDED = (
    "tract has no Reshape of a size by name to parts or a number: give numbers (--static, --input)"
)


def check_training(node: Node) -> str | None:
    """BatchNormalization and Dropout: tract has them for inference."""
    if node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        return "tract has Dropout for inference only"
    return f"tract has {node.op} for inference only" if node.attrs.get("training_mode") else None


def check_square(node: Node) -> str | None:
    """Mul: tract makes a square of a tensor times itself, and has squares of floats only."""
    a, b = node.inputs
    is_square = a is not None and a is b and a.dtype is not None and a.dtype.kind != "f"
    return "tract has no squares of integers" if is_square else None


def check_sizes(node: Node) -> str | None:
    """Expand and Slice: shapes and bounds have to follow from the sizes of tensors."""
    result = node.outputs[0].shape
    follows = result is not None and None not in result
    if follows or all(v is None or v.tensor is not None for v in node.inputs[1:]):
        return None
    return f"tract has no {node.op} to a size that depends on data"


def check_steps(node: Node) -> str | None:
    """Slice: with steps along axes whose size has a number."""
    x, _, _, axes, steps = (*node.inputs, None, None)[:5]
    if x is None or x.shape is None or steps is None or steps.tensor is None:
        return None
    by = steps.ints()
    over = axes.ints() if axes is not None and axes.tensor is not None else range(len(by))
    pairs = zip(over, by, strict=False)
    is_named = any(step != 1 and not isinstance(x.shape[axis], int) for axis, step in pairs)
    return "tract has no steps along a size by name (--static, --input)" if is_named else None


def check_expanded(node: Node) -> str | None:
    """Expand: a size by name is not broadcast to a number."""
    x, shape = node.inputs
    own = () if x is None else x.shape or ()
    wide = shape_data_of(shape) or node.outputs[0].shape or ()
    pairs = zip(own[::-1], wide[::-1], strict=False)
    is_mixed = any(not isinstance(a, int) and isinstance(b, int) and b != 1 for a, b in pairs)
    return "tract expands no size by name to a number (--static, --input)" if is_mixed else None


def check_scale(node: Node) -> str | None:
    """GroupNormalization: scales of a size by name are not broadcast to a number of channels."""
    is_open = any(v is not None and not v.is_static for v in node.inputs[1:])
    x = node.inputs[0]
    if not is_open or x is None or x.shape is None or not isinstance(x.shape[1], int):
        return None
    return "tract scales channels by as many numbers, not by a size by name (--static, --input)"


def check_channels(node: Node) -> str | None:
    """DepthToSpace and GroupNormalization: channels of a size by name are not divided."""
    x = node.inputs[0]
    is_known = x is None or x.shape is None or isinstance(x.shape[1], int)
    return None if is_known else "tract takes a number of channels (--static, --input)"


def check_shape(node: Node) -> str | None:
    """Reshape: its shape has to follow from the sizes of tensors."""
    shape = node.inputs[1]
    x = node.inputs[0]
    if shape is None:
        return None
    known = shape.ints() if shape.tensor is not None else shape.shape_data or (None,)
    sizes = None if x is None else x.shape
    if None in known or (None in (sizes or ()) and -1 not in known):
        return "tract has no Reshape to a size that depends on data"
    return None if sizes is None or is_whole(sizes, known) else UNDIVIDED


def is_whole(sizes: Shape, known: Elements) -> bool:
    """Whether Reshape has as many elements as before for all that sizes by name may be."""
    if any(not isinstance(d, int) for d in known):
        return True
    kept = {at for at, d in enumerate(known) if d == 0}
    total = product(tuple(d for at, d in enumerate(sizes) if at not in kept))
    if total is None or isinstance(total, int):
        return True
    if -1 not in known:
        return False
    parts = prod(d for d in known if isinstance(d, int) and d > 0)
    return split_coefficient(total)[1] % parts == 0


def check_filters(node: Node) -> str | None:
    """ConvTranspose: by filters whose sizes are numbers."""
    filters = node.inputs[1]
    is_known = filters is None or filters.is_static
    return None if is_known else "tract takes filters whose sizes have numbers (--static, --input)"


def check_axis(node: Node) -> str | None:
    """Hardmax: over a number of elements."""
    x, axis = node.inputs[0], int(str(node.attrs.get("axis", -1)))
    is_known = x is None or x.shape is None or isinstance(x.shape[axis], int)
    return None if is_known else "tract has Hardmax of sizes that have numbers (--static, --input)"


def check_resized(node: Node) -> str | None:
    """Resize: from sizes that are numbers, or stay as they are, by constants."""
    x, scales = node.inputs[0], node.inputs[2] if len(node.inputs) > 2 else None
    is_held = scales is not None and scales.tensor is not None and not node.attrs.get("axes")
    factors = scales.array().tolist() if scales is not None and is_held else []
    named = [at for at, d in enumerate((x and x.shape) or ()) if not isinstance(d, int)]
    if x is None or x.shape is None or any(factors[at : at + 1] != [1] for at in named):
        return "tract resizes tensors whose sizes have numbers (--static, --input)"
    return require_constants("tract", 1, 2, 3)(node)


def check_image(node: Node) -> str | None:
    """SpaceToDepth: of images whose sizes are numbers."""
    x = node.inputs[0]
    is_known = x is None or x.shape is None or all(isinstance(d, int) for d in x.shape[2:])
    return None if is_known else "tract takes images whose sizes have numbers (--static, --input)"


def check_broadcast(node: Node) -> str | None:
    """Arithmetic: what a count in the run makes the size of is not broadcast to a number."""
    shapes = [v.shape[::-1] for v in node.inputs if v is not None and v.shape is not None]
    sizes = (dims for dims in zip_longest(*shapes, fillvalue=1) if None in dims)
    is_mixed = any(isinstance(d, int) and d != 1 for dims in sizes for d in dims)
    return f"tract has no {node.op} of a dynamic size and a number" if is_mixed else None


def check_mixed_sizes(node: Node) -> str | None:
    """Products and results of the model: tract makes symbols of int64 and a size by name."""
    operands = [v for v in node.inputs if v is not None and v.dtype is DType.INT64]
    has_symbols = any(isinstance(d, str) for v in operands for d in v.shape_data or ())
    has_data = any(v.tensor is None and v.shape_data is None for v in operands)
    if not (has_symbols and has_data and node.outputs[0].dtype is DType.INT64):
        return None
    return (
        f"tract has no {node.op} of int64 and a size by name: use int32, or give sizes (--static)"
    )


def check_quotient(node: Node) -> str | None:
    """Div: of int64 by a size by name."""
    dividend = node.inputs[0]
    is_size = dividend is not None and dividend.shape_data is not None
    return None if is_size else check_mixed_sizes(node)


def check_count(node: Node) -> str | None:
    """Range: in steps of a number; how many there are is not known of steps of a size by name."""
    step = shape_data_of(node.inputs[2]) or ()
    is_named = any(isinstance(d, str) for d in step)
    return "tract has no Range in steps of a size by name (--static, --input)" if is_named else None


def check_ranks(node: Node) -> str | None:
    """TopK: of a number of elements, which may depend on data, but not of a size by name."""
    count = node.inputs[1]
    known = None if count is None else count.shape_data
    is_named = any(isinstance(d, str) for d in known or ())
    return "tract has no TopK of a size by name (--static, --input)" if is_named else None


def check_symbols(node: Node) -> str | None:
    """Any of sizes: tract returns a symbol for one that has no number."""
    known = node.outputs[0].shape_data
    if known is None and node.op in ARITHMETIC and node.outputs[0].dtype is DType.INT64:
        operands = [shape_data_of(v) for v in node.inputs]
        known = tuple(d for sizes in operands for d in sizes or ()) if None not in operands else ()
    if node.op != "Shape" and all(isinstance(d, int) for d in known or ()):
        return None
    return "tract returns symbols for sizes by name: give numbers (--static, --input)"


SHARED_SIZES = require_shared_sizes("tract")
FORMS: dict[str, list[IllegalForm]] = {
    "BatchNormalization": [check_training],
    "Cast": [require_measured_types("tract")],
    "Concat": [SHARED_SIZES],
    "ConvTranspose": [check_transposed_pads, check_filters],
    "CumSum": [require_constants("tract", 1)],
    "DFT": [require_constants("tract", 1, 2)],
    "DepthToSpace": [check_channels],
    "Div": [check_quotient],
    "Dropout": [check_training],
    "Einsum": [SHARED_SIZES],
    "Expand": [check_sizes, check_expanded],
    "Gemm": [SHARED_SIZES],
    "GroupNormalization": [check_scale, check_channels],
    "Hardmax": [check_axis],
    "LayerNormalization": [check_broadcast],
    "MatMul": [SHARED_SIZES],
    "Mul": [check_square, check_mixed_sizes],
    "NonMaxSuppression": [check_suppressed("tract")],
    "Pad": [require_constants("tract", 1, 2, 3)],
    "Range": [check_count],
    "Reshape": [check_shape],
    "Resize": [check_resized],
    "Split": [require_constants("tract", 1)],
    "STFT": [require_constants("tract", 1, 2, 3)],
    "Slice": [check_sizes, check_steps],
    "SpaceToDepth": [check_image],
    "Squeeze": [require_known_axes("tract"), require_constants("tract", 1)],
    "Tile": [check_sizes],
    "TopK": [check_ranks],
    "Unsqueeze": [require_constants("tract", 1)],
    **{op: [require_constants("tract", 1)] for op in REDUCES},
}
WIDE_CONSTANTS = require_int32("tract")
TRACT = Target(
    name="tract",
    opset=OPSET,
    opsets=range(13, 23),
    supports=SUPPORTS,
    illegal={
        **FORMS,
        **{op: [*FORMS.get(op, ()), WIDE_CONSTANTS, check_broadcast] for op in ARITHMETIC},
    },
    illegal_results={op: [check_symbols, check_mixed_sizes] for op in SUPPORTS},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED,
    sequences=False,
)
