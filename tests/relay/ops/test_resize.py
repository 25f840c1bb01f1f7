"""Resizing of integers, and of what is quantized afterwards: equal to live TVM's to the last step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from testing.onnx_live import run_model
from testing.relay.tvm_live import run

RESIZE = (
    'image.resize2d({x}, size=[{size}], roi=[0f, 0f, 0f, 0f], layout="{layout}", '
    'method="{method}", coordinate_transformation_mode="{mode}", cubic_alpha=-0.5f)'
)
HEAD = '#[version = "0.0.5"]\ndef @main(%x: Tensor[({shape}), {dtype}]) {{ {body} }}\n'
BODIES = {
    "integers": "{resize}",
    "a region": (
        '%0 = qnn.dequantize(%x, {scale}f, 3, out_dtype="float32"); %1 = {resize}; '
        'qnn.quantize(%1, {scale}f, 3, out_dtype="{dtype}")'
    ),
}
MODES = "half_pixel align_corners asymmetric pytorch_half_pixel".split()
SIZES = [((1, 3, 56, 56), (4, 4)), ((2, 2, 7, 9), (14, 18)), ((1, 2, 7, 9), (10, 13))]


def check(
    form: str, shape: tuple[int, ...], size: tuple[int, int], folder: Path, *, mode: str,
    layout: str = "NCHW", dtype: str = "int8", method: str = "linear", scale: float = 0.3,
) -> None:  # fmt: skip
    """ONNX Runtime computes the integers that TVM computes."""
    x = "%x" if form == "integers" else "%0"
    about = {"layout": layout, "method": method, "mode": mode}
    resize = RESIZE.format(x=x, size=", ".join(map(str, size)), **about)
    body = BODIES[form].format(resize=resize, dtype=dtype, scale=scale)
    text = HEAD.format(shape=", ".join(map(str, shape)), dtype=dtype, body=body)
    (folder / "m.relay").write_text(text)
    serde.convert(folder / "m.relay", folder / "m.onnx")
    ends = np.iinfo(dtype)
    draws = np.random.default_rng(0)
    feeds = {"x": draws.integers(ends.min, ends.max, shape, dtype, endpoint=True)}
    (got,) = run_model(onnx.load(folder / "m.onnx"), feeds)
    np.testing.assert_array_equal(got, run("text", text, feeds)[0])


@pytest.mark.parametrize("shape, size", SIZES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", BODIES)
def test_linear_resizing(form, mode, shape, size, tmp_path):
    check(form, shape, size, tmp_path, mode=mode)


@pytest.mark.parametrize("form", BODIES)
def test_channels_last(form, tmp_path):
    about = {"mode": "half_pixel", "layout": "NHWC", "dtype": "uint8", "scale": 0.017}
    check(form, (1, 9, 8, 3), (18, 4), tmp_path, **about)


def test_cubic_curves_stay_within_the_range_of_bytes(tmp_path):
    """TVM's numbers beyond the range depend on how its loops are vectorized."""
    x = np.random.default_rng(0).choice([-128, 127], (1, 1, 6, 8)).astype(np.int8)
    got = []
    for dtype in ("int8", "float32"):
        about = {"layout": "NCHW", "method": "cubic", "mode": "half_pixel"}
        body = RESIZE.format(x="%x", size="9, 11", **about)
        (tmp_path / "m.relay").write_text(HEAD.format(shape="1, 1, 6, 8", dtype=dtype, body=body))
        serde.convert(tmp_path / "m.relay", tmp_path / f"{dtype}.onnx")
        got += run_model(onnx.load(tmp_path / f"{dtype}.onnx"), {"x": x.astype(dtype)})
    assert got[1].min() < -129 and got[1].max() > 128
    np.testing.assert_array_equal(got[0], np.clip(got[1], -128, 127).astype(np.int8))


def test_regions_in_real_numbers_keep_the_resize(tmp_path):
    resize = RESIZE.format(x="%0", size="14, 18", layout="NCHW", method="linear", mode=MODES[0])
    body = BODIES["a region"].format(resize=resize, dtype="int8", scale=0.3)
    (tmp_path / "m.relay").write_text(HEAD.format(shape="1, 2, 7, 9", dtype="int8", body=body))
    serde.convert(tmp_path / "m.relay", tmp_path / "m.onnx", integers="qdq")
    ops = [n.op_type for n in onnx.load(tmp_path / "m.onnx").graph.node]
    assert ops == ["DequantizeLinear", "Resize", "QuantizeLinear"]
