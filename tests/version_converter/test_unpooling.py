"""MaxUnpool below its first opset: places count in ``output_shape``, as ONNX Runtime has it."""

from __future__ import annotations

import numpy as np
import pytest

from testing.onnx_live import ir_of, model_of, run, run_model

X = np.random.default_rng(0).permutation(2 * 3 * 7 * 9).astype(np.float32).reshape(2, 3, 7, 9)
FORMS = {  # the kernel, the strides and the pads
    "odd sizes": ([2, 2], [2, 2], [0, 0, 0, 0]),
    "overlapping windows": ([3, 2], [2, 1], [0, 0, 0, 0]),
    "padding": ([3, 3], [2, 2], [1, 1, 1, 1]),
}


@pytest.mark.parametrize("opset", [8, 17])
@pytest.mark.parametrize("form", FORMS)
def test_places_of_a_pool(form: str, opset: int) -> None:
    """What a pool took stands where the pool found it."""
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
