"""RoiAlign of regions smaller than a pixel, which TVM's importer takes as one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import serde
from serde.errors import Unconvertible
from testing.onnx_live import run_model
from testing.relax.relax_live import run

REGIONS = [[1.2, 0.4, 3.9, 5.4], [4.3, 0.4, 4.7, 0.6], [3.46, 1.7, 3.49, 2.9]]


def save(folder, form):
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[2,2,4,5] x, float[3,4] r, int64[3] b) => (float[3,2,2,3] y) {{
        y = RoiAlign<spatial_scale = 0.5, output_height = 2, output_width = 3, {form}>(x, r, b)
    }}""")
    onnx.save(model, folder / "a.onnx")
    return model


@pytest.mark.parametrize(
    "form",
    [
        "sampling_ratio = 2",
        "sampling_ratio = 3, mode = \"max\"",
        "sampling_ratio = 0, coordinate_transformation_mode = \"output_half_pixel\"",
        "sampling_ratio = 2, coordinate_transformation_mode = \"output_half_pixel\"",
    ],
)  # fmt: skip
def test_small_regions(form, tmp_path):
    model = save(tmp_path, form)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="relax")
    feeds = {
        "x": np.random.default_rng(0).normal(size=(2, 2, 4, 5)).astype(np.float32),
        "r": np.float32(REGIONS), "b": np.array([0, 1, 1]),
    }  # fmt: skip
    if "max" in form:
        (expected,) = run_model(onnx.load(tmp_path / "b.onnx"), feeds)  # the runtime's own differs
    else:
        (expected,) = run_model(model, feeds)
    (got,) = run(str(tmp_path / "b.onnx"), feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_samples_that_depend_on_computed_regions_are_refused(tmp_path):
    save(tmp_path, "sampling_ratio = 0")
    with pytest.raises(Unconvertible, match="depends on computed regions. Give sampling_ratio"):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="relax")
