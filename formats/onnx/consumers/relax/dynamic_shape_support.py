"""Operators TVM's importer into Relax gets right with symbolic sizes.

Made by `python -m conformance.relax_operators --symbolic`, with apache-tvm 0.27.0.post1,
at opset 17.
"""

from __future__ import annotations

SYMBOLIC = frozenset(
    """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization
    BitShift Cast Ceil Clip Compress Concat Conv ConvTranspose Cos Cosh CumSum DepthToSpace
    DequantizeLinear Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp EyeLike Flatten
    Floor Gather GatherElements Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual
    GridSample HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpPool MatMul MatMulInteger Max
    MaxPool Mean MeanVarianceNormalization Min Mod Mul Neg NonZero Not OptionalGetElement
    OptionalHasElement Or PRelu Pad Pow QuantizeLinear Range Reciprocal ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare Relu Reshape Resize Round ScatterElements ScatterND Selu Shrink Sigmoid Sign
    Sin Sinh Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh
    ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Where Xor
    """.split()
)
