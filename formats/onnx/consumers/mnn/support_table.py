"""Operators MNN gets right, and with which element types.

Made by `python -m conformance.consumer_operators mnn`, with mnn 3.6.1, at opset 17.
A line has an operator and, for each type variable, the types as NumPy spells them.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
Abs T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Acos T=f2,f4,f8
Acosh T=f2,f4,f8
Add T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
And T=b1
ArgMax T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
ArgMin T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Asin T=f2,f4,f8
Asinh T=f2,f4,f8
Atan T=f2,f4,f8
Atanh T=f2,f4,f8
AveragePool T=f4,f8
BatchNormalization T2=f2,f4,f8 T1=f2,f4,f8 T=f2,f4,f8
BitShift T=u2,u4,u8
Cast
Ceil T=f2,f4,f8
Celu T=f4
Clip T=f2,f4,f8,u1,u2,u4,u8
Compress T1=b1 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Concat T=b1,f2,f4,f8,i2,i4,i8,u1,u2,u4,u8
ConstantOfShape T1=i8
Conv T=f4,f8
ConvTranspose T=f4,f8
Cos T=f2,f4,f8
Cosh T=f2,f4,f8
CumSum T2=i4,i8 T=f4,f8,i4,i8,u4,u8
DepthToSpace T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
DequantizeLinear T=u1 tensor(float)=f4
Det T=f2,f4,f8
Div T=f2,f4,f8,i2,i4,i8,u2,u4,u8
Einsum T=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Elu T=f2,f4,f8
Equal T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Erf T=f2,f4,f8
Exp T=f2,f4,f8
Expand tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
EyeLike T1=i4
Flatten T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Floor T=f2,f4,f8
GRU T=f2,f4,f8
Gather Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
GatherElements Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
GatherND tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Gemm T=f4,f8
GlobalAveragePool T=f4,f8
GlobalMaxPool T=f2,f4,f8
Greater T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
GreaterOrEqual T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
GridSample T2=f2,f4,f8 T1=f2,f4,f8
HardSigmoid T=f2,f4,f8
HardSwish T=f2,f4,f8
Identity V=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
InstanceNormalization T=f4,f8
LRN T=f2,f4,f8
LSTM T=f2,f4,f8
LayerNormalization T=f4,f8
LeakyRelu T=f2,f4,f8
Less T=i1,i2,i4,i8,u2,u4,u8
LessOrEqual T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Log T=f2,f4,f8
LogSoftmax T=f4,f8
LpNormalization T=f2,f4,f8
LpPool T=f4,f8
MatMul T=f4,f8
Max T=f2,f4,f8,i2,i4,i8,u2,u4,u8
MaxPool T=f2,f4,f8,u1
MaxUnpool T2=i8 T1=f2,f4
Mean T=f2,f4,f8
MeanVarianceNormalization T=f2,f4
Min T=f2,f4,f8,i2,i4,i8,u2,u4,u8
Mod T=i2,i4,i8,u2,u4,u8
Mul T=f2,f4,f8,i2,i4,i8,u2,u4,u8
Neg T=f2,f4,f8,i1,i2,i4,i8
NegativeLogLikelihoodLoss T=f2,f4,f8 Tind=i4,i8
NonMaxSuppression tensor(float)=f4 tensor(int64)=i8
NonZero T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Not T=b1
Or T=b1
PRelu T=f2,f4,f8
Pad T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8
Pow T1=f2,f4,f8,i4 T=f2,f4,f8,i4
QuantizeLinear T2=u1 tensor(float)=f4 T1=f4
RNN T=f2,f4,f8
Range T=f4,f8,i2,i4,i8
Reciprocal T=f2,f4,f8
ReduceL1 T=f4,f8,i4,i8,u4,u8
ReduceL2 T=f4,f8
ReduceLogSum T=f4,f8
ReduceLogSumExp T=f4,f8
ReduceMax T=f2,f4,f8,i1,i4,i8,u4,u8
ReduceMean T=f4,f8,i4,i8,u4,u8
ReduceMin T=f2,f4,f8,i1,i4,i8,u4,u8
ReduceProd T=f4,f8,i4,u4
ReduceSum tensor(int64)=i8 T=f4,f8,i4,i8,u4,u8
ReduceSumSquare T=f4,f8,i4,i8,u8
Relu T=f2,f4,f8,i1,i2,i4,i8
Reshape tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Resize tensor(float)=f4 T1=f2,f4
ReverseSequence tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
RoiAlign T2=i8 T1=f2,f4,f8
STFT T2=i4,i8 T1=f2,f4,f8
ScatterElements T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8
ScatterND T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 tensor(int64)=i8
Selu T=f2,f4,f8
Sigmoid T=f2,f4,f8
Sign T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Sin T=f2,f4,f8
Sinh T=f2,f4,f8
Slice Tind=i4,i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Softmax T=f4,f8
SoftmaxCrossEntropyLoss T=f2,f4,f8 Tind=i4,i8
Softplus T=f2,f4,f8
Softsign T=f2,f4,f8
SpaceToDepth T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Split T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Sqrt T=f2,f4,f8
Squeeze tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Sub T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Sum T=f2,f4,f8
Tan T=f2,f4,f8
Tanh T=f2,f4,f8
ThresholdedRelu T=f2,f4,f8
Tile T1=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
TopK tensor(int64)=i8 T=f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Transpose T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Trilu tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Unique T=b1,f2,f4,f8,i1,i2,i4,i8,u2,u4,u8
Unsqueeze tensor(int64)=i8 T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8
Where T=b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 B=b1
Xor T=b1
"""

SUPPORTED = parse_table(MEASURED)
