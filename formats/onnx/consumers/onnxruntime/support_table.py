"""Kernels of ONNX Runtime's CPU provider, and their element types.

Made by `python -m conformance.onnxruntime_kernels`, with onnxruntime 1.32.0, at opset 21.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
: NonMaxSuppression StringNormalizer
B=b1 I=i8 V=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8: Loop
B=b1 O=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: OptionalHasElement
B=b1 V=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8: If
I=i4,i8 S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: SequenceErase SequenceInsert
I=i4,i8 S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: SequenceAt
I=i4,i8 S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T=O,b1,f2,f4,f8,i4,i8: SplitToSequence
I=i8 S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: SequenceLength
I=i8 T=f2,f4,f8,i1,i2,i4,i8,u1: TopK
I=i8 T=f2,f4,f8,i1,u1: MaxPool
O=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 V=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Optional
  OptionalGetElement
S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: ConcatFromSequence SequenceEmpty
S=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: SequenceConstruct
T1=O T2=O T3=i8: StringSplit
T1=O T2=b1: RegexFullMatch
T1=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,int4,u1,u2,u4,u8,uint4
  T2=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,int4,u1,u2,u4,u8,uint4:
  Cast
T1=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 T2=f4,f8: RandomNormalLike RandomUniformLike
T1=b1 T=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Compress Equal
T1=b1 T=b1: And Or Xor
T1=b1 T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Greater GreaterOrEqual Less LessOrEqual
T1=bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ T2=b1: IsInf IsNaN
T1=f2,f4 T2=f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,int4,u1,u2,uint4: QuantizeLinear
T1=f2,f4 T2=i4,i8: Multinomial
T1=f2,f4 T2=i8: MaxUnpool
T1=f2,f4,f8 T2=b1 T=f2,f4,f8: Dropout
T1=f2,f4,f8 T2=f2,f4,f8: GridSample
T1=f2,f4,f8 T2=f2,f4,f8 T=f2,f4,f8: BatchNormalization
T1=f2,f4,f8 T2=i4,i8: DFT STFT
T1=f2,f4,f8 T2=i8: AffineGrid RoiAlign
T1=f2,f4,f8,i4,i8 T=f2,f4,f8,i4,i8: Pow
T1=f2,f4,f8,i4,i8,u8 T2=f4,f8,i4,i8,u8: EyeLike
T1=f2,f4,i1,i4,u1: Resize
T1=f2,f4,i4,i8 T2=f2,f4,i4,i8 T3=O,f2,f4,i4,i8: OneHot
T1=f4 T=O,i4,i8: TfIdfVectorizer
T1=f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,int4,u1,u2,uint4 T2=f2,f4: DequantizeLinear
T1=i1,u1 T2=i1,u1 T3=i1,u1 T4=i4: QLinearConv
T1=i1,u1 T2=i1,u1 T3=i1,u1 TS=f2,f4: QLinearMatMul
T1=i1,u1 T2=i1,u1 T3=i4: ConvInteger MatMulInteger
T1=i4 T=f2,f4: RNN
T1=i4 T=f2,f4,f8: GRU LSTM
T1=i4,i8 T2=f2,f4 T3=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: MelWeightMatrix
T1=i4,i8 T2=f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: BlackmanWindow HammingWindow HannWindow
T1=i8 T2=b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8:
  ConstantOfShape
T1=i8 T=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8: Shape
T1=i8 T=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Size Tile
T2=i4,i8 T=f2,f4,f8,i4,i8: CumSum
T2=u1: DynamicQuantizeLinear
T=O: StringConcat
T=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,int4,u1,u2,u4,u8,uint4:
  Transpose
T=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8: Reshape
T=O,b1,bf16,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Concat Flatten GatherND ScatterND Split Squeeze
  Unsqueeze
T=O,b1,bf16,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8 Tind=i4,i8: Gather GatherElements ScatterElements Slice
T=O,b1,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Expand ReverseSequence
T=O,f2,f4,f8,i1,i4,i8,u1,u4: Where
T=O,f2,f4,f8,i1,i8: Unique
T=b1: Not
T=b1,bf16,f2,f4,f8,i1,i4,i8,u1,u4,u8: Pad
T=b1,f2,f4,f8,i1,i4,i8,u1: ReduceMax ReduceMin
T=b1,f2,f4,f8,i4,i8: Trilu
T=b1,f2,f4,i4,i8,u1: NonZero
T=bf16,f2,f4,f8 U=f4: LayerNormalization
T=bf16,f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Sign
T=f2,f4: Acos Acosh Asin Asinh Atan Atanh AveragePool Col2Im Conv ConvTranspose Cosh Det Elu Erf
  Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid Hardmax InstanceNormalization LRN
  LeakyRelu LpPool MaxRoiPool Mean MeanVarianceNormalization PRelu Selu Sinh Softplus Softsign Tan
  ThresholdedRelu
T=f2,f4,f8: Ceil Cos DeformConv Exp Floor Gemm Log LogSoftmax LpNormalization Reciprocal Round
  Sigmoid Sin Softmax Sqrt Sum Tanh
T=f2,f4,f8,i1,i2,i4,i8: Neg
T=f2,f4,f8,i1,i2,i4,i8,u1,u2,u4,u8: Abs Add Div Mod Mul Shrink Sub
T=f2,f4,f8,i1,i4: Relu
T=f2,f4,f8,i1,i4,i8,u1: ArgMax ArgMin
T=f2,f4,f8,i1,i4,i8,u1,u4,u8: Clip Max Min
T=f2,f4,f8,i1,u1: DepthToSpace SpaceToDepth
T=f2,f4,f8,i4,i8: Einsum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd
  ReduceSum ReduceSumSquare
T=f2,f4,f8,i4,i8,u4,u8: MatMul
T=f4: Celu
T=f4,f8: RandomNormal RandomUniform
T=f4,f8,i2,i4,i8: Range
T=i1,i2,i4,i8,u1,u2,u4,u8: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
T=u1,u2,u4,u8: BitShift
V=O,b1,bf16,f2,f4,f8,f8E4M3FN,f8E4M3FNUZ,f8E5M2,f8E5M2FNUZ,i1,i2,i4,i8,u1,u2,u4,u8: Identity Scan
"""

SUPPORTED = parse_table(MEASURED)
