"""Operators onnx2torch gets right, and with which element types.

Made by `python -m conformance.consumer_operators onnx2torch`, with onnx2torch 1.5.15, at opset 17.
A line has an operator and, for each type variable, the types as NumPy spells them.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
Abs T=f2,f4,f8,i1,i2,i4,i8,u1
Acos T=f2,f4,f8
Add T=f2,f4,f8,i1,i2,i4,i8,u1
And T=b1
ArgMax T=f2,f4,f8,i1,i2,i4,i8,u1
ArgMin T=f2,f4,f8,i1,i2,i4,i8,u1
Asin T=f2,f4,f8
Atan T=f2,f4,f8
AveragePool T=f4,f8
BatchNormalization T2=f2,f4,f8 T1=f2,f4,f8 T=f2,f4,f8
Cast
Ceil T=f2,f4,f8
Celu T=f4
Clip T=f2,f4,f8
Concat T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
ConstantOfShape T1=i8
Conv T=f4,f8
ConvTranspose T=f4,f8
Cos T=f2,f4,f8
CumSum T2=i4,i8 T=f4,f8,i8
DepthToSpace T=b1,f2,f4,f8,i1,i2,i4,i8,u1
Div T=f2,f4,f8,i1,i2,i4,i8,u1
Einsum T=f4,f8,i8
Elu T=f2,f4,f8
Equal T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Erf T=f2,f4,f8
Exp T=f2,f4,f8
Expand tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
EyeLike T1=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Flatten T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Floor T=f2,f4,f8
Gather Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
GatherElements Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1
GatherND tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Gemm T=f4,f8
GlobalAveragePool T=f4,f8
Greater T=f2,f4,f8,i1,i2,i4,i8,u1
HardSigmoid T=f2,f4,f8
HardSwish T=f2,f4,f8
Identity V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
InstanceNormalization T=f4,f8
IsInf T1=f4,f8
IsNaN T1=f2,f4,f8
LRN T=f4,f8
LayerNormalization T=f4,f8
LeakyRelu T=f2,f4,f8
Less T=f2,f4,f8,i1,i2,i4,i8,u1
Log T=f2,f4,f8
LogSoftmax T=f4,f8
MatMul T=f4,f8,i4,i8
Max T=f2,f4,f8,i1,i2,i4,i8,u1
MaxPool T=f2,f4,f8,i1,u1
Mean T=f2,f4,f8
Min T=f2,f4,f8,i1,i2,i4,i8,u1
Mod T=f2,f4,f8,i1,i2,i4,i8,u1
Mul T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Neg T=f2,f4,f8,i1,i2,i4,i8
Not T=b1
Or T=b1
PRelu T=f2,f4,f8,i4,i8
Pad T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8
Pow T1=f2,f4,f8,i1,i2,i4,i8,u1 T=f2,f4,f8,i4,i8
Range T=f4,i8
Reciprocal T=f2,f4,f8
ReduceL1 T=f4,f8
ReduceL2 T=f4,f8
ReduceLogSum T=f4,f8
ReduceLogSumExp T=f4,f8
ReduceMax T=f2,f4,f8,i1,i4,i8,u1
ReduceMean T=f4,f8
ReduceMin T=f2,f4,f8,i1,i4,i8,u1
ReduceProd T=f4,f8,i8
ReduceSum tensor(int64)=i8 T=f4,f8,i8
ReduceSumSquare T=f4,f8,i4,i8
Relu T=f2,f4,f8,i1,i2,i4,i8
Reshape tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Resize tensor(float)=f4 T1=f2,f4
Round T=f2,f4,f8
ScatterND T=b1,f2,f4,f8,i1,i2,i4,i8,u1 tensor(int64)=i8
Selu T=f2,f4,f8
Sigmoid T=f2,f4,f8
Sign T=f2,f4,f8,i1,i2,i4,i8,u1
Sin T=f2,f4,f8
Slice Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Softmax T=f4,f8
Softplus T=f2,f4,f8
Softsign T=f2,f4,f8
Split T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Sqrt T=f2,f4,f8
Squeeze tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Sub T=f2,f4,f8,i1,i2,i4,i8,u1
Sum T=f2,f4,f8
Tan T=f2,f4,f8
Tanh T=f2,f4,f8
Tile T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
TopK tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u1
Transpose T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Unsqueeze tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Where T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 B=b1
Xor T=b1
"""

SUPPORTED = parse_table(MEASURED)
