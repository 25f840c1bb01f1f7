"""Operators that TensorRT 10.1 reads, and the element types of their first operand.

Taken from docs/operators.md of onnx-tensorrt, release 10.1 of 17 June 2024. DOUBLE is cast to
FLOAT; INT8 is for quantized tensors only. bfloat16 and 8-bit floats are left out.
"""

from __future__ import annotations

DOCUMENTED = {
    "f4,f2": """
        Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Clip Conv
        ConvTranspose Cos Cosh CumSum Dropout Einsum Elu Erf Exp Floor GRU Gemm GlobalAveragePool
        GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish Hardmax InstanceNormalization
        IsInf LRN LSTM LayerNormalization LeakyRelu Log LogSoftmax LpNormalization LpPool MatMul
        MaxPool MeanVarianceNormalization NonMaxSuppression NonZero PRelu Pow QuantizeLinear RNN
        RandomNormal RandomNormalLike RandomUniform RandomUniformLike Reciprocal Resize RoiAlign
        Round Scan Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu
        """,
    "f4,f2,i4,i8": """
        Abs Add ArgMax ArgMin DepthToSpace Div Equal Greater GreaterOrEqual IsNaN Less LessOrEqual
        Max Mean Min Mod Mul Neg Pad Range ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
        ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu ScatterElements
        ScatterND Shrink Sign SpaceToDepth Sub Sum TopK
        """,
    "f4,f2,i4,i8,b1": """
        Concat Expand EyeLike Flatten Gather GatherElements GatherND Identity Loop OneHot Reshape
        ReverseSequence Shape Size Slice Split Squeeze Tile Transpose Trilu Unsqueeze
        """,
    "b1": "And If Not Or Where Xor",
    "f4,f2,i4,i8,u1,b1": "Cast",
    "i8": "ConstantOfShape",
    "i1": "DequantizeLinear",
}
