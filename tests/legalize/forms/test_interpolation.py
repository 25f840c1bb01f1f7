"""Which resizing PyTorch computes alike: its places against those of onnx's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from serde.ir.graph import DType, Value
from serde.legalize.forms.interpolation import interpolates, looks_at_same
from serde.version_converter.adapters.resize_coordinates import Sampling

LINEAR = Sampling("linear", "half_pixel", "floor", -0.75, False, 0.0, False)
NEAREST = LINEAR._replace(mode="nearest", coordinates="asymmetric")
X = Value("x", DType.FLOAT32, (1, 2, 4, 6))
TWICE = [(1, 1.0), (2, 1.0), (8, 2.0), (12, 2.0)]
ODD = [(1, 1.0), (2, 1.0), (9, 2.25), (7, 1.2)]


@pytest.mark.parametrize(("n", "m"), [(4, 8), (4, 6), (4, 5), (8, 2), (3, 3), (6, 4), (9, 2)])
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "align_corners"])
@pytest.mark.parametrize("by_size", [True, False])
def test_the_same_elements_are_picked(
    n: int, m: int, rounding: str, coordinates: str, by_size: bool
) -> None:
    """PyTorch rounds the product of a place and a step down, as its documentation says."""
    if not by_size and (m / n) % 0.125:
        return  # a scale that is rounded tells another place
    how = NEAREST._replace(coordinates=coordinates, nearest_mode=rounding)
    x, scale = np.arange(n, dtype=np.float32), m / n
    attrs = {"mode": "nearest", "coordinate_transformation_mode": coordinates}
    operands = ["x", "", "", "s"] if by_size else ["x", "", "s"]
    target = np.int64([m]) if by_size else np.float32([scale])
    node = helper.make_node("Resize", operands, ["y"], nearest_mode=rounding, **attrs)
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n])]
    kind = helper.np_dtype_to_tensor_dtype(target.dtype)
    infos.append(helper.make_tensor_value_info("s", kind, [1]))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([node], "g", infos, [result]),
                              opset_imports=[helper.make_opsetid("", 19)])  # fmt: skip
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x, "s": target})
    places = np.minimum(np.floor(np.arange(len(expected)) * (n / m)), n - 1)
    is_same = bool((expected == x[places.astype(int)]).all())
    assert looks_at_same(n, len(expected), scale, how, by_size) == is_same


@pytest.mark.parametrize(("scale", "is_same"), [(2.0, True), (0.5, True), (3.0, True)])
def test_sizes_by_name_are_tried_on_a_long_axis(scale: float, is_same: bool) -> None:
    assert looks_at_same("N", None, scale, NEAREST, False) == is_same
    half = NEAREST._replace(coordinates="half_pixel", nearest_mode="ceil")
    assert not looks_at_same("N", None, scale, half, False)


@pytest.mark.parametrize(("x", "how", "factors", "expected"), [
    (X, LINEAR, TWICE, True), (X, LINEAR, ODD, True), (X, LINEAR, None, False),
    (Value("x", DType.FLOAT16, X.shape), LINEAR, TWICE, False),
    (Value("x", DType.FLOAT32, (4, 6)), LINEAR, TWICE[2:], False),
    (X, LINEAR, [(1, 1.0), (4, 2.0), *TWICE[2:]], False),
    (X, LINEAR._replace(mode="cubic"), TWICE, True),
    (Value("x", DType.FLOAT32, (1, 2, 4)), LINEAR._replace(mode="cubic"), TWICE[:3], False),
    (X, LINEAR._replace(mode="cubic", cubic_coeff_a=-0.5), TWICE, False),
    (X, LINEAR._replace(exclude_outside=True), TWICE, False),
    (X, LINEAR._replace(coordinates="align_corners"), TWICE, True),
    (X, LINEAR._replace(coordinates="align_corners"), ODD, False),
    (X, LINEAR._replace(coordinates="asymmetric"), TWICE, False),
    (X, NEAREST, TWICE, True), (X, NEAREST._replace(nearest_mode="ceil"), ODD, False),
])  # fmt: skip
def test_forms_that_pytorch_has(x: Value, how: Sampling, factors, expected: bool) -> None:
    assert interpolates(x, how, factors, by_size=False) == expected


@pytest.mark.parametrize(("how", "has_option", "expected"), [
    (LINEAR, True, False), (LINEAR._replace(exclude_outside=True), True, True),
    (LINEAR._replace(exclude_outside=True), False, False),
    (LINEAR._replace(mode="cubic", exclude_outside=True), True, False),
    (LINEAR._replace(mode="cubic", exclude_outside=True, cubic_coeff_a=-0.5), True, True),
])  # fmt: skip
def test_smooth_shrinking_is_that_of_pillow(how: Sampling, has_option, expected: bool) -> None:
    smooth = how._replace(antialias=True)
    assert interpolates(X, smooth, TWICE, False, antialias=has_option) == expected
