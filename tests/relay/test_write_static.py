"""Detection in forms of static shape, which TVM's graph executor compiles; beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.passes import tidy
from testing.mxnet.cases import _graph, _symbol_json, case
from testing.onnx_live import ir_of, model_of, run_model
from testing.relay.tvm_live import run_static

RNG = np.random.default_rng(5)
REGIONS = np.float32([
    [0, 0, 5, 6], [1, 1, 7, 7.5], [2, 2, 2.5, 3], [3, 3, 3, 3], [5, 5, 2, 1], [-3, -4, 4, 4],
    [2, 2, 30, 40], [7, 6, 9, 9], [-9, -9, -5, -5], [-50, 0, 60, 8],
])  # fmt: skip


def run_tvm(graph, feeds):
    """What TVM's graph executor computes."""
    new_graph = from_ir(tidy(graph))
    module, weights = to_module(new_graph)
    inputs = {v.name: feeds[v.name] for v in new_graph.inputs}
    return run_static("json", to_json(module), inputs | {n: t.load() for n, t in weights.items()})


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize(("scale", "mode"), [(1.0, "half_pixel"), (0.5, "output_half_pixel")])
@pytest.mark.parametrize("pooling", ["avg", "max"])
def test_regions_of_any_size(images, scale, mode, pooling):
    """Of the channels one has elements around 0, one below and one above it."""
    count, around = len(REGIONS), np.float32([0, -4, 4])[:, None, None]
    body = (
        f"g (float[{images},3,8,9] x, float[{count},4] r, int64[{count}] b) => (y) {{"
        f'y = RoiAlign<mode = "{pooling}", sampling_ratio = 0, output_height = 3, output_width = 2,'
        f'spatial_scale = {scale}, coordinate_transformation_mode = "{mode}">(x, r, b) }}'
    )
    feeds = {
        "x": RNG.normal(size=(images, 3, 8, 9)).astype("float32") + around, "r": REGIONS,
        "b": RNG.integers(0, images, count),
    }  # fmt: skip
    (got,) = run_tvm(ir_of(body, 16), feeds)
    (expected,) = run_model(model_of(body, 16, 8), feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def boxes(*shape):
    """Corners, the left upper one first."""
    first = RNG.uniform(0, 0.7, (*shape, 2))
    return np.concatenate([first, first + RNG.uniform(0.05, 0.4, (*shape, 2))], -1)


def rows(*shape, classes=3):
    """Rows of a class, a score and a box."""
    ids, scores = RNG.integers(0, classes, (*shape, 1)), RNG.uniform(0, 1, (*shape, 1))
    return np.concatenate([ids, scores, boxes(*shape)], -1).astype("float32")


def draw(*shape, first=0):
    """Rows whose boxes lie on a grid and whose scores, some below 0, are often the same."""
    ids, scores = RNG.integers(first, first + 3, (*shape, 1)), RNG.integers(-2, 6, (*shape, 1)) / 4
    corner, size = RNG.integers(0, 4, (2, *shape, 2))
    return np.concatenate([ids, scores, corner, corner + size], -1).astype("float32")


def softmax(*shape):
    scores = RNG.uniform(0, 1, shape).astype("float32")
    return scores / scores.sum(1, keepdims=True)


@pytest.mark.parametrize(
    "one",
    [
        case("_contrib_box_nms", rows(20), overlap_thresh=0.4),
        case("_contrib_box_nms", rows(2, 12), overlap_thresh=0.2, topk=7, valid_thresh=0.1),
        case("_contrib_box_nms", rows(3, 9), id_index=0, force_suppress=True, background_id=1),
        case("_contrib_box_nms", rows(1, 15) + np.float32(9), valid_thresh=99),  # none is kept
        case("_contrib_box_nms", rows(2, 12), id_index=0, background_id=1),
        case("_contrib_box_nms", draw(3, 25), id_index=0, overlap_thresh=0.25, topk=20,
             valid_thresh=-0.6),
        case("_contrib_box_nms", draw(2, 2, 25), id_index=0, overlap_thresh=0.0),
        case("_contrib_box_nms", draw(2, 25, first=-2), id_index=0),  # classes below 0
        case("_contrib_box_nms", draw(2, 25), id_index=0, overlap_thresh=0.25, in_format="center"),
        case("_contrib_MultiBoxDetection", softmax(2, 3, 8),
             RNG.normal(0, 0.1, (2, 32)).astype("float32"),
             boxes(1, 8).astype("float32")),
    ],
    ids=str,
)  # fmt: skip
def test_suppression_that_marks_boxes(one):
    expected = one.oracle(one)
    feeds = {f"x{i}": a for i, a in enumerate(one.inputs)}
    got = run_tvm(_graph(_symbol_json(one, len(expected)), one, "static"), feeds)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
