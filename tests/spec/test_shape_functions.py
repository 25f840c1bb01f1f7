"""Output shapes that operands tell, with sizes by name."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType, Value
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.shape_functions import infer_reshape, refine_stft

F32, I64 = DType.FLOAT32, DType.INT64


@pytest.mark.parametrize(
    ("op", "operands", "shape"),
    [  # the second operand is a shape of which only some is known
        ("Reshape", lambda g, n: [g.Concat(n, [-1], axis=0)], ("N", 6)),
        ("Reshape", lambda g, n: [g.Concat([0], [3, 2], axis=0)], ("N", 3, 2)),
        ("Reshape", lambda g, n: [g.Concat([-1], [2], axis=0)], ("N*3", 2)),
        ("Reshape", lambda g, n: [g.input("s", I64, (3,))], (None, None, None)),
        ("Reshape", lambda g, n: [g.input("s", I64, ("K",))], None),
        ("Expand", lambda g, n: [g.Concat([7], n, [2, 3], axis=0)], (7, "N", 2, 3)),
        ("Expand", lambda g, n: [g.Concat([7], [1], [1, 1], axis=0)], (7, "N", 2, 3)),
        ("Tile", lambda g, n: [g.Concat([2], n, [1], axis=0)], ("N*2", "N*2", 3)),
        ("Tile", lambda g, n: [g.input("s", I64, (3,))], (None, None, None)),
    ],
)
def test_a_spelled_shape_keeps_what_is_known_of_it(op, operands, shape):
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 2, 3))
    assert g[op](x, *operands(g, g.Shape(x, start=0, end=1))).shape == shape


@pytest.mark.parametrize(
    ("shape", "rest", "expected"),
    [(("N", 0, 3), [-1, 0], ("N", 0, 3)), (("N", 4, 3), [-1, 0], ("N", 4, 3)),
     (("N", 0), [-1, 2], ("N", 0, 2)), (("N", "M"), [-1, 2], ("N", "M/2", 2))],
)  # fmt: skip
def test_what_is_left_over(shape, rest, expected):
    g = OnnxBuilder("g")
    x = g.input("x", F32, shape)
    assert g.Reshape(x, g.Concat(g.Shape(x, start=0, end=1), rest, axis=0)).shape == expected


WINDOWS = ["Conv", "MaxPool", "AveragePool", "ConvTranspose"]


@pytest.mark.parametrize("op", WINDOWS)
def test_sizes_by_name_of_windows_are_those_of_numbers(op):
    draws, compared = np.random.default_rng(0), 0
    for _ in range(150):
        kernel, stride, dilation = (int(draws.integers(1, most)) for most in (6, 5, 3))
        attrs = {"kernel_shape": (kernel,), "strides": (stride,), "dilations": (dilation,)}
        ways = ["pads", "pads", "VALID"] + ["SAME_UPPER", "SAME_LOWER"] * (op != "ConvTranspose")
        way = draws.choice(ways)
        if way == "pads":
            attrs["pads"] = tuple(draws.integers(0, kernel, 2).tolist())
        else:
            attrs["auto_pad"] = str(way)
        if op.endswith("Pool"):
            attrs["ceil_mode"] = int(draws.integers(2)) if way == "pads" else 0
        if op == "ConvTranspose":
            attrs["output_padding"] = (int(draws.integers(stride)),)
        named = _infer_window(op, "L", attrs)[-1]
        for size in range(12, 20):
            number = _infer_window(op, size, attrs)[-1]
            if named is not None:
                told = eval(str(named).replace("/", "//"), {"L": size})  # an expression of ours
                assert told == number, (attrs, size, named)
                compared += 1
    assert compared > 600


def _infer_window(op: str, size, attrs):
    g = OnnxBuilder("g")
    x, w = Value("x", F32, ("N", 2, size)), Value("w", F32, (2, 2, *attrs["kernel_shape"]))
    y = g.emit(op, [x] if op.endswith("Pool") else [x, w], attrs)
    assert y.shape[:2] == ("N", 2)
    return y.shape


@pytest.mark.parametrize(
    "scales, shape",
    [
        ([1, 1, 2, 3], ("N", 3, "H*2", "W*3")),
        ([1, 2, 0.5, 0.25], ("N", 6, "H/2", "W/4")),
        ([1, 1, 1.5, 0.3], ("N", 3, None, None)),
    ],
)
def test_sizes_by_name_of_resize(scales, shape):
    g = OnnxBuilder("g")
    x = Value("x", F32, ("N", 3, "H", "W"))
    assert g.Resize(x, None, np.array(scales, np.float32)).shape == shape
    if scales[1] == 1:
        inner = np.array(scales[2:], np.float32)
        assert g.Resize(x, None, inner, axes=[2, 3]).shape == shape


@pytest.mark.parametrize(("shape", "expected", "allowzero", "told"), [
    ((2, 3, 4), (0, -1), False, (2, 12)), ((0, 3), (0, 3), True, (0, 3)),
    (("N", 3, 4), (-1, 12), False, ("N", 12)), ((2, "N"), (-1, "N"), False, (2, "N")),
    (("N", 4), (-1, 8), False, ("(N*4)/8", 8)), ((0, 4), (-1, 0), False, (0, 4)),
    ((2, 3), (None, -1), False, (None, None)), ((2, 3), (-1, 0), True, (None, 0)),
])  # fmt: skip
def test_what_a_reshape_comes_to(shape, expected, allowzero, told):
    """0 copies a size, or is one; -1 is what is left over, sizes by name cancelled."""
    assert infer_reshape(shape, expected, allowzero) == told


@pytest.mark.parametrize("one_sided", [0, 1])
@pytest.mark.parametrize("samples", [50, "T"])
def test_frames_of_a_fourier_transform(samples, one_sided):
    """As NumPy has them: of 16 samples, 6 apart."""
    g = OnnxBuilder("g")
    x, step = g.input("x", F32, ("N", samples, 1)), g.const(6, I64)
    window, length = g.const(np.hanning(16).astype(np.float32)), g.const(16, I64)
    spectrum = (np.fft.rfft if one_sided else np.fft.fft)(np.zeros(16))
    frames = np.lib.stride_tricks.sliding_window_view(np.zeros(50), 16)[::6]
    for operands in ((x, step, window), (x, step, None, length)):
        batch, count, *rest = refine_stft(operands, {"onesided": one_sided}, None)
        assert (batch, *rest) == ("N", len(spectrum), 2)
        assert eval(str(count).replace("/", "//"), {"T": 50}) == len(frames)  # it is ours
    unknown = refine_stft((x, g.input("s", I64, ()), window), {}, None)
    assert unknown == ("N", None, None, 2)
    assert refine_stft((x, step, window), {}, ("A", 1, 1, 2)) == ("A", 1, 1, 2)


@pytest.mark.parametrize(("limit", "shape"), [("N", ("N",)), (None, (None,))])
def test_a_range_over_a_size_is_as_long(limit, shape):
    g = OnnxBuilder("g")
    n = g.Shape(g.input("x", F32, (limit,)), start=0, end=1)
    assert g.Range(0, g.Squeeze(n, [0]), 1).shape == shape
    assert g.Range(1, g.Squeeze(n, [0]), 1).shape == (None,)


@pytest.mark.parametrize(("axis", "shape"), [(0, ("N", 4)), (-1, (3, "N"))])
def test_so_many_largest_as_a_size(axis, shape):
    g = OnnxBuilder("g")
    n = g.Shape(g.input("n", F32, ("N",)))
    values, places = g.TopK(g.input("x", F32, (3, 4)), n, axis=axis, outputs=2)
    assert values.shape == places.shape or places.shape == (None, None)
    assert values.shape == shape
