"""What tract accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from math import prod

from serde.decompositions.table import add_decompositions
from serde.ir.dim_expr import Elements, product, shape_data_of, split_coefficient
from serde.ir.graph import BYTES, DType, Shape
from serde.legalize.forms.form import (
    STATIC,
    Call,
    Form,
    Lacks,
    join_forms,
    require_constants,
    require_sizes,
)
from serde.legalize.target import Target, TypeConstraints
from serde.spec.traits import ARITHMETIC, REDUCES

from ..illegal_forms import BEYOND_INT32, OPEN_AXES, OPEN_PADS, SUPPRESSED
from ..shared_sizes import DIFFERENT_SIZES
from ..support_table import EMULATED, UNMEASURED, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset it was measured at
# What the node tests of one operator leave out.
UNTESTED: dict[str, TypeConstraints] = {"Shape": {}}
FLOATS = frozenset(d for d in DType if d.kind == "f")
OF_FLOATS: dict[str, TypeConstraints] = {
    op: {tie: types & FLOATS for tie, types in SUPPORTED[op].items()} for op in ("Einsum", "PRelu")
}
# tract cuts off bytes that overflow.
SUPPORTS = without_types(SUPPORTED, ["Mul"], BYTES) | UNTESTED | OF_FLOATS
OF_SIZES = ARITHMETIC | {"Max", "Min", "Mod", "Where"}  # which tract computes sizes with


def trains(call: Call) -> bool:
    """Whether it is a layer in training."""
    return bool(call.attrs.get("training_mode")) or (
        call.op == "Dropout" and call.operand(2) is not None
    )


def is_square(call: Call) -> bool:
    """Whether integers are multiplied by themselves: tract has squares of floats only."""
    a, b = call.inputs
    return a is not None and a is b and a.dtype is not None and a.dtype.kind != "f"


def has_open_result(call: Call) -> bool:
    """Whether the shape of the result follows neither from sizes of tensors nor from constants."""
    is_open = any(v.shape is None or None in v.shape for v in call.results)
    return is_open and any(v is not None and v.tensor is None for v in call.inputs[1:])


def steps_along_name(call: Call) -> bool:
    """Whether a Slice has steps along an axis whose size has a name."""
    x, steps, axes = call.x, call.operand(4), call.operand(3)
    if x.shape is None or steps is None or steps.tensor is None:
        return False
    by = steps.ints()
    over = axes.ints() if axes is not None and axes.tensor is not None else range(len(by))
    pairs = zip(over, by, strict=False)
    return any(step != 1 and not isinstance(x.shape[axis], int) for axis, step in pairs)


def expands_name(call: Call) -> bool:
    """Whether a size by name is broadcast to a number."""
    expanded_shape = shape_data_of(call.inputs[1]) or next(
        (v.shape or () for v in call.results), ()
    )
    pairs = zip((call.x.shape or ())[::-1], expanded_shape[::-1], strict=False)
    return any(not isinstance(a, int) and isinstance(b, int) and b != 1 for a, b in pairs)


def scales_named_channels(call: Call) -> bool:
    """Whether scales of a size by name are for a number of channels."""
    is_open = any(v is not None and not v.is_static for v in call.inputs[1:])
    return is_open and call.x.shape is not None and isinstance(call.x.shape[1], int)


def has_open_shape(call: Call) -> bool:
    """Whether the shape of a Reshape does not follow from the sizes of tensors."""
    shape, sizes = call.inputs[1], call.x.shape
    if shape is None:
        return False
    known = shape.ints() if shape.tensor is not None else shape.shape_data or (None,)
    return None in known or (None in (sizes or ()) and -1 not in known)


def parts_name(call: Call) -> bool:
    """Whether a size by name is to be parts or a number."""
    shape, sizes = call.inputs[1], call.x.shape
    if shape is None or sizes is None or has_open_shape(call):
        return False
    known = shape.ints() if shape.tensor is not None else shape.shape_data or ()
    return not is_whole(sizes, known)


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


def resizes_name(call: Call) -> bool:
    """Whether sizes by name change, or may."""
    scales = call.operand(2)
    is_known = scales is not None and scales.tensor is not None and not call.attrs.get("axes")
    factors = scales.array().tolist() if scales is not None and is_known else []
    named = [at for at, d in enumerate(call.x.shape or ()) if not isinstance(d, int)]
    return call.x.shape is None or any(factors[at : at + 1] != [1] for at in named)


def broadcasts_count(call: Call) -> bool:
    """Whether what a count in the run makes the size of is broadcast to a number."""
    shapes = [v.shape[::-1] for v in call.inputs if v is not None and v.shape is not None]
    sizes = (dims for dims in zip_longest(*shapes, fillvalue=1) if None in dims)
    return any(isinstance(d, int) and d != 1 for dims in sizes for d in dims)


def mixes_sizes(call: Call) -> bool:
    """Whether int64 that is data and a size by name make one: tract makes symbols of these."""
    operands = [v for v in call.inputs if v is not None and v.dtype is DType.INT64]
    has_symbols = any(isinstance(d, str) for v in operands for d in v.shape_data or ())
    has_data = any(v.tensor is None and v.shape_data is None for v in operands)
    return has_symbols and has_data and any(v.dtype is DType.INT64 for v in call.results[:1])


def divides_data(call: Call) -> bool:
    """The same of a quotient, whose dividend is no size."""
    dividend = call.inputs[0]
    return (dividend is None or dividend.shape_data is None) and mixes_sizes(call)


def counts_by_name(index: int) -> Callable[[Call], bool]:
    """A test whether an operand is a size by name."""
    return lambda call: any(isinstance(d, str) for d in shape_data_of(call.operand(index)) or ())


def returns_symbols(call: Call) -> bool:
    """Whether the result is a size that has no number, for which tract returns a symbol."""
    (result, *_) = call.results
    known = result.shape_data
    if known is None and call.op in OF_SIZES and result.dtype is DType.INT64:
        operands = [shape_data_of(v) for v in call.inputs]
        known = tuple(d for sizes in operands for d in sizes or ()) if None not in operands else ()
    return call.op == "Shape" or any(not isinstance(d, int) for d in known or ())


TRAINING = Form("training_mode", trains, advice="Export the model for inference")
OPEN_RESULT = Form("a size that depends on data", has_open_result, advice=STATIC)
MIXED = Form("int64 and a size by name", mixes_sizes, advice=f"Use int32. {STATIC}")
BROADCAST_COUNT = Form("a dynamic size and a number", broadcasts_count, advice=STATIC)
SYMBOLS = Form("a size by name for a result, of which tract returns a symbol", returns_symbols,
               advice=STATIC)  # fmt: skip
REFUSED: Lacks = {
    "BatchNormalization": [TRAINING],
    "Cast": [UNMEASURED],
    "Concat": [DIFFERENT_SIZES],
    "ConvTranspose": [OPEN_PADS, *require_sizes("W")],
    "CumSum": require_constants("axis"),
    "DFT": require_constants("dft_length", "axis"),
    "DepthToSpace": require_sizes("input", [1]),
    "Div": [MIXED._replace(has=divides_data)],
    "Dropout": [TRAINING],
    "Einsum": [DIFFERENT_SIZES],
    "Expand": [OPEN_RESULT, Form("a size by name expanded to a number", expands_name,
                                 advice=STATIC)],
    "Gemm": [DIFFERENT_SIZES],
    "GroupNormalization": [
        Form("scales of a size by name for a number of channels", scales_named_channels,
             advice=STATIC),
        *require_sizes("X", [1]),
    ],
    "Hardmax": require_sizes("input", lambda call: [int(call.attrs.get("axis", -1))]),
    "LayerNormalization": [BROADCAST_COUNT],
    "MatMul": [DIFFERENT_SIZES],
    "Mul": [Form("squares of integers", is_square, advice="Cast them to floats before"), MIXED],
    "NonMaxSuppression": [SUPPRESSED],
    "Pad": require_constants("pads", "constant_value", "axes"),
    "Range": [Form("steps of a size by name", counts_by_name(2), advice=STATIC)],
    "Reshape": [
        Form("a size that depends on data", has_open_shape, advice=STATIC),
        Form("a size by name to parts or a number", parts_name, advice=STATIC),
    ],
    "Resize": [
        Form("sizes by name that change", resizes_name, advice=STATIC),
        *require_constants("roi", "scales", "sizes"),
    ],
    "Split": require_constants("split"),
    "STFT": require_constants("frame_step", "window", "frame_length"),
    "Slice": [OPEN_RESULT, Form("steps along a size by name", steps_along_name, advice=STATIC)],
    "SpaceToDepth": require_sizes("input", slice(2, None)),
    "Squeeze": [OPEN_AXES, *require_constants("axes")],
    "Tile": [OPEN_RESULT],
    "TopK": [Form("as many elements as a size by name", counts_by_name(1), advice=STATIC)],
    "Unsqueeze": require_constants("axes"),
    **{op: require_constants("axes") for op in REDUCES},
}  # fmt: skip
OF_ARITHMETIC = dict.fromkeys(OF_SIZES, (BEYOND_INT32, BROADCAST_COUNT))
TRACT = Target(
    name="tract",
    source="measured",
    opset=OPSET,
    opsets=range(13, 23),
    supports=SUPPORTS,
    lacks=join_forms(legalizations.LACKS, REFUSED, OF_ARITHMETIC),
    lacks_results=dict.fromkeys(SUPPORTS, (SYMBOLS, MIXED)),
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED,
    sequences=False,
)
