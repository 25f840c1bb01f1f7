"""Detectors: suppression, regions and deformed windows, written as operators of MXNet."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import model_of, run_model

RANDOM = np.random.default_rng(0)


def rows(batch, count):
    """Class, score and box of each row."""
    low = RANDOM.uniform(0, 0.6, (batch, count, 2))
    corners = np.concatenate([low, low + RANDOM.uniform(0.1, 0.4, low.shape)], 2)
    kinds = RANDOM.integers(0, 3, (batch, count, 1))
    return np.concatenate([kinds, RANDOM.uniform(0, 1, kinds.shape), corners], 2).astype("float32")


def suppressing(path, topk):
    """A file that suppresses boxes class by class."""
    mx = live_mxnet()
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("rows"), overlap_thresh=0.3, valid_thresh=0.2, topk=topk, id_index=0
    )
    symbol.save(str(path))
    return path


@pytest.mark.parametrize("sizes, topk", [((2, 20, 6), 12), (("N", 20, 6), 12), (("N", "K", 6), -1)])
def test_it_comes_back(sizes, topk, tmp_path):
    original = suppressing(tmp_path / "nms-symbol.json", topk)
    symbol = from_ir(serde.load(original, inputs={"rows": sizes}))
    assert "_contrib_box_nms" in {n.op for n in symbol.nodes}
    assert not any(True for n in symbol.nodes for _ in n.graphs())
    text, arrays = encode_live(symbol)
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    nothing = rows(2, 20) * np.float32([1, 0, 1, 1, 1, 1])
    other = [] if sizes[0] == 2 else [rows(3, 20)] if sizes[1] == 20 else [rows(3, 30)]
    for boxes in (rows(2, 20), nothing, *other):
        (a,), (b,) = (
            run_symbol(t, h, {"rows": boxes}) for t, h in ((text, held), (original.read_text(), {}))
        )
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert (b[..., 1] > 0).sum() > 10 or other == []


def agree(body, **feeds):
    text, arrays = encode_live(from_ir(raise_to_ir(decode(model_of(body)))))
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    actual, expected = run_symbol(text, held, feeds), run_model(model_of(body), feeds)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


REGIONS = """
g (float[n,3,8,9] x, float[m,4] rois, int64[m] image) => (float[m,3,2,3] y)
{{
  y = RoiAlign <mode = "{mode}", output_height = 2, output_width = 3, sampling_ratio = {ratio},
    spatial_scale = 0.5, coordinate_transformation_mode = "{form}"> (x, rois, image)
}}"""
DEFORMED = """
g (float[n,4,6,7] x, float[{out},2,3,2] w, float[n,{offsets},{sizes}] offset{mask})
  => (float[n,{out},{sizes}] y)
{{ y = DeformConv <group = 2, offset_group = {groups}, {frame}> (x, w, offset, {more}) }}"""


@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode, ratio", [("avg", 0), ("avg", 2), ("max", 2)])
def test_regions(mode, ratio, form):
    low = RANDOM.uniform(-2, 10, (5, 2))
    rois = np.concatenate([low, low + RANDOM.uniform(0.2, 12, low.shape)], 1).astype("float32")
    x = RANDOM.standard_normal((2, 3, 8, 9)).astype("float32")
    body = REGIONS.format(mode=mode, ratio=ratio, form=form)
    agree(body, x=x, rois=rois, image=np.array([0, 1, 1, 0, 1]))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("out, groups", [(4, 1), (4, 2), (2, 4)])
@pytest.mark.parametrize(
    "frame, sizes",
    [("pads = [1, 0, 1, 0]", (6, 6)), ("pads = [0, 1, 2, 0], strides = [2, 1]", (3, 7))],
)
def test_deformed_windows(frame, sizes, out, groups, masked):
    draw = RANDOM.standard_normal
    feeds = {
        "x": draw((3, 4, 6, 7)), "w": draw((out, 2, 3, 2)), "offset": draw((3, 12 * groups, *sizes))
    }  # fmt: skip
    if masked:
        feeds["mask"] = RANDOM.uniform(0, 1, (3, 6 * groups, *sizes))
    mask = f", float[n,{6 * groups},{sizes[0]},{sizes[1]}] mask" if masked else ""
    body = DEFORMED.format(
        out=out, offsets=12 * groups, groups=groups, frame=frame, mask=mask,
        sizes=f"{sizes[0]},{sizes[1]}", more=", mask" if masked else "",
    )  # fmt: skip
    agree(body, **{n: v.astype("float32") for n, v in feeds.items()})
