"""Operators OpenVINO gets right, and with which element types.

Made by `python -m conformance.consumer_operators openvino`, with openvino 2026.4.1, at opset 21.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast
B=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Where
T1=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Compress
T1=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: EyeLike
T1=f2,f4: IsInf
T1=f2,f4 T2=i4,i8: STFT
T1=f2,f4 tensor(int64)=i8: DFT
T1=f2,f4,f8: IsNaN
T1=f2,f4,f8 T2=f2,f4,f8: GridSample
T1=f2,f4,f8 T2=f2,f4,f8 T=f2,f4,f8: BatchNormalization
T1=f2,f4,f8 T2=i8: RoiAlign
T1=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T2=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
  T3=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: OneHot
T1=f2,f4,f8,i1,i4,i8,u1 tensor(float)=f4 tensor(int64)=i8: Resize
T1=f2,f4,f8,i4 T=f2,f4,f8,i4: Pow
T1=f2,f4,i4 T2=i1,i2,u1,u2: QuantizeLinear
T1=f4: DynamicQuantizeLinear
T1=f4 T2=i8: AffineGrid
T1=i1,i2,i4,u1,u2 T2=f4: DequantizeLinear
T1=i1,u1 T2=i1,u1: ConvInteger MatMulInteger
T1=i1,u1 T2=i1,u1 T3=i1,u1 TS=f2,f4: QLinearMatMul
T1=i1,u1 T2=i1,u1 T3=i1,u1 tensor(float)=f4: QLinearConv
T1=i4,i8: BlackmanWindow HammingWindow HannWindow
T1=i8: ConstantOfShape
T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Tile
T2=i4,i8 T=f4,f8,i4,i8,u4,u8: CumSum
T=b1: And Not Or Xor
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Concat DepthToSpace Equal Flatten NonZero SpaceToDepth Split
  Transpose Unique
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: CenterCropPad Gather GatherElements
  ScatterElements Slice
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8 tensor(int64)=i8: Pad
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Col2Im Expand GatherND Reshape
  ReverseSequence ScatterND Squeeze Trilu Unsqueeze
T=b1,f2,f4,f8,i1,i4,i8,u1,u4,u8 tensor(int64)=i8: ReduceMax ReduceMin
T=f2,f4: GlobalLpPool MaxRoiPool MeanVarianceNormalization
T=f2,f4,f8: Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Floor GRU Gelu GlobalMaxPool
  GroupNormalization HardSigmoid HardSwish Hardmax LRN LSTM LeakyRelu Log LpNormalization Mean Mish
  RNN Reciprocal Round Selu Shrink Sigmoid Sin Sinh Softplus Softsign Sqrt Sum Tan Tanh
  ThresholdedRelu
T=f2,f4,f8 Tind=i4,i8: NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
T=f2,f4,f8,i1,i2,i4,i8: Neg Relu
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Abs Add ArgMax ArgMin Clip Div Greater GreaterOrEqual Less
  LessOrEqual Max Min Mod Sign
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: TopK
T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8: Sub
T=f2,f4,f8,i1,u1: MaxPool
T=f2,f4,f8,i2,i4,i8,u1,u2,u4,u8: Mul
T=f2,f4,f8,i4,i8,u4,u8: PRelu
T=f4: Celu
T=f4,f8: AveragePool Conv ConvTranspose GlobalAveragePool InstanceNormalization LayerNormalization
  LogSoftmax LpPool Softmax
T=f4,f8 tensor(int64)=i8: ReduceLogSum
T=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Einsum
T=f4,f8,i2,i4,i8: Range
T=f4,f8,i4,i8 tensor(int64)=i8: ReduceLogSumExp
T=f4,f8,i4,i8,u4,u8: Gemm MatMul
T=f4,f8,i4,i8,u4,u8 tensor(int64)=i8: ReduceL1 ReduceL2 ReduceMean ReduceSum
T=f4,f8,i4,i8,u8 tensor(int64)=i8: ReduceSumSquare
T=f4,f8,i4,u4 tensor(int64)=i8: ReduceProd
T=i1,i2,i4,i8,u1,u2,u4,u8: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
T=u1,u2,u4,u8: BitShift
V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Identity
tensor(float)=f4 tensor(int64)=i8: NonMaxSuppression
"""

SUPPORTED = parse_table(MEASURED)
