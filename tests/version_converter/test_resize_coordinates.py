"""Values between elements, at opsets without GridSample or with another Resize."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from testing.node_cases import results
from tests.version_converter.single import BY_NAME, STATIC, UNKNOWN, Single

RNG = np.random.default_rng(5)
MODES, PADDINGS = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
               "half_pixel_symmetric", "tf_crop_and_resize")  # fmt: skip
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("space", [(4, 6), (1, 3), (3, 4, 5), (5,)], ids=str)
def test_grid(space: tuple[int, ...], mode: str, padding: str, align: int) -> None:
    """As ONNX Runtime has it, onnx.reference where that has not."""
    if align and space in ((1, 3), (3, 4, 5)):
        pytest.skip("what borders are to one axis they are to each")
    if len(space) != 2 and (mode, padding) == ("cubic", "border"):
        pytest.skip("onnx.reference holds the place: test_grid_of_one_layer tells what is meant")
    x = RNG.standard_normal((2, 2, *space)).astype(np.float32)
    grid = RNG.uniform(-2.2, 2.2, (2, *[3] * (len(space) - 1), 7, len(space))).astype(np.float32)
    how = {"mode": mode, "padding_mode": padding, "align_corners": align}
    Single("GridSample", (x, grid), how).check([15] if len(space) == 2 else [19], [UNKNOWN])


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
def test_grid_of_one_layer(padding: str, align: int) -> None:
    """A volume of one layer, sampled in it, is an image: cubic borders are the same for both."""
    x = RNG.standard_normal((1, 2, 4, 6)).astype(np.float32)
    flat = RNG.uniform(-1.7, 1.7, (1, 3, 7, 2)).astype(np.float32)
    grid = np.concatenate([flat, np.zeros((1, 3, 7, 1), np.float32)], 3)
    how = {"mode": "cubic", "padding_mode": padding, "align_corners": align}
    ((_, expected), *_) = results(Single("GridSample", (x, flat), how).model(STATIC), [x, flat])
    volume, layer = x[:, :, None], grid[:, None]
    ir = raise_to_ir(decode(Single("GridSample", (volume, layer), how).model(STATIC)))
    ((_, got), *_) = results(to_proto(lower_to(ir, 19)), [volume, layer])
    np.testing.assert_allclose(got[0][:, :, 0], expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", PADDINGS)
def test_places_that_are_no_numbers_end_no_run(padding: str) -> None:
    """As those of points behind a camera, which are divided by zero: the others are computed."""
    x = RNG.standard_normal((1, 2, 4, 6)).astype(np.float32)
    grid = RNG.uniform(-1, 1, (1, 3, 7, 2)).astype(np.float32)
    grid[0, 0, 0], grid[0, 1, 2] = (np.nan, 0), (np.inf, -np.inf)
    how = {"mode": "linear", "padding_mode": padding, "align_corners": 0}
    model = Single("GridSample", (x, grid), how).model(STATIC)
    ((_, expected), *_) = results(model, [x, grid])
    ((_, got), *_) = results(to_proto(lower_to(raise_to_ir(decode(model)), 15)), [x, grid])
    is_number = np.isfinite(grid).all(axis=-1)
    for a, b in zip(got[0][0], expected[0][0], strict=True):
        np.testing.assert_allclose(a[is_number[0]], b[is_number[0]], rtol=1e-4, atol=1e-5)


def resizes() -> list[dict[str, Any]]:
    options = []
    for mode, how, smooth, outside in product(MODES, COORDINATES, (0, 1), (0, 1)):
        odd = (mode == "nearest" and smooth) or (outside and mode != "cubic")
        if odd or (smooth and how not in COORDINATES[:3:2]):
            continue
        options += [
            {"mode": mode, "coordinate_transformation_mode": how, "antialias": smooth,
             "exclude_outside": outside, "nearest_mode": nearest, "extrapolation_value": 9.5}
            for nearest in (NEAREST if mode == "nearest" and how == "half_pixel" else NEAREST[:1])
        ]  # fmt: skip
    return options


TARGETS = [(np.float32([1, 1, 0.6, 1.5]), None), (None, np.int64([1, 2, 3, 11])),
           (None, np.int64([1, 2, 1, 7]))]  # fmt: skip


RESIZES = resizes()


@pytest.mark.parametrize("attrs", RESIZES, ids=lambda a: "-".join(map(str, a.values())))
def test_resize(attrs: dict[str, Any]) -> None:
    """Every mode, by scales and to sizes that are computed, and in turn to those held constant."""
    turn = RESIZES.index(attrs)
    x = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    cropped = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    region = np.float32([0, 0, 0.1, -0.3, 1, 1, 0.8, 1.2]) if cropped else None
    for target in (TARGETS[0], TARGETS[1 + turn % 2]):
        Single("Resize", (x, region, *target), attrs, tolerance=1e-4).check((7,), [BY_NAME])
    held = (x, region, *TARGETS[turn % 3])
    Single("Resize", held, attrs, (1, 2, 3), tolerance=1e-4).check((17,), [STATIC])


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_reads_no_region_unless_it_crops(mode: str, size: int) -> None:
    x = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    region = RNG.random(size, np.float32)
    operands = (x, region, np.float32([1, 1, 2, 1.5]))
    case = Single("Resize", operands, {"mode": mode}, (1, 2), tolerance=1e-4)
    case.check((7, 17), [STATIC])


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_resize_axes(policy: str) -> None:
    x = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    attrs = {"mode": "linear", "axes": [3, 2], "keep_aspect_ratio_policy": policy}
    Single("Resize", (x, None, None, np.int64([9, 8])), attrs).check((7, 17), [BY_NAME])


@pytest.mark.parametrize("scales", [[1, 1, 0.6, 1.5], [1, 1, 0.5, 0.4], [1, 1, 2, 1]], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_opset_10(scales: list[float], mode: str) -> None:
    """Read as ONNX Runtime runs it, whether an axis grows or shrinks."""
    x = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    case = Single("Resize", (x, np.float32(scales)), {"mode": mode}, (1,), opset=10)
    case.check((10, 13), [STATIC])


@pytest.mark.parametrize("axes", [[-1, -2], [-2, -1], [-3, 3]], ids=str)
@pytest.mark.parametrize("how", [{}, {"keep_aspect_ratio_policy": "not_smaller"}], ids=str)
def test_resize_counts_axes_from_the_back(axes: list[int], how: dict[str, str]) -> None:
    """As onnx.reference has it of the same axes from the front; ONNX Runtime keeps the size."""
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    operands, front = (x, None, None, np.int64([7, 6])), [a % 4 for a in axes]
    from_front = Single("Resize", operands, {**how, "axes": front}, (3,)).model(STATIC)
    *_, (_, expected) = results(from_front, [x])
    for held in ((), (3,)):
        layer = Single("Resize", operands, {**how, "axes": axes}, held)
        ir = raise_to_ir(decode(layer.model(BY_NAME)))
        for opset in (7, 12, 17, 26):
            ((_, got), *_) = results(to_proto(lower_to(ir, opset)), layer.feeds)
            np.testing.assert_allclose(got[0], expected[0], rtol=1e-5, err_msg=f"at {opset}")


def test_resize_to_sizes_of_unknown_number() -> None:
    """A list of sizes whose length has a name has as many as there are axes to resize."""
    x = RNG.standard_normal((1, 2, 5, 6)).astype(np.float32)
    for sizes, how in (([1, 2, 3, 11], {}), ([9, 4], {"axes": [3, 2]})):
        for mode in ("nearest", "linear"):
            case = Single("Resize", (x, None, None, np.int64(sizes)), {"mode": mode, **how})
            case.check((7, 12, 17, 26), [UNKNOWN])
    scales = np.float32([1, 1, 0.6, 1.5])
    Single("Resize", (x, None, scales)).check((7, 12, 26), [UNKNOWN])
