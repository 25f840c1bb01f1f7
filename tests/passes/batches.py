"""Models made for a batch, rebatched and compared with the source run batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import serde
from testing.onnx_live import model_of, run_model

SAMPLES = 3  # batches of the source that a result is run on


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model_with(body: str, opset: int = 18, **constants: Any) -> onnx.ModelProto:
    """A model from its text; constants that are tuples are the sizes of random ones."""
    model = model_of(f"g {body}", opset, 8)
    for at, (name, value) in enumerate(constants.items()):
        array = random(*value, seed=at + 1) if isinstance(value, tuple) else np.asarray(value)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def shapes_of(values: Any) -> dict[str, tuple[int, ...]]:
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}


def draw(values: Any, axes: Mapping[str, int]) -> list[dict[str, np.ndarray]]:
    """Inputs for several batches of the source; those without a batch are the same in each."""
    feeds = []
    for turn in range(SAMPLES):
        arrays = {}
        for at, v in enumerate(values):
            shape = shapes_of([v])[v.name]
            seed = at if v.name not in axes else at + 10 * turn
            arrays[v.name] = random(*shape, seed=seed + 100)
            if v.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
                kind = onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
                arrays[v.name] = (np.abs(arrays[v.name] * 2)).astype(kind)
        feeds.append(arrays)
    return feeds


def assert_is_rebatched(
    model: onnx.ModelProto, folder: Path, batch: Any = "N", axes: Mapping[str, int] | None = None,
    targets: Mapping[str, int] | None = None, values: Mapping[str, Any] | None = None,
) -> serde.Graph:  # fmt: skip
    """Rebatch a model, and compare with it on several of its batches, one behind another.

    ``axes`` are those of the inputs that have the batch, ``targets`` those of outputs where that
    is not the first; outputs with -1 are the same for all. ``values`` are inputs to take.
    """
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model, source)
    graph = serde.load(source, rebatch=batch)
    serde.save(graph, target, opset=21)
    axes = {v.name: 0 for v in model.graph.input} if axes is None else axes
    feeds = draw(model.graph.input, axes)
    for arrays in feeds:
        arrays.update((n, np.asarray(v)) for n, v in (values or {}).items())
    together = {
        n: np.concatenate([f[n] for f in feeds], axes[n]) if n in axes else feeds[0][n]
        for n in feeds[0]
    }
    parts = [run_model(source, f) for f in feeds]
    names = [v.name for v in model.graph.output]
    assert [v.name for v in onnx.load(target).graph.output] == names
    for name, actual, *pieces in zip(names, run_model(target, together), *parts, strict=True):
        axis = (targets or {}).get(name, 0)
        assert_equal(actual, pieces, axis)
    return graph


def assert_equal(actual: np.ndarray, pieces: Sequence[np.ndarray], axis: int) -> None:
    expected = pieces[0] if axis < 0 else np.concatenate(pieces, axis)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)
