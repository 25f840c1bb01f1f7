"""What operators do to the size and the resolution of numbers.

An operator that is in no table here makes numbers of ordinary size, and large ones of large ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from .traits import COMPARISONS, MOVES

SUMS = frozenset({"Add", "Sub", "Sum"})
# Elementwise operators that keep the size of numbers, or lessen it.
KEEPS = frozenset(
    "Abs BitShift Ceil Celu Clip Elu Floor Gelu HardSwish LeakyRelu Mish Neg PRelu Relu Round Selu "
    "Shrink Softplus Swish ThresholdedRelu".split()
)
# Sums of products with weights, by the axes that an operand's channels lie along as first or
# second operand; the others are summed.
PRODUCTS = frozenset({"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"})
MATRIX_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
# Weighted means of one operand.
MEANS = frozenset(
    "AveragePool GlobalAveragePool GridSample Mean ReduceMean Resize RoiAlign Upsample".split()
)
ADDING_UP = frozenset({"CumSum", "ReduceL1", "ReduceL2", "ReduceSum"})
# Whose results may be large of ordinary numbers, or very small.
GROWING = frozenset("Exp ReduceL1 ReduceLogSumExp ReduceProd ReduceSum ReduceSumSquare".split())
# Whose sums or squares leave the range of float16, that take the logarithm of what is near 0, that
# count or place by floats, or that read bits.
LEAVING_FLOAT16 = frozenset(
    "AffineGrid BitCast CumSum DeformConv DequantizeLinear DynamicQuantizeLinear GridSample "
    "GroupNormalization InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization "
    "LpPool MeanVarianceNormalization NonMaxSuppression QuantizeLinear RMSNormalization Range "
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSum ReduceSumSquare "
    "RoiAlign Softplus".split()
)
# The largest magnitude of results, whatever the operands.
BOUNDED: Mapping[str, float] = {
    **dict.fromkeys(
        "BlackmanWindow Bernoulli Cos Erf GRU HannWindow HammingWindow HardSigmoid Hardmax LSTM "
        "LpNormalization RNN RandomUniform RandomUniformLike Sigmoid Sign Sin Softmax Softsign "
        "Tanh".split(),
        1.0,
    ),
    **dict.fromkeys(("Acos", "Asin", "Atan"), 3.2),
    **dict.fromkeys(("IsInf", "IsNaN"), 1.0),
}
# Operators that bring numbers of any size back to an ordinary one.
NORMALIZING = frozenset(
    "Acosh Asinh Attention GroupNormalization InstanceNormalization LayerNormalization Log "
    "LogSoftmax MeanVarianceNormalization RMSNormalization ReduceLogSum ReduceLogSumExp".split()
)
# Operators of which numbers near 0 that differ little make results that differ much.
ROOTS = frozenset({"Log", "Pow", "Reciprocal", "Sqrt"})
# Operators that make NaN of some numbers, as of half of the ordinary ones.
OF_A_DOMAIN = frozenset({"Acos", "Acosh", "Asin", "Atanh", "Log", "Pow", "Sqrt"})
PERIODIC = frozenset({"Cos", "Sin", "Tan"})
SCALING = frozenset({"Div", "Mod", "Mul"})
# Operators that take one number of many, whatever the size of the others.
SELECTING = frozenset({"Clip", "Max", "Min", "Pad", "Where"})
# Operators to which a number beyond 65504, beside ordinary ones, is as 65504.
SATURATING = frozenset(
    "ArgMax ArgMin Exp HardSigmoid Hardmax LogSoftmax ReduceLogSumExp ReduceMax ReduceMin Sigmoid "
    "Softmax Softsign Tanh TopK".split()
) | (COMPARISONS - {"Equal"})
COUNTING = frozenset({"CumSum", "Range"})  # whose results are places
# The operand that places are read from.
PLACES: Mapping[str, int] = {
    "DeformConv": 2, "GridSample": 1, "NonMaxSuppression": 0, "OneHot": 0, "RoiAlign": 1,
}  # fmt: skip


def is_elementwise(op: str) -> bool:
    """Whether an operator moves numbers, or computes with them one by one."""
    return op in MOVES or op in SUMS or op in KEEPS or op in SCALING or op == "Mean"
