"""Operators TVM's importer into Relax gets right, and with which element types.

Made by `python -m conformance.relax_operators`, with apache-tvm 0.27.0.post1, at opset 17.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast OptionalGetElement OptionalHasElement
B=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Where
T1=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Compress
T1=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: EyeLike
T1=b1,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T2=f4,f8: GridSample
T1=f2,f4 tensor(float)=f4 tensor(int64)=i8: Resize
T1=f2,f4,f8: IsNaN
T1=f2,f4,f8 T2=i8: MaxUnpool
T1=f2,f4,f8 T=f2,f4,f8: Dropout Pow
T1=f4: DynamicQuantizeLinear
T1=f4 T2=i1,u1 tensor(float)=f4: QuantizeLinear
T1=f4,f8: IsInf
T1=f4,f8 T2=f4,f8 T=f4,f8: BatchNormalization
T1=f4,f8 T2=i8: RoiAlign
T1=i1,u1 T2=i1,u1: MatMulInteger
T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Tile
T2=i4,i8 T=f4,f8,i4,i8,u4,u8: CumSum
T=b1: And Not Or Xor
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Concat DepthToSpace Flatten NonZero SpaceToDepth Split
  Transpose Unique
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Gather GatherElements ScatterElements Slice
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Expand GatherND Pad Reshape ScatterND
  Squeeze Trilu Unsqueeze
T=f2,f4,f8: Atanh Ceil Cos Erf Exp Floor GlobalMaxPool HardSigmoid HardSwish Hardmax LeakyRelu Log
  Mean Reciprocal Round Shrink Sigmoid Sin Softplus Softsign Sqrt Sum Tan Tanh
T=f2,f4,f8,i1,i2,i4,i8: Neg Relu Sign
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Abs Add ArgMax ArgMin Clip Div Equal Greater GreaterOrEqual Less
  LessOrEqual Max Min Mod Mul Sub
T=f2,f4,f8,i1,i4,i8,u1 tensor(int64)=i8: TopK
T=f2,f4,f8,i1,i4,i8,u1,u4,u8: ReduceMax ReduceMin
T=f2,f4,f8,i1,u1: MaxPool
T=f2,f4,f8,i4,i8,u4,u8: PRelu
T=f4: Elu LRN LayerNormalization MeanVarianceNormalization Selu ThresholdedRelu
T=f4,f8: Acos Acosh Asin Asinh Atan AveragePool Conv ConvTranspose Cosh GlobalAveragePool
  InstanceNormalization LogSoftmax LpPool ReduceL2 ReduceLogSum ReduceLogSumExp Sinh Softmax
T=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Einsum
T=f4,f8,i2,i4,i8: Range
T=f4,f8,i4,i8,u4,u8: Gemm MatMul ReduceL1 ReduceProd
T=f4,f8,i4,i8,u4,u8 tensor(int64)=i8: ReduceSum
T=f4,f8,i4,i8,u8: ReduceSumSquare
T=f4,f8,i8,u8: ReduceMean
T=i1,i4,u1 tensor(float)=f4: DequantizeLinear
T=u1,u2,u4,u8: BitShift
V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Identity
tensor(float)=f4 tensor(int64)=i8: NonMaxSuppression
"""

SUPPORTED = parse_table(MEASURED)
