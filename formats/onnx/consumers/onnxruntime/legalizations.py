"""Legalizations for ONNX Runtime's CPU provider: what its kernels lack."""

from __future__ import annotations

from serde.decompositions import elementwise, indexing, recurrent
from serde.decompositions.table import decompositions
from serde.decompositions.transposed_convolution import convolve_phases, find_phases
from serde.ir.graph import DType, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms.form import Lacks
from serde.legalize.routes import with_outputs
from serde.legalize.target import legalization_table
from serde.spec import schema
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES
from serde.version_converter.adapters.recurrent import KINDS, time_first

from .support_table import SUPPORTED

legalize = legalization_table("ir → onnxruntime")
legalize("Where")(elementwise.choose_booleans)

ONE_HOT = """int64,int64,int64 float32,int64,int64 int64,int64,object float32,int64,object
    float32,float32,float32 int64,float32,int32 int64,int64,float32 int32,int32,float32
    int32,float32,float32 int64,float32,float32 int64,int32,float32"""  # indices, depth, values
BYTE_PRODUCTS = "uint8,uint8,uint8 uint8,int8,uint8 int8,int8,int8"  # data, weights, result
DECOMPOSED = frozenset(  # where the kernel is not of the element type
    """DepthToSpace Elu Gemm GlobalLpPool HardSigmoid Hardmax LRN LpNormalization Mean PRelu
    ReduceL1 ReduceL2 ReduceSumSquare Selu Softplus Softsign SpaceToDepth""".split()
)
MANY_CHANNELS = 128  # of which convolutions are faster than transposed ones (see the how-to)
BLOCK = 16  # channels that kernels of convolutions compute at a time
YOUNGER = {"Acosh": 9, "Asinh": 9, "Atanh": 9, "Col2Im": 18, "Cosh": 9, "Sinh": 9}


def is_listed(types: str, *operands: Value) -> bool:
    """Whether a kernel has the element types of operands."""
    return ",".join(v.type.value for v in operands) in types.split()


def has_kernel(op: str, x: Value) -> bool:
    """Whether a kernel has the element type of the first operand."""
    return x.dtype in SUPPORTED[op].get(schema.operator(op).inputs[0].tie, (x.dtype,))


@legalize.for_each(DECOMPOSED)
def decompose_other_types(op, g, *operands, outputs: int = 1, **form):
    """Kernels are of some element types."""
    if has_kernel(op, operands[0]):
        return None
    rule = decompositions.rules[op]
    return rule.function(g, *operands, **with_outputs(rule, form, outputs))


@legalize.for_each({op: (op, version) for op, version in YOUNGER.items()})
def express_other_types(op_and_version, g, x, *operands, **form):
    """Kernels are of some element types; older opsets have the operator in terms of others."""
    op, version = op_and_version
    return None if has_kernel(op, x) else g.decompose(op, version, x, *operands, **form)


@legalize("Relu")
def legalize_relu(g, x):
    """Kernels are of some element types."""
    return None if has_kernel("Relu", x) else g.Max(x, g.const(0, x.type))


@legalize("NonZero")
def legalize_nonzero(g, x):
    """Kernels are of some element types."""
    return None if has_kernel("NonZero", x) else g.NonZero(g.cast(x, DType.BOOL))


@legalize("EyeLike")
def legalize_identity_matrix(g, x, *, k: int, dtype: int | None = None):
    """Kernels are of some element types, and of operands of them only."""
    result = x.type if dtype is None else ELEMENT_TYPES[dtype]
    if {x.type, result} <= SUPPORTED["EyeLike"]["T2"]:
        return None
    if x.type not in SUPPORTED["EyeLike"]["T1"]:
        x = g.cast(x, DType.FLOAT32)
    return g.cast(g.EyeLike(x, k=k, dtype=ELEMENT_CODES[DType.FLOAT32]), result)


# What the activations and pools of float64 are, whose kernels are of float32.
OF_FLOAT64 = {
    "GlobalAveragePool": lambda g, x: g.ReduceMean(x, list(range(2, x.rank))),
    "GlobalMaxPool": lambda g, x: g.ReduceMax(x, list(range(2, x.rank))),
    "LeakyRelu": lambda g, x, alpha: g.Where(g.Less(x, 0.0), g.Mul(x, alpha), x),
    "Tan": elementwise.tangent,
    "ThresholdedRelu": lambda g, x, alpha: g.Where(g.Greater(x, alpha), x, 0.0),
}


@legalize.for_each(OF_FLOAT64.keys())
def legalize_float64(op, g, x, **form):
    """Kernels are of some element types."""
    return None if has_kernel(op, x) else OF_FLOAT64[op](g, x, **form)


@legalize.for_each(KINDS)
def legalize_layout(op, g, *operands, layout: int, outputs: int = 1, **form):
    """Kernels have time before batch; those of float64 for LSTM and GRU fail in the run."""
    if op != "RNN" and operands[0].dtype is DType.FLOAT64:
        return recurrent.unroll_recurrent(op, g, *operands, layout=layout, outputs=outputs, **form)
    if not layout:
        return None
    return time_first(op, g, *operands, layout=layout, outputs=outputs, **form)


@legalize("ConvInteger")
def legalize_integer_convolution(g, x, w, x_zero=None, w_zero=None, **frame):
    """The kernel has one zero point for all filters."""
    if w_zero is None or w_zero.rank == 0 or w_zero.shape == (1,):
        return None
    return g.decompose("ConvInteger", 10, x, w, x_zero, w_zero, **frame)


@legalize("ConvTranspose")
def legalize_transposed_convolution(
    g, x, w, b=None, *, strides=(), pads=(), output_padding=(), dilations=(), group: int,
    kernel_shape=(), output_shape=None, **form,
):  # fmt: skip
    """Convolutions are faster where kernels overlap and channels are many."""
    if x.rank != 4 or x.dtype is not DType.FLOAT32 or w.tensor is None or group != 1:
        return None
    channels, kernel, stride = w.static_shape[:2], w.static_shape[2:], strides[0]
    if min(channels) < MANY_CHANNELS or any(n % BLOCK for n in channels):
        return None
    if len({*strides}) > 1 or min(kernel) < 2 * stride or {*dilations} != {1}:
        return None
    if output_shape is not None or not pads:
        return None
    ends = zip(kernel, zip(pads[:2], pads[2:], strict=True), output_padding, strict=True)
    by_axis = [find_phases(size, both, more, stride) for size, both, more in ends]
    return convolve_phases(g, x, w, b, *by_axis) if all(by_axis) else None


@legalize.for_each(("ReduceMax", "ReduceMin"))
def legalize_boolean_reduction(op, g, x, axes=None, **form):
    """Kernels fail on booleans where there are none."""
    return g.decompose(op, 20, x, axes, **form) if x.dtype is DType.BOOL else None


@legalize("GridSample")
def legalize_grid_sample(g, x, grid, **form):
    """Kernels have one element type for images and grid."""
    return None if x.dtype is grid.dtype else g.GridSample(x, g.cast_like(grid, x), **form)


@legalize("OneHot")
def legalize_one_hot(g, index, depth, values, *, axis: int):
    """Kernels are of some combinations of element types."""
    if is_listed(ONE_HOT, index, depth, values):
        return None
    return indexing.one_hot(g, index, depth, values, axis=axis)


@legalize.for_each(("QLinearConv", "QLinearMatMul"))
def legalize_integer_product(op, g, *operands: Value, **form):
    """Kernels are of some combinations of element types."""
    x, w, y_zero = (operands[i] for i in (0, 3, 7))
    is_kernel = is_listed(BYTE_PRODUCTS, x, w, y_zero)
    return None if is_kernel else g.decompose(op, 10, *operands, **form)


# Kernels have one element type for all operands, and overwrite statistics in training.
LACKS: Lacks = {"BatchNormalization": [shared.TRAINING, shared.MIXED_TYPES]}
