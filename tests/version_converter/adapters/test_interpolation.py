"""Values between elements, at opsets without GridSample or with other modes of it."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from testing.node_cases import results
from testing.version_converter.single import STATIC, UNKNOWN, Single

RNG = np.random.default_rng(5)
MODES, PADDINGS = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")


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
