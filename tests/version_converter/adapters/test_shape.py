"""Operators of shapes at opsets that hold their axes in attributes, or lack them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import downgrades, shape
from testing.onnx_live import ir_of, run_model
from testing.version_converter.old import M, Old
from testing.version_converter.old import X as IMAGES
from testing.version_converter.rules import SETTLED, check_rule, count_calls, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

X = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
ints = np.int64
CASES = [
    Single("Squeeze", (X[:, :1], ints([1]))),
    Single("Squeeze", (X[:1, :1], ints([-2, 0]))),
    Single("Squeeze", (X[:0, :1], ints([1]))),
    Single("Unsqueeze", (X, ints([1]))),
    Single("Unsqueeze", (X, ints([-2, 0]))),
    Single("Reshape", (X[:0], ints([3, 0, 5])), {"allowzero": 1}),
    Single("Reshape", (X, ints([3, 2, 4])), {"allowzero": 1}),
]


@pytest.mark.parametrize(("version", "op"), rules_of(shape))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_axes_and_sizes_that_are_computed(case: Single) -> None:
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("start, end", [(0, 1), (1, None), (-2, -1), (-1, None), (1, 3)])
def test_shape_of_named_sizes(start: int, end: int | None) -> None:
    """Node tests have sizes that are known, and their Shape is a constant."""
    cut = f"start = {start}" + ("" if end is None else f", end = {end}")
    text = f"g (float[A,B,C] x) => (int64[n] y) {{ y = Shape<{cut}>(x) }}"
    with count_calls(downgrades[15], "Shape") as calls:
        graph = lower_to(ir_of(text, 15), 14)
    x = np.zeros((2, 3, 4), np.float32)
    expected = list(x.shape)[slice(start, end)]
    for variant in (graph, lower_to(raise_to_ir(graph), SETTLED)):
        assert calls and run_model(to_proto(variant), {"x": x})[0].tolist() == expected


@pytest.mark.parametrize("case", [
    Old("Concat", 1, (IMAGES, IMAGES), {}, np.concatenate([IMAGES, IMAGES], 1)),
    Old("Reshape", 1, (IMAGES,), {"shape": [0, -1]}, IMAGES.reshape(2, -1)),
    Old("Tile", 1, (IMAGES, np.float32(2), np.float32(1)), {}, np.tile(IMAGES, (1, 2, 1, 1)),
        held=(2,)),
    Old("Squeeze", 1, (M[None],), {"axes": [0]}, M),
    Old("Unsqueeze", 1, (M,), {"axes": [0, 2]}, M[None, :, None]),
    Old("DepthToSpace", 1, (IMAGES[:, [0, 1, 2, 0]],), {"blocksize": 2}, None),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()


def test_an_axis_to_tile_that_is_computed_is_refused() -> None:
    case = Old("Tile", 1, (IMAGES, np.float32(2), np.float32(1)))
    case.check_refused("must be constant below opset")
