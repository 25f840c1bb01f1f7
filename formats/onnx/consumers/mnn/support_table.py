"""Operators MNN gets right, and with which element types.

Made by `python -m conformance.consumer_operators mnn`, with mnn 3.6.1, at opset 17.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast
B=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Where
T1=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Compress
T1=f2,f4 T2=i8: MaxUnpool
T1=f2,f4 tensor(float)=f4: Resize
T1=f2,f4,f8 T2=f2,f4,f8: GridSample
T1=f2,f4,f8 T2=f2,f4,f8 T=f2,f4,f8: BatchNormalization
T1=f2,f4,f8 T2=i4,i8: STFT
T1=f2,f4,f8 T2=i8: RoiAlign
T1=f2,f4,f8,i4 T=f2,f4,f8,i4: Pow
T1=f4 T2=u1 tensor(float)=f4: QuantizeLinear
T1=i4: EyeLike
T1=i8: ConstantOfShape
T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Tile
T2=i4,i8 T=f4,f8,i4,i8,u4,u8: CumSum
T=b1: And Not Or Xor
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: DepthToSpace Flatten SpaceToDepth Split Transpose
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Gather GatherElements ScatterElements Slice
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Expand GatherND Pad Reshape ScatterND
  Squeeze Trilu Unsqueeze
T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8: Equal NonZero Unique
T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8 tensor(int64)=i8: ReverseSequence
T=b1,f2,f4,f8,i2,i4,i8,u1,u2,u4,u8: Concat
T=f2,f4: GlobalLpPool MaxRoiPool MeanVarianceNormalization
T=f2,f4,f8: Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Det Elu Erf Exp Floor GRU GlobalMaxPool
  HardSigmoid HardSwish LRN LSTM LeakyRelu Log LpNormalization Mean PRelu RNN Reciprocal Selu
  Sigmoid Sin Sinh Softplus Softsign Sqrt Sum Tan Tanh ThresholdedRelu
T=f2,f4,f8 Tind=i4,i8: NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
T=f2,f4,f8,i1,i2,i4,i8: Neg Relu
T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8: Abs Add ArgMax ArgMin Greater GreaterOrEqual LessOrEqual Sign Sub
T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8 tensor(int64)=i8: TopK
T=f2,f4,f8,i1,i4,i8,u4,u8: ReduceMax ReduceMin
T=f2,f4,f8,i2,i4,i8,u2,u4,u8: Div Max Min Mul
T=f2,f4,f8,u1: MaxPool
T=f2,f4,f8,u1,u2,u4,u8: Clip
T=f4: Celu
T=f4,f8: AveragePool Conv ConvTranspose Gemm GlobalAveragePool InstanceNormalization
  LayerNormalization LogSoftmax LpPool MatMul ReduceL2 ReduceLogSum ReduceLogSumExp Softmax
T=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Einsum
T=f4,f8,i2,i4,i8: Range
T=f4,f8,i4,i8,u4,u8: ReduceL1 ReduceMean
T=f4,f8,i4,i8,u4,u8 tensor(int64)=i8: ReduceSum
T=f4,f8,i4,i8,u8: ReduceSumSquare
T=f4,f8,i4,u4: ReduceProd
T=i1,i2,i4,i8,u2,u4,u8: Less
T=i2,i4,i8,u2,u4,u8: Mod
T=u1 tensor(float)=f4: DequantizeLinear
T=u2,u4,u8: BitShift
V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Identity
tensor(float)=f4 tensor(int64)=i8: NonMaxSuppression
"""

SUPPORTED = parse_table(MEASURED)
