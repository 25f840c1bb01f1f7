"""Traits of operators: properties that hold of every node of an operator, whatever its attributes.

Tests compare each of them with onnx's schema, or with what onnx computes. Rules, passes and targets
name operators by their traits, and list only what is special to themselves. What an operator does
to the size of numbers is in ``number_traits.py``; the axes that it computes along are in
``sample_axes``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serde.ir.graph import Node, Value

# Each element of the result is computed of the one in its place of the first operand; the other
# operands, if any, are single numbers.
ELEMENTWISE = frozenset(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Clip Cos Cosh Elu Erf Exp "
    "Floor Gelu HardSigmoid HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round "
    "Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu".split()
)
COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
# The same of all operands, each of which is repeated to the shape of the result.
BROADCASTS = COMPARISONS | frozenset(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Max Mean Min Mod Mul Or Pow Sub Sum "
    "Where Xor".split()
)
# Whose results are booleans, element by element.
PREDICATES = COMPARISONS | frozenset({"And", "IsInf", "IsNaN", "Not", "Or", "Xor"})
ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})
# Each element of the result is one of the first operand's, its negative, 0 or a bound.
KEEPS_DIGITS = frozenset({"Abs", "Clip", "Neg", "Relu"})
ROUNDS = frozenset({"Ceil", "Floor", "Round"})
# Whose integers wrap around where they exceed their type: results are those of wider ones, cut off.
WRAPS = frozenset(
    "Add BitwiseNot Conv ConvTranspose CumProd CumSum Einsum Gemm MatMul Mul Neg Pow ReduceProd "
    "ReduceSum ReduceSumSquare Sub Sum".split()
)
# Whose results are 0 or more, or NaN.
NON_NEGATIVE = frozenset(
    "Abs Exp HardSigmoid ReduceL1 ReduceL2 ReduceSumSquare Relu Sigmoid Softmax Softplus "
    "Sqrt".split()
)

# The elements of the first operand in their order, in another shape.
RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
# Elements of the first operand, chosen by their places: the first result has no others.
ARRANGES = RESHAPES | frozenset(
    "Compress DepthToSpace Dropout Expand Gather GatherElements GatherND Identity ReverseSequence "
    "Slice SpaceToDepth Split Tile Transpose".split()
)
# Elements of operands, chosen by their size.
CHOOSES = frozenset("GlobalMaxPool Max MaxPool MaxRoiPool Min ReduceMax ReduceMin TopK".split())
ZERO_FILLS = frozenset({"CenterCropPad", "Trilu"})  # elements of the first operand, and zeros
# Operators whose results are elements of operands, and the places of these; none is all.
MOVES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(ARRANGES | ZERO_FILLS | CHOOSES | {"Unique"}, (0,)),
    **dict.fromkeys(("Concat", "Max", "Min"), ()),
    **dict.fromkeys(("Pad", "ScatterElements", "ScatterND"), (0, 2)),
    "OneHot": (2,),
    "TensorScatter": (0, 1),
    "Where": (1, 2),
}
# Which take listed axes of the first operand together.
REDUCES = frozenset(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare".split()
)
EXTREMES = REDUCES & CHOOSES

# Whose windows go over the axes behind samples and channels, with ``auto_pad``.
WINDOWS = frozenset("AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv".split())
CONVOLVES = frozenset({"Conv", "ConvTranspose"})
LAYERS = CONVOLVES | {"Gemm", "MatMul"}  # products with weights, which are the second operand
INTEGER_PRODUCTS = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
QUANTIZES = frozenset({"DequantizeLinear", "QuantizeLinear"})
BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})  # of two operands
# Which take or make lists of tensors, and no tensors in their place.
SEQUENCES = frozenset(
    "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
    "SequenceLength SequenceMap SplitToSequence".split()
)
# Of whose results one is int64 whatever they read: places, sizes or numbers of elements.
COUNTS = frozenset(
    "ArgMax ArgMin MaxPool NonMaxSuppression NonZero SequenceLength Shape Size StringSplit TopK "
    "Unique".split()
)
# Whose results are as long as elements of operands tell, beside operands that list sizes.
DATA_DEPENDENT = frozenset("Compress NonMaxSuppression NonZero Range Unique".split())
# Whose second operand are places in the first.
INDEXES = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})
SORTS = frozenset({"ArgMax", "ArgMin", "NonMaxSuppression", "TopK", "Unique"})

# Where axes of the first operand are named: in the attribute ``axis`` or ``axes``, or an operand.
AXIS = frozenset(
    "ArgMax ArgMin Compress Concat DequantizeLinear Flatten Gather GatherElements Hardmax "
    "LayerNormalization LogSoftmax LpNormalization QuantizeLinear RMSNormalization Scatter "
    "ScatterElements Softmax Split SplitToSequence TensorScatter TopK Unique".split()
)
# The first of several axes, to the last of all.
NAMES_FIRST_AXIS = frozenset({"Flatten", "LayerNormalization", "RMSNormalization"})
AXES = frozenset({"CenterCropPad", "MeanVarianceNormalization", "Resize"})
AXES_OPERANDS: Mapping[str, int] = {
    **dict.fromkeys(REDUCES, 1), "Pad": 3, "Slice": 3, "Squeeze": 1, "Unsqueeze": 1,
}  # fmt: skip


def list_moved(node: Node) -> Iterator[Value]:
    """The operands whose elements are the results of a node in ``MOVES``."""
    places = MOVES[node.op]
    for at, value in enumerate(node.inputs):
        if value is not None and (not places or at in places):
            yield value
