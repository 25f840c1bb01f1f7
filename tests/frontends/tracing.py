"""Trace a function, run the graph in ONNX Runtime, and compare with NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import serde
from serde.bridges import onnxruntime as runtime

SETTINGS = (True, False)  # with ONNX Runtime's graph optimizers, and without


def specs_of(arrays, names):
    """The specs of arrays: their shapes, or names for the sizes in ``names``."""
    return [
        (tuple((names or {}).get(d, d) for d in np.shape(a)), np.asarray(a).dtype) for a in arrays
    ]


def evaluate(graph, feeds, path, settings=SETTINGS):
    """The graph's outputs under each setting."""
    serde.save(graph, path, format="onnx")
    return [runtime.run(path, feeds, optimize=s) for s in settings]


def compare(function, *arrays: Any, path, names=None, rtol=1e-6, settings=SETTINGS, opset=None):
    """Trace, run and compare; return the graph.

    ``names`` maps sizes to names: ``{3: "N"}`` traces each axis of size 3 as ``N``. ``rtol`` is
    relative to the largest number of the result.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(*(np.array(a) for a in arrays))
        graph = serde.trace(function, *specs_of(arrays, names))
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    feeds = {v.name: np.asarray(a) for v, a in zip(graph.inputs, arrays, strict=True)}
    for outputs in evaluate(graph, feeds, path, settings):
        assert len(outputs) == len(expected)
        for a, b in zip(outputs, expected, strict=True):
            assert_equal(a, np.asarray(b), rtol)
    for value, b in zip(graph.outputs, expected, strict=True):
        static = [d for d in value.shape if isinstance(d, int)]
        assert len(value.shape) == np.ndim(b)
        assert not static or all(
            d == s for d, s in zip(value.shape, np.shape(b), strict=True) if isinstance(d, int)
        )
    return graph


def assert_equal(actual, expected, rtol):
    """Element type, shape, and numbers to ``rtol`` of the scale; those that are not finite."""
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(actual[~finite], expected[~finite])
        rtol = max(rtol, {2: 4e-3, 4: 3e-6, 8: 0}[expected.dtype.itemsize])
        scale = np.abs(expected[finite]).max(initial=0).astype(np.float64)
        wrong = np.abs(actual[finite].astype(np.float64) - expected[finite].astype(np.float64))
        assert wrong.max(initial=0) <= rtol * max(scale, 1e-30), (actual, expected)
