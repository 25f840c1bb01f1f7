"""Resize and Upsample at opsets that lack them or some of their attributes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import resize
from testing.node_cases import results
from testing.version_converter.old import Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import BY_NAME, STATIC, UNKNOWN, Single

RNG = np.random.default_rng(5)
TWICE = np.float32([1, 1, 2, 2])


@pytest.mark.parametrize(("version", "op"), rules_of(resize))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


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


@pytest.mark.parametrize("case", [
    Old("Upsample", 1, (X,), {"height_scale": 2.0, "width_scale": 3.0},
        X.repeat(2, 2).repeat(3, 3)),
    Old("Upsample", 7, (X,), {"scales": [1.0, 1.0, 1.5, 2.0]}, None),
    Old("Upsample", 7, (X,), {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, None),
    Old("Upsample", 9, (X, TWICE), {"mode": "linear"}, None),
    Old("Resize", 10, (X, TWICE), {"mode": "nearest"}, None),
    Old("Resize", 10, (X, np.float32([1, 1, 2, 0.6])), {"mode": "linear"}, None),
    Old("Resize", 11, (X, np.float32([]), TWICE),
        {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}, None),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
