"""FeatureVectorizer of rows and of matrices, cut off or filled to the widths it is given."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import serde
from serde.errors import Unconvertible
from testing import directions

CASES = [  # shapes, inputdimensions
    ([(1,), (1,)], [1, 1]),
    ([(3,), (2,)], [3, 2]),
    ([(3,), (2,)], [2, 2]),
    ([(3,), (2,)], [4, 2]),
    ([(3,), (2,)], [0, 2]),
    ([(3,), (1, 2)], [3, 2]),
    ([(2, 3), (2, 1)], [3, 1]),
    ([(2, 3), (2, 1)], [2, 1]),
    ([(2, 3), (2, 1)], [4, 2]),
    ([(2, 2, 2), (2, 1)], [4, 1]),
    ([(4, 3)], [3]),
]
TARGETS = [{"opset": 9}, {"opset": 13}, {"opset": 21}, {"profile": "relax"}]


def write(path, shapes, widths, named=False):
    inputs = [
        helper.make_tensor_value_info(f"x{i}", 1, ["N", *s[1:]] if named else s)
        for i, s in enumerate(shapes)
    ]
    names = [v.name for v in inputs]
    node = helper.make_node(
        "FeatureVectorizer", names, ["y"], domain="ai.onnx.ml", inputdimensions=widths
    )
    output = helper.make_tensor_value_info("y", 1, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "g", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def feeds_of(shapes):
    random = np.random.default_rng(0)
    return {f"x{i}": random.standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)}


def run(path, feeds):
    return onnxruntime.InferenceSession(str(path)).run(None, feeds)[0]


@pytest.mark.parametrize("named", [False, True], ids=["static", "named"])
@pytest.mark.parametrize(("shapes", "widths"), CASES)
def test_onnx(shapes, widths, named, tmp_path):
    source = write(tmp_path / "source.onnx", shapes, widths, named)
    expected = run(source, feeds_of(shapes))
    for target in TARGETS:
        if named and "profile" in target:
            continue  # it asks for static sizes
        serde.convert(source, tmp_path / "m.onnx", **target)
        np.testing.assert_array_equal(run(tmp_path / "m.onnx", feeds_of(shapes)), expected)


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize(("shapes", "widths"), CASES)
def test_other_formats(shapes, widths, form, tmp_path):
    source, path = (
        write(tmp_path / "source.onnx", shapes, widths),
        tmp_path / directions.FILES[form],
    )
    serde.convert(source, path)
    (y,) = directions.RUN[form](path, feeds_of(shapes), 100)
    np.testing.assert_array_equal(y, run(source, feeds_of(shapes)))


def test_other_numbers_of_widths_are_refused(tmp_path):
    source = write(tmp_path / "source.onnx", [(3,), (2,)], [3])
    with pytest.raises(Unconvertible, match="1 inputdimensions for 2 inputs"):
        serde.convert(source, tmp_path / "m.relay")
