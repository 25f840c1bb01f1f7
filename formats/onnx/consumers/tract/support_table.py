"""Operators tract gets right, and with which element types.

Made by `python -m conformance.consumer_operators tract`, with tract 0.23.9, at opset 21.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast
B=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Where
T1=b1,f2,f4,f8 T2=f2,f4,f8: GridSample
T1=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: EyeLike
T1=f2,f4: IsInf IsNaN
T1=f2,f4,f8 T2=f2,f4,f8 T=f2,f4,f8: BatchNormalization
T1=f2,f4,f8 T2=i8: STFT
T1=f2,f4,f8 T=f2,f4,f8: Dropout
T1=f2,f4,f8 tensor(float)=f4 tensor(int64)=i8: Resize
T1=f2,f4,f8 tensor(int64)=i8: DFT
T1=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T2=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
  T3=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: OneHot
T1=f2,f4,f8,i4,i8 T=f2,f4,f8,i4,i8: Pow
T1=f4: DynamicQuantizeLinear
T1=f4 T2=i1,u1: QuantizeLinear
T1=i1,i4,u1 T2=f4: DequantizeLinear
T1=i1,u1 T2=i1,u1: ConvInteger MatMulInteger
T1=i1,u1 T2=i1,u1 T3=i1,u1 TS=f4: QLinearMatMul
T1=i1,u1 T2=i1,u1 T3=i1,u1 tensor(float)=f4: QLinearConv
T1=i4 T=f4: LSTM
T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Tile
T2=i4,i8 T=f4,f8,i4,i8,u4,u8: CumSum
T=b1: And Not Or Xor
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Concat DepthToSpace Flatten NonZero SpaceToDepth Split
  Transpose
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Gather GatherElements ScatterElements Slice
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Expand GatherND Reshape ScatterND Squeeze
  Trilu Unsqueeze
T=f2,f4: Erf Gelu HardSwish LeakyRelu MeanVarianceNormalization Round Sigmoid
T=f2,f4,f8: Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Exp Floor GlobalMaxPool
  GroupNormalization HardSigmoid Hardmax LRN Log LpNormalization Mean Reciprocal Selu Shrink Sin
  Sinh Softplus Softsign Sqrt Sum Tan Tanh ThresholdedRelu
T=f2,f4,f8,i1,i2,i4,i8: Neg Relu
T=f2,f4,f8,i1,i2,i4,i8,u1,u2: ArgMax ArgMin
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Abs Add Clip Div Equal Greater GreaterOrEqual Less LessOrEqual
  Max Min Mod Mul Sign Sub
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8 tensor(int64)=i8: Pad
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: TopK
T=f2,f4,f8,i1,i4,i8,u1 tensor(int64)=i8: ReduceMax ReduceMin
T=f2,f4,f8,i1,u1: MaxPool
T=f2,f4,f8,i4,i8,u4,u8: PRelu
T=f4: Celu GRU RNN
T=f4,f8: AveragePool Conv ConvTranspose Gemm GlobalAveragePool InstanceNormalization
  LayerNormalization LogSoftmax Mish Softmax
T=f4,f8 tensor(int64)=i8: ReduceLogSumExp
T=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Einsum
T=f4,f8,i2,i4,i8: Range
T=f4,f8,i4: MatMul
T=f4,f8,i4 tensor(int64)=i8: ReduceL2 ReduceLogSum ReduceSumSquare
T=f4,f8,i4,i8 tensor(int64)=i8: ReduceL1 ReduceMean ReduceProd ReduceSum
T=i1,i2,i4,i8,u1,u2,u4,u8: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
T=u1,u2,u4,u8: BitShift
V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Identity
tensor(float)=f4 tensor(int64)=i8: NonMaxSuppression
"""

SUPPORTED = parse_table(MEASURED)
