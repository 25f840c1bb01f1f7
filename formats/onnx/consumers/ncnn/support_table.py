"""Operators ncnn gets right, and with which element types.

Made by `python -m conformance.consumer_operators ncnn`, with ncnn 1.0.20261020, at opset 17.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: Cast
T1=f2,f4 T2=f2,f4: GridSample
T1=f2,f4 T2=f2,f4 T=f2,f4: BatchNormalization
T1=f2,f4 T=f2,f4: Pow
T1=f2,f4 tensor(float)=f4: Resize
T=f2,f4: Acos Acosh Asin Asinh Atan Atanh Cosh Div Elu Erf HardSigmoid HardSwish LRN Mul Selu Sinh
  Softplus Sum Tan
T=f2,f4,f8: Ceil Cos Exp Floor LeakyRelu Log Neg Reciprocal Relu Round Sigmoid Sign Sin Sqrt Tanh
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Flatten Transpose
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Slice
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8: Expand Reshape Squeeze Unsqueeze
T=f2,f4,f8,i1,i4,i8,u1: ReduceMax
T=f2,f4,f8,i1,i4,i8,u1,u4,u8 tensor(int64)=i8: Pad
T=f2,f4,f8,i1,u1: DepthToSpace SpaceToDepth
T=f2,f4,f8,i4,i8,u1: ReduceMin
T=f2,f4,f8,u1: MaxPool
T=f2,f4,f8,u1,u2,u4,u8: Abs Add Clip
T=f2,f4,f8,u8: Sub
T=f2,f4,i1,i2,i4,i8,u1,u2,u4,u8: Concat
T=f4: AveragePool Celu Conv ConvTranspose Gemm GlobalAveragePool GlobalMaxPool InstanceNormalization
  LayerNormalization
T=f4,f8: Einsum LogSoftmax MatMul ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd
  ReduceSumSquare Softmax
T=f4,f8,i4,i8: ReduceL1
T=f4,f8,i4,i8 tensor(int64)=i8: ReduceSum
"""

SUPPORTED = parse_table(MEASURED)
