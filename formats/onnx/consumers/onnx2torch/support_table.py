"""Operators onnx2torch gets right, and with which element types.

Made by `python -m conformance.consumer_operators onnx2torch`, with onnx2torch 1.5.15, at opset 17.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast
B=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Where
T1=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: EyeLike
T1=f2,f4 tensor(float)=f4: Resize
T1=f2,f4,f8: IsNaN
T1=f2,f4,f8 T2=f2,f4,f8 T=f2,f4,f8: BatchNormalization
T1=f2,f4,f8,i1,i2,i4,i8,u1 T=f2,f4,f8,i4,i8: Pow
T1=f4,f8: IsInf
T1=f4,f8 T2=i8: RoiAlign
T1=i8: ConstantOfShape
T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Tile
T2=i4,i8 T=f4,f8,i8: CumSum
T=b1: And Not Or Xor
T=b1,f2,f4,f8,i1,i2,i4,i8,u1: DepthToSpace
T=b1,f2,f4,f8,i1,i2,i4,i8,u1 Tind=i4,i8: GatherElements
T=b1,f2,f4,f8,i1,i2,i4,i8,u1 tensor(int64)=i8: ScatterND
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Concat Equal Flatten Split Transpose
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Gather Slice
T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Expand GatherND Pad Reshape Squeeze
  Unsqueeze
T=f2,f4,f8: Acos Asin Atan Ceil Clip Cos Elu Erf Exp Floor HardSigmoid HardSwish LeakyRelu Log Mean
  Reciprocal Round Selu Sigmoid Sin Softplus Softsign Sqrt Sum Tan Tanh
T=f2,f4,f8,i1,i2,i4,i8: Neg Relu
T=f2,f4,f8,i1,i2,i4,i8,u1: Abs Add ArgMax ArgMin Div Greater Less Max Min Mod Sign Sub
T=f2,f4,f8,i1,i2,i4,i8,u1 tensor(int64)=i8: TopK
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Mul
T=f2,f4,f8,i1,i4,i8,u1: ReduceMax ReduceMin
T=f2,f4,f8,i1,u1: MaxPool
T=f2,f4,f8,i4,i8: PRelu
T=f4: Celu
T=f4,f8: AveragePool Conv ConvTranspose Gemm GlobalAveragePool InstanceNormalization LRN
  LayerNormalization LogSoftmax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean Softmax
T=f4,f8,i4,i8: MatMul ReduceSumSquare
T=f4,f8,i8: Einsum ReduceProd
T=f4,f8,i8 tensor(int64)=i8: ReduceSum
T=f4,i8: Range
V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Identity
tensor(float)=f4 tensor(int64)=i8: NonMaxSuppression
"""

SUPPORTED = parse_table(MEASURED)
