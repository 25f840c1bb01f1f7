"""Operators that ONNX Runtime's CPU provider has no kernel for, beside their declarations."""

import math

import numpy as np
import pytest

from tests.onnx.contrib.cases import OPSETS, Case, compare, convert, run

rng = np.random.default_rng(5)
f32 = np.float32


def floats(*shape):
    return rng.standard_normal(shape).astype(f32)


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2


def tanh_gelu(x):
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(x, w, b=None):
    """A convolution by single pixels, of channels that are last."""
    y = np.einsum("nhwc,mc->nhwm", x, w[:, :, 0, 0])
    return y if b is None else y + b


def group_normalized(x, gamma, beta, groups):
    parts = x.reshape(*x.shape[:3], groups, -1)
    apart = parts - parts.mean((1, 2, 4), keepdims=True)
    spread = np.sqrt((apart**2).mean((1, 2, 4), keepdims=True) + 1e-5)
    return (apart / spread).reshape(x.shape) * gamma + beta


def softmax(x, axis):
    parts = np.exp(x.reshape(*x.shape[:axis], -1))
    return (parts / parts.sum(-1, keepdims=True)).reshape(x.shape)


x, y, b = floats(2, 5, 8), floats(2, 5, 8), floats(8)
image, w, channels = floats(2, 4, 4, 6), floats(8, 6, 1, 1), floats(8)
numbers, others = floats(3, 2), floats(3, 2)
bytes_ = rng.integers(-128, 128, (3, 4)).astype(np.int8)
scales = [np.array(v, f32) for v in (0.02, 0.013)]
z = (numbers[:, 0] + 1j * numbers[:, 1], others[:, 0] + 1j * others[:, 1])


def pairs(v):
    return np.stack([v.real, v.imag], axis=-1)


CASES = [
    (Case("BiasAdd", [x, b, y]), [x + b + y]),
    (Case("BiasSplitGelu", [x, b]), [(x + b)[..., :4] * gelu((x + b)[..., 4:])]),
    (Case("GemmFastGelu", [x, floats(8, 8) * 0 + np.eye(8, dtype=f32), b]), [tanh_gelu(x + b)]),
    (Case("BiasSoftmax", [x, y], {"axis": 1, "is_inner_broadcast": 1}, sized=(0, 1)),
     [softmax(x + y, 1)]),
    (Case("BiasSoftmax", [x, b], {"axis": -1, "is_inner_broadcast": 1}), [softmax(x + b, 2)]),
    (Case("BiasDropout", [x, b, y], outputs="ym"), [x + b + y, np.ones(x.shape, bool)]),
    (Case("FusedMatMulActivation", [x, floats(8, 8) * 0 + np.eye(8, dtype=f32)],
          {"activation": "Relu", "alpha": 0.5}), [np.maximum(x / 2, 0)]),
    (Case("NhwcConv", [image, w, channels], sized=(1,)), [convolve(image, w, channels)]),
    (Case("NhwcFusedConv", [image, w, None, np.ones((2, 4, 4, 8), f32)],
          {"activation": "Relu"}, sized=(1,)), [np.maximum(convolve(image, w) + 1, 0)]),
    (Case("GroupNorm", [image, floats(6) * 0 + 2, floats(6) * 0 + 1],
          {"activation": 0, "groups": 3}, sized=(0,)),
     [group_normalized(image, 2, 1, 3)]),
    (Case("GroupNorm", [image, floats(6) * 0 + 2, floats(6) * 0 + 1],
          {"activation": 1, "groups": 2}, sized=(0,)),
     [(v := group_normalized(image, 2, 1, 2)) * sigmoid(v)]),
    (Case("ComplexMul", [numbers, others]), [pairs(z[0] * z[1])]),
    (Case("ComplexMulConj", [numbers, others]), [pairs(z[0] * z[1].conj())]),
    (Case("ReduceSumInteger", [bytes_], {"axes": [1], "keepdims": 0}),
     [bytes_.sum(1, dtype=np.int32)]),
    (Case("MulInteger", [bytes_, np.array(3, np.int8), bytes_, np.array(-5, np.int8)]),
     [(bytes_.astype(np.int32) - 3) * (bytes_.astype(np.int32) + 5)]),
    (Case("QLinearReduceMean", [bytes_, scales[0], np.int8(3), scales[1], np.int8(-9)],
          {"axes": [1], "keepdims": 1}, fixed=(1, 2, 3, 4)),
     [np.clip(np.round((bytes_ - 3.0).mean(1, keepdims=True) * 0.02 / 0.013) - 9, -128, 127)
      .astype(np.int8)]),
]  # fmt: skip


@pytest.mark.parametrize(("case", "expected"), CASES, ids=[str(c) for c, _ in CASES])
def test_operators(case, expected, tmp_path):
    for named in (False, True):
        for opset in OPSETS:
            model = convert(case.model(named), tmp_path, opset)
            assert not any(n.domain for n in model.graph.node)
            typed = [e if e.dtype.kind in "iub" else e.astype(f32) for e in expected]
            compare(run(model, case.feeds), typed, 4e-6)
