"""Boxes that are suppressed and regions of images, in the consumers of ONNX files."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from testing.consumers.runtimes import run
from testing.onnx_live import model_of
from tests.consumers.checks import check_form, refusals

CONSUMERS = ["mnn", "onnxruntime", "openvino", "tract"]
BOXES = "(float[2,20,4] x, float[2,3,20] s) => (int64[M,3] y)"
NAMED = "(float[B,N,4] x, float[B,C,N] s) => (int64[M,3] y)"


def draw_boxes(seed: int) -> dict[str, np.ndarray]:
    """Boxes by any two corners or with sides below 0, equal scores and overlaps at the limit."""
    draws = np.random.default_rng(seed)
    return {
        "x": np.round(draws.uniform(-1, 8, (2, 20, 4))).astype(np.float32),
        "s": np.round(draws.standard_normal((2, 3, 20)), 1).astype(np.float32),
        "most": np.array([12]), "overlap": np.float32([0.5]), "least": np.float32([0.2]),
    }  # fmt: skip


@pytest.mark.parametrize("operands", [3, 4, 5])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_suppression(consumer, seed, center, operands, tmp_path):
    held = draw_boxes(seed)
    names = list(held)[:operands]
    body = f"y = NonMaxSuppression<center_point_box = {center}>({', '.join(names)})"
    check_form(BOXES, body, {n: held[n] for n in names}, consumer, tmp_path)


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "mnn"])
def test_suppression_of_sizes_by_name(consumer, tmp_path):
    body = "y = NonMaxSuppression(x, s, most, overlap, least)"
    check_form(NAMED, body, draw_boxes(2), consumer, tmp_path)


NONE = [
    "y = NonMaxSuppression(x, s)",
    "m = Constant<value_ints = [0]>() y = NonMaxSuppression(x, s, m)",
]


@pytest.mark.parametrize("body", NONE)
@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "mnn"])
def test_no_box_for_a_class(consumer, body, tmp_path):
    onnx.save(model_of(f"g {BOXES} {{ {body} }}", 17, 8), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile=consumer)
    feeds = {n: v for n, v in draw_boxes(0).items() if n in "xs"}
    (y,) = run(consumer, str(tmp_path / "b.onnx"), feeds)
    assert y.shape == (0, 3) and y.dtype == np.int64


@pytest.mark.parametrize("body", NONE)
def test_mnn_has_no_results_without_elements(body, tmp_path):
    reason = "MNN has no results without elements, as those of 0 boxes for a class"
    assert refusals(BOXES, body, "mnn", tmp_path) == [reason]


REGIONS = "(float[2,3,9,8] x, float[5,4] r, int64[5] b) => (float[5,3,2,3] y)"


def align(mode: str, ratio: int, pixels: str) -> str:
    form = f'mode = "{mode}", sampling_ratio = {ratio}, output_height = 2, output_width = 3'
    form += f', coordinate_transformation_mode = "{pixels}", spatial_scale = 0.5'
    return f"y = RoiAlign<{form}>(x, r, b)"


@pytest.mark.parametrize("mode, ratio", [("avg", 0), ("avg", 2), ("max", 1)])
@pytest.mark.parametrize("pixels", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_regions(consumer, pixels, mode, ratio, tmp_path):
    corners = np.random.default_rng(0).uniform(-3, 6, (5, 2))
    sizes = np.random.default_rng(1).uniform(0, 10, (5, 2))
    regions = np.concatenate([corners, corners + sizes], 1).astype(np.float32)
    held = {"r": 2 * regions, "b": np.array([0, 1, 1, 0, 1])}
    body = align(mode, ratio, pixels)
    if consumer == "tract" and not ratio:
        reason = (
            "tract has no Expand with a size that depends on data. Give numbers (static=, inputs=)"
        )
        assert refusals(REGIONS, body, consumer, tmp_path) == [reason]
    else:
        check_form(REGIONS, body, held, consumer, tmp_path)
