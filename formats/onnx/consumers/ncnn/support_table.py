"""Operators ncnn gets right, and with which element types.

Made by `python -m conformance.consumer_operators ncnn`, with ncnn 1.0.20261020, at opset 17.
A line has an operator and, for each type variable, the types as NumPy spells them.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
Abs T=f2,f4,f8,u1,u2,u4,u8
Acos T=f2,f4
Acosh T=f2,f4
Add T=f2,f4,f8,u1,u2,u4,u8
Asin T=f2,f4
Asinh T=f2,f4
Atan T=f2,f4
Atanh T=f2,f4
AveragePool T=f4
BatchNormalization T2=f2,f4 T1=f2,f4 T=f2,f4
Cast
Ceil T=f2,f4,f8
Celu T=f4
Clip T=f2,f4,f8,u1,u2,u4,u8
Concat T=f2,f4,i1,i2,i4,i8,u1,u2,u4,u8
Conv T=f4
ConvTranspose T=f4
Cos T=f2,f4,f8
Cosh T=f2,f4
DepthToSpace T=f2,f4,f8,i1,u1
Div T=f2,f4
Einsum T=f4,f8
Elu T=f2,f4
Erf T=f2,f4
Exp T=f2,f4,f8
Expand tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Flatten T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Floor T=f2,f4,f8
Gemm T=f4
GlobalAveragePool T=f4
GlobalMaxPool T=f4
GridSample T2=f2,f4 T1=f2,f4
HardSigmoid T=f2,f4
HardSwish T=f2,f4
InstanceNormalization T=f4
LRN T=f2,f4
LayerNormalization T=f4
LeakyRelu T=f2,f4,f8
Log T=f2,f4,f8
LogSoftmax T=f4,f8
MatMul T=f4,f8
MaxPool T=f2,f4,f8,u1
Mul T=f2,f4
Neg T=f2,f4,f8
Pad T=f2,f4,f8,i1,i4,i8,u1,u4,u8 tensor(int64)=i8
Pow T1=f2,f4 T=f2,f4
Reciprocal T=f2,f4,f8
ReduceL1 T=f4,f8,i4,i8
ReduceL2 T=f4,f8
ReduceLogSum T=f4,f8
ReduceLogSumExp T=f4,f8
ReduceMax T=f2,f4,f8,i1,i4,i8,u1
ReduceMean T=f4,f8
ReduceMin T=f2,f4,f8,i4,i8,u1
ReduceProd T=f4,f8
ReduceSum tensor(int64)=i8 T=f4,f8,i4,i8
ReduceSumSquare T=f4,f8
Relu T=f2,f4,f8
Reshape tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Resize tensor(float)=f4 T1=f2,f4
Round T=f2,f4,f8
Selu T=f2,f4
Sigmoid T=f2,f4,f8
Sign T=f2,f4,f8
Sin T=f2,f4,f8
Sinh T=f2,f4
Slice Tind=i4,i8 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Softmax T=f4,f8
Softplus T=f2,f4
SpaceToDepth T=f2,f4,f8,i1,u1
Sqrt T=f2,f4,f8
Squeeze tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Sub T=f2,f4,f8,u8
Sum T=f2,f4
Tan T=f2,f4
Tanh T=f2,f4,f8
Transpose T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Unsqueeze tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
"""

SUPPORTED = parse_table(MEASURED)
