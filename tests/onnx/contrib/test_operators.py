"""Activations, normalizations, products, weights and the rest, beside ONNX Runtime's."""

import numpy as np
import pytest

from tests.onnx.contrib.cases import Case, check, refusal

rng = np.random.default_rng(3)
f16, f32, f64 = np.float16, np.float32, np.float64
TOLERANCE = {f16: 2e-3, f32: 2e-6, f64: 2e-6}
DOUBLES = frozenset({"FastGelu", "QuickGelu", "LayerNormalization", "SimplifiedLayerNormalization"})


def floats(*shape):
    return rng.standard_normal(shape).astype(f32)


def ints(values):
    return np.array(values, np.int32)


def longs(values):
    return np.array(values, np.int64)


def of_type(dtype):
    x, y, b = (v.astype(dtype) for v in (floats(2, 5, 8), floats(2, 5, 8), floats(8)))
    sums = {"outputs": "y  s", "attrs": {"epsilon": 1e-3}}
    for op, operands, rest in (
        ("Gelu", [x], {}), ("BiasGelu", [x, b], {}), ("FastGelu", [x], {}), ("FastGelu", [x, b], {}),
        ("QuickGelu", [x], {}), ("QuickGelu", [x], {"attrs": {"alpha": 1.0}}),
        ("SkipLayerNormalization", [x, y, b, b], {}),
        ("SkipLayerNormalization", [x, y, b, b, b], sums),
        ("SkipLayerNormalization", [x, y[:1], b, b], {}), ("SkipLayerNormalization", [x, y[0], b], {}),
        ("SkipSimplifiedLayerNormalization", [x, y, b], {}),
        ("SkipSimplifiedLayerNormalization", [x, y, b, b], sums),
        ("SimplifiedLayerNormalization", [x, b], {"domain": ""}),
        ("SimplifiedLayerNormalization", [x, np.ones((5, 8), dtype)],
         {"domain": "", "attrs": {"axis": 1, "epsilon": 1e-3}}),
        ("SimplifiedLayerNormalization", [x, b], {"domain": "", "outputs": "yi"}),
        ("LayerNormalization", [x, b, b], {"domain": "", "opset": 12}),
        ("LayerNormalization", [x, b, b], {"domain": "", "opset": 12, "outputs": "ymi"}),
    ):  # fmt: skip
        if dtype is not f64 or op in DOUBLES:
            yield Case(op, operands, tolerance=TOLERANCE[dtype], **rest)


def fusions():
    for activation, params in (
        ("Relu", []), ("LeakyRelu", [0.3]), ("HardSigmoid", [0.3, 0.4]), ("Clip", [-0.5, 0.5]),
        ("Tanh", []), ("Sigmoid", []),
    ):  # fmt: skip
        attrs = {"activation": activation, "strides": [2, 2], "pads": [1, 1, 1, 1]}
        attrs |= {"activation_params": params} if params else {}
        yield Case(
            "FusedConv", [floats(2, 3, 7, 7), floats(4, 3, 3, 3), floats(4)], attrs, sized=(1,)
        )
        if activation != "Clip":
            attrs = {"activation": activation, "transB": 1, "alpha": 0.5, "beta": 2.0}
            attrs |= dict(zip(("activation_alpha", "activation_beta"), params, strict=False))
            yield Case("FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], attrs)
    operands = [floats(2, 3, 7, 7), floats(4, 3, 1, 1), floats(4), floats(2, 4, 7, 7)]
    yield Case("FusedConv", operands, {"activation": "Relu"}, sized=(1,))
    attrs = {"activation": "Relu", "group": 2, "auto_pad": "SAME_UPPER"}
    yield Case("FusedConv", [floats(2, 4, 7), floats(4, 2, 3)], attrs, sized=(0, 1))
    for a, b, attrs in (
        ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": 0.5}),
        ((2, 4, 3), (4, 5), {"transA": 1}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((4, 2, 3), (4, 2, 5), {"transBatchA": 1, "transA": 1, "transBatchB": 1}),
        ((2, 4, 3), (5, 2, 4), {"transA": 1, "transBatchB": 1, "transB": 1}),
        ((3, 2, 6, 4), (2, 6, 4, 5), {"transBatchA": 1}),
    ):
        yield Case("FusedMatMul", [floats(*a), floats(*b)], attrs)
    attrs = {"transA": 1, "transB": 1}
    yield Case("TransposeMatMul", [floats(4, 3), floats(5, 4)], attrs)


def linear():
    for size in (1, 2, 3, 7):
        yield Case("Inverse", [floats(2, size, size)], tolerance=2e-5)
    yield Case("Inverse", [np.array([[0, 1], [1, 0]], f32)])
    yield Case("Inverse", [floats(4, 4).astype(f64)], tolerance=1e-10)
    yield Case("Inverse", [floats(3, 40, 40)], tolerance=1e-3)
    for metric in ("sqeuclidean", "euclidean"):
        yield Case("CDist", [floats(4, 6), floats(3, 6)], {"metric": metric}, tolerance=1e-5)
    operands = [floats(1, 2, 5, 5), floats(2, 3, 3, 3), longs([1, 1, 1, 1])]
    attrs = {"strides": [2, 2]}
    yield Case("ConvTransposeWithDynamicPads", operands, attrs, fixed=(2,), sized=(1,))


def embeddings():
    ids, segments = ints(rng.integers(0, 10, (2, 5))), ints(rng.integers(0, 2, (2, 5)))
    tables = [floats(10, 8), floats(7, 8), floats(2, 8), floats(8), floats(8)]
    seen = ints([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    op = "EmbedLayerNormalization"
    yield Case(op, [ids, segments, *tables], outputs="ym")
    yield Case(op, [ids, segments, *tables, seen], outputs="ym")
    places = ints([[4, 3, 2, 1, 0], [0, 1, 2, 3, 4]])
    yield Case(op, [ids, segments, *tables, None, places], {"epsilon": 1e-3}, "yms")
    yield Case(op, [ids, None, *tables[:2], None, *tables[3:]], outputs="y s")
    bytes_ = [rng.integers(0, 255, v.shape).astype(np.uint8) for v in tables]
    scales = [np.array(0.02, f32)] * 5 + [np.array(120, np.uint8)] * 5
    yield Case("QEmbedLayerNormalization", [ids, segments, *bytes_, seen, *scales], outputs="ym")


def others():
    yield Case("SampleOp", [floats(3)])
    operands = [floats(2, 3, 8).astype(f16), floats(8)]
    yield Case("SimplifiedLayerNormalization", operands, domain="")
    for axis in (1, -1):
        yield Case("ExpandDims", [floats(2, 3), np.int32(axis)], fixed=(1,))
    yield Case("Trilu", [floats(2, 3, 4)])
    yield Case("Trilu", [floats(3, 4), longs(1)], {"upper": 0})
    yield Case("GatherND", [floats(3, 4), ints([[0, 1], [2, 3]])], sized=(1,))
    yield Case("Pad", [floats(2, 3), longs([[0, 1, 2, 1]]), np.array([3.0], f32)])
    yield Case("Pad", [floats(4, 5), longs([1, 1, 0, 2])], {"mode": "reflect"})
    yield Case("Pad", [floats(4, 5), longs([1, -1, 0, 2])], {"mode": "edge"})
    yield Case("Range", [longs(2), longs(9), longs(3)])
    yield Case("Range", [ints([2]), ints([9])])
    yield Case("Range", [np.array(v, f32) for v in (0, 1, 0.3)])
    yield Case("Unique", [np.array([2, 1, 1, 3, 4, 3], f32)], outputs="yic")
    yield Case("UnfoldTensor", [floats(3, 10)], {"size": 4, "step": 2})
    yield Case("UnfoldTensor", [floats(3, 10, 2)], {"dim": 1, "size": 3})
    for mode in ("bilinear", "nearest", "bicubic"):
        attrs = {"mode": mode, "align_corners": 1}
        operands = [floats(1, 2, 5, 6), np.tanh(floats(1, 3, 4, 2))]
        yield Case("GridSample", operands, attrs, tolerance=4e-6)
    for size in (1, 2, 3):
        operands = [rng.integers(0, 3, (3, 9)), floats(3, 5)]
        yield Case("NGramRepeatBlock", operands, {"ngram_size": size}, sized=(0,))
    rois = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.2, 0.1, 1.2, 0.8]], f32)
    for mode in ("bilinear", "nearest"):
        for crop in ([4, 5], [1, 1]):
            operands = [floats(2, 3, 8, 9), rois, ints([0, 1, 1]), ints(crop)]
            attrs = {"mode": mode, "extrapolation_value": 2.0}
            yield Case("CropAndResize", operands, attrs, fixed=(3,), tolerance=1e-5)
    yield Case("ScaledSiLU", [floats(3, 4)], {"alpha": 0.5})
    yield Case("ScaledSiLU", [floats(3, 4), np.array(0.7, f32)])
    yield Case("GatedAdd", [floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 1)])
    for activation in ("silu", "sigmoid"):
        operands = [floats(2, 3, 16), floats(8), floats(2, 3, 16)]
        attrs = {"activation": activation}
        yield Case("GatedRMSNorm", operands, attrs, fixed=(1,), sized=(0,))


def weights():
    for k in (64, 80):
        for bits in (2, 4, 8):
            blocks = -(-k // 32)
            b = rng.integers(0, 256, (6, blocks, 4 * bits)).astype(np.uint8)
            zeros = rng.integers(0, 256, (6, -(-blocks * bits // 8))).astype(np.uint8)
            for zero in (None, zeros):
                operands = [floats(2, 3, k), b, np.abs(floats(6, blocks)), zero]
                attrs = {"K": k, "N": 6, "bits": bits, "block_size": 32}
                yield Case("MatMulNBits", operands, attrs, fixed=(1, 2, 3), tolerance=1e-5)
    operands = [floats(2, 64), b[:, :2, :16], np.abs(floats(6, 2)), None, None, floats(6)]
    attrs = {"K": 64, "N": 6, "bits": 4, "block_size": 32, "accuracy_level": 1}
    yield Case("MatMulNBits", operands, attrs, fixed=(1, 2, 5), tolerance=1e-5)
    for kind in (0, 1):
        packed = rng.integers(0, 256, 5 * 48 // 2).astype(np.uint8)
        attrs = {"K": 48, "N": 5, "block_size": 32, "quant_type": kind}
        operands = [floats(3, 48), packed, np.abs(floats(8))]
        yield Case("MatMulBnb4", operands, attrs, fixed=(1, 2), tolerance=1e-5)
    table = rng.integers(0, 256, (10, 32)).astype(np.uint8)
    for bits, size, zero in ((4, 32, table[:, :1]), (8, 16, None)):
        operands = [table, longs([[1, 3], [9, 0]]), np.abs(floats(10, 2)), zero]
        attrs = {"bits": bits, "block_size": size}
        yield Case("GatherBlockQuantized", operands, attrs, fixed=(0, 2, 3))


CASES = [
    *(c for dtype in (f16, f32, f64) for c in of_type(dtype)),
    *fusions(), *linear(), *embeddings(), *others(), *weights(),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operators(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize(("case", "reason"), [
    (Case("FusedConv", [floats(1, 1, 3, 3), floats(1, 1, 1, 1)], {"activation": "Acme"}),
     "activation='Acme'"),
    (Case("CDist", [floats(2, 2), floats(2, 2)], {"metric": "hamming"}), "metric='hamming'"),
    (Case("MatMulNBits", [floats(2, 64), rng.integers(0, 256, (6, 2, 16)).astype(np.uint8),
                          np.abs(floats(6, 2))], {"K": 64, "N": 6, "block_size": 32}),
     "packed weights have to be constants"),
    (Case("Gelu", [floats(2)], {"tuned": 1}), "tuned=1"),
])  # fmt: skip
def test_refusals(case, reason, tmp_path):
    message = refusal(case, tmp_path)
    assert f"com.microsoft:{case.op} ×1 ('layer')" in message and reason in message
