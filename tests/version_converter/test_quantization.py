"""What QuantizeLinear says of floats only, where it makes integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.version_converter.single import STATIC, Single

RNG = np.random.default_rng(17)


@pytest.mark.parametrize(
    ("dtype", "opset", "targets"),
    [("uint8", 19, (13, 17)), ("int8", 21, (13, 17)), ("int16", 21, (21,)), ("uint16", 23, (21,))],
)
def test_integers_saturate_whatever_the_attribute_says(
    dtype: str, opset: int, targets: tuple[int, ...]
) -> None:  # fmt: skip
    x = (RNG.standard_normal((2, 3)) * 1e6).astype(np.float32)
    operands = (x, np.float32([0.5, 2, 1]), np.array([1, 2, 3], dtype))
    case = Single("QuantizeLinear", operands, {"axis": 1, "saturate": 0}, (1, 2), opset=opset)
    case.check(targets, [STATIC])
