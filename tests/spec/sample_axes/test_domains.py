"""Axes of operators of other domains."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from serde.ir.graph import Node, Value
from serde.spec.sample_axes import SHARED, domains, find_sample_axes
from serde.spec.schema import to_python_attribute
from tests.spec.sample_axes.cases import (
    ML,
    case_of,
    check_axes,
    check_operator,
    constant,
    operators_of,
)


@pytest.mark.parametrize("op", operators_of(domains))
def test_results_are_permuted_as_operands_are(op):
    check_operator(op)


# Operators of other domains; the axes that are compared.
DOMAINS = {
    "com.microsoft:FusedMatMul": ("(float[2,4,3] x, float[2,4,5] w) => (float[2,3,5] y) { y = com.microsoft.FusedMatMul<transA=1>(x, w) }", 3),
    "com.microsoft:FusedMatMul of rows": ("(float[3,4] x, float[5,4] w) => (float[3,5] y) { y = com.microsoft.FusedMatMul<transB=1>(x, w) }", 2),
    "com.microsoft:FusedGemm": ('(float[3,4] x, float[4,5] w, float[5] b) => (float[3,5] y) { y = com.microsoft.FusedGemm<activation="Relu">(x, w, b) }', 2),
    "com.microsoft:FusedConv": ('(float[2,3,5,5] x, float[4,3,2,2] w, float[4] b, float[2,4,4,4] z) => (float[2,4,4,4] y) { y = com.microsoft.FusedConv<activation="Relu">(x, w, b, z) }', 1),
    "com.microsoft:BiasGelu": ("(float[2,3,4] x, float[4] b) => (float[2,3,4] y) { y = com.microsoft.BiasGelu(x, b) }", 3),
    "com.microsoft:QuickGelu": ("(float[2,3] x) => (float[2,3] y) { y = com.microsoft.QuickGelu(x) }", 2),
    "com.microsoft:SkipLayerNormalization": ("(float[2,3,4] x, float[2,3,4] s, float[4] g, float[4] b) => (float[2,3,4] y) { y = com.microsoft.SkipLayerNormalization(x, s, g, b) }", 2),
    "com.microsoft:MultiHeadAttention": ("(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, float[24] b) => (float[2,3,8] y) { y = com.microsoft.MultiHeadAttention<num_heads=2>(q, k, v, b) }", 1),
    "com.microsoft:Attention": ("(float[2,3,8] x, float[8,24] w, float[24] b) => (float[2,3,8] y) { y = com.microsoft.Attention<num_heads=2>(x, w, b) }", 1),
    "ai.onnx.ml:Scaler": ("(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Scaler<offset=[1.0,2.0,3.0], scale=[2.0,1.0,3.0]>(x) }", 1),
    "ai.onnx.ml:Imputer": ("(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Imputer<imputed_value_floats=[1.0], replaced_value_float=0.0>(x) }", 1),
    "ai.onnx.ml:Normalizer": ('(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Normalizer<norm="L2">(x) }', 1),
    "ai.onnx.ml:OneHotEncoder": ("(int64[2,3] x) => (float[2,3,4] y) { y = ai.onnx.ml.OneHotEncoder<cats_int64s=[1,2,3,4]>(x) }", 2),
    "ai.onnx.ml:FeatureVectorizer": ("(float[2,3] x, float[2,2] z) => (float[2,5] y) { y = ai.onnx.ml.FeatureVectorizer<inputdimensions=[3,2]>(x, z) }", 1),
    "ai.onnx.ml:LinearRegressor": ("(float[3,2] x) => (float[3,1] y) { y = ai.onnx.ml.LinearRegressor<coefficients=[0.5,2.0]>(x) }", 1),
    "ai.onnx.ml:LinearClassifier": ("(float[3,2] x) => (int64[3] y, float[3,2] z) { y, z = ai.onnx.ml.LinearClassifier<coefficients=[0.5,2.0,1.0,-1.0], intercepts=[0.0,0.1], classlabels_ints=[0,1]>(x) }", 1),
    "ai.onnx.ml:ArrayFeatureExtractor": ("(float[2,3,4] x, int64[2] i = {1,2}) => (float[2,3,2] y) { y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }", 2),
    "ai.onnx.ml:Binarizer": ("(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Binarizer(x) }", 2),
}  # fmt: skip


@pytest.mark.parametrize("op", DOMAINS)
def test_operators_of_other_domains(op):
    text, count = DOMAINS[op]
    case = case_of(text, op)
    own = case.model.graph.node[0]
    arrays = dict(zip((v.name for v in case.model.graph.input), case.data[0][0], strict=True))
    attrs = {a.name: to_python_attribute(onnx.helper.get_attribute_value(a)) for a in own.attribute}
    inputs = tuple(constant(n, arrays[n]) for n in own.input)
    outputs = tuple(
        Value(n, None, np.shape(a)) for n, a in zip(own.output, case.data[0][1], strict=True)
    )
    node = Node(own.op_type, inputs, outputs, attrs, own.domain)
    assert sum(1 for _ in check_axes(case, node)) == count


def test_a_table_of_maps_has_no_axis():
    node = Node("ZipMap", (constant("x", np.ones((2, 3))),), (Value("y"),), domain=ML)
    assert [a.outputs for a in find_sample_axes(node)] == [(SHARED,)]
