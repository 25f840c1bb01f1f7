"""Pools at opsets that lack some of their attributes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import pooling
from testing.version_converter.old import Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import UNKNOWN, Single

POOLED = np.random.default_rng(11).standard_normal((2, 2, 7, 8)).astype(np.float32)
NORMS = np.sqrt(sum(X[:, :, i : 3 + i, j : 4 + j] ** 2 for i in (0, 1) for j in (0, 1)))


@pytest.mark.parametrize(("version", "op"), rules_of(pooling))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]], ids=str)
@pytest.mark.parametrize("padding", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_windows(dilations: list[int], padding: str, ceil_mode: int) -> None:
    """Pools over sizes known and unknown, with the largest's indices in both orders."""
    if dilations != [1, 1] and padding.startswith("SAME"):
        pytest.skip("ONNX Runtime pads by the window without its gaps, to another size than SAME")
    how = {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": padding, "ceil_mode": ceil_mode,
           "dilations": dilations} | ({"pads": [1, 0, 1, 1]} if padding == "NOTSET" else {})  # fmt: skip
    for order, opset in ((0, 9), (1, 7)):
        Single("MaxPool", [POOLED], {**how, "storage_order": order}, outputs=2).check([opset])
    Single("MaxPool", [POOLED], how).check([9], [UNKNOWN])
    for included, opset in ((0, 9), (1, 18)):
        Single("AveragePool", [POOLED], {**how, "count_include_pad": included}).check([opset])
    if dilations == [1, 1] or padding == "NOTSET":  # where ONNX Runtime runs LpPool
        Single("LpPool", [POOLED], {**how, "p": 3}).check([17])


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_places_of_the_least_bytes(kind: type) -> None:
    """Padding is never the largest, whatever is."""
    x = np.full((1, 2, 4), np.iinfo(kind).min, kind)
    Single("MaxPool", (x,), {"kernel_shape": [3], "pads": [2, 2]}, outputs=2).check((8, 11))


@pytest.mark.parametrize("case", [
    Old("MaxPool", 1, (X,), {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, None),
    Old("AveragePool", 1, (X,), {"kernel_shape": [2, 2], "strides": [2, 2]}, None),
    Old("AveragePool", 7, (X,), {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"}, None),
    Old("AveragePool", 10, (X,), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, None),
    Old("LpPool", 1, (X,), {"kernel_shape": [2, 2], "p": 2.0}, NORMS),
    Old("GlobalLpPool", 1, (X,), {"p": 1.0}, np.abs(X).sum((2, 3), keepdims=True)),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()


def test_orders_between_integers_are_refused() -> None:
    Old("LpPool", 1, (X,), {"kernel_shape": [2, 2], "p": 2.5}).check_refused("order 2.5")
