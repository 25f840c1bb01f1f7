"""Operators of images at opsets without them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import vision
from testing.onnx_live import ir_of, model_of, run, run_model
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import BY_NAME, STATIC, Single

X = np.random.default_rng(0).permutation(2 * 3 * 7 * 9).astype(np.float32).reshape(2, 3, 7, 9)
ints = np.int64
ROWS = np.float32([[1, np.inf, 2, -np.inf], [np.nan, 1, 2, 3], [-np.inf, 1, np.inf, 5]])
FORMS = {  # the kernel, the strides and the pads of what MaxUnpool puts back
    "odd sizes": ([2, 2], [2, 2], [0, 0, 0, 0]),
    "overlapping windows": ([3, 2], [2, 1], [0, 0, 0, 0]),
    "padding": ([3, 3], [2, 2], [1, 1, 1, 1]),
}


@pytest.mark.parametrize(("version", "op"), rules_of(vision))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("held", [(), (1, 2)], ids=["computed", "constant"])
@pytest.mark.parametrize("attrs", [
    {}, {"pads": [0, 1, 0, 1]}, {"strides": [2, 1]}, {"dilations": [2, 1]},
], ids=str)  # fmt: skip
def test_patches_put_back(attrs: dict[str, list[int]], held: tuple[int, ...]) -> None:
    """Col2Im, of a patch two high and three wide."""
    size, block = np.array([6, 5]), np.array([2, 3])
    pads = np.array(attrs.get("pads", [0] * 4)).reshape(2, 2).sum(0)
    reach = (block - 1) * attrs.get("dilations", [1, 1]) + 1
    count = (size + pads - reach) // attrs.get("strides", [1, 1]) + 1
    columns = np.random.default_rng(11).standard_normal((2, 12, count.prod()), np.float32)
    case = Single("Col2Im", (columns, ints(size), ints(block)), attrs, held)
    case.check((7, 17), (BY_NAME, STATIC))


def test_patches_of_infinities() -> None:
    """What is not finite stays where its patch is put."""
    columns = ROWS.T.reshape(1, 12, 1)
    columns = np.concatenate([columns, columns + 1], axis=2)
    Single("Col2Im", (columns, ints([3, 2]), ints([2, 2])), {}, (1, 2)).check((11, 17), [STATIC])


@pytest.mark.parametrize("opset", [8, 17])
@pytest.mark.parametrize("form", FORMS)
def test_places_of_a_pool(form: str, opset: int) -> None:
    """What a pool took stands where the pool found it: places count in ``output_shape``."""
    kernel, strides, pads = FORMS[form]
    window = f"<kernel_shape = {kernel}, strides = {strides}, pads = {pads}>"
    body = (
        "g (float[2,3,7,9] x) => (y) <int64[4] s = {2, 3, 7, 9}> "
        f"{{ m, i = MaxPool {window} (x) \n y = MaxUnpool {window} (m, i, s) }}"
    )
    (expected,) = run_model(model_of(body, 11, 8), {"x": X})
    kept = expected != 0
    np.testing.assert_array_equal(expected[kept], X[kept])
    np.testing.assert_array_equal(run(ir_of(body, 11), {"x": X}, opset)[0], expected)


@pytest.mark.parametrize("opset", [8, 17])
def test_a_shape_that_is_computed(opset: int) -> None:
    body = (
        "g (float[N,1,2,2] x, int64[N,1,2,2] i, int64[4] s) => (y) "
        "{ y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i, s) }"
    )
    places = np.array([0, 7, 13, 24]).reshape(1, 1, 2, 2)
    feeds = {"x": X[:1, :1, :2, :2], "i": places, "s": np.array([1, 1, 5, 5])}
    (expected,) = run_model(model_of(body, 11, 8), feeds)
    np.testing.assert_array_equal(run(ir_of(body, 11), feeds, opset)[0], expected)
