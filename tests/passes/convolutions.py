"""Models of a few convolutions, and what a conversion leaves of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.numpy_helper import from_array

import serde
from testing.onnx_live import error, model_of, run_model

Array = np.ndarray[Any, Any]


def check_operators_left(
    body: str, constants: Mapping[str, Array], operators: Sequence[str], folder: Path
) -> None:
    """Convert nodes that read ``x`` (N, 4, 8, 8) and write ``y`` (N, 6, P, Q).

    ``operators`` are to be left, and the numbers are to be the same.
    """
    model = model_of(f"g (float[N,4,8,8] x) => (float[M,6,P,Q] y) {{ {body} }}", 17, 8)
    model.graph.initializer.extend(from_array(a, n) for n, a in constants.items())
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx")
    converted = onnx.load(folder / "b.onnx")
    assert [n.op_type for n in converted.graph.node] == operators
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 4, 8, 8), np.float32)}
    assert error(run_model(converted, feeds)[0], run_model(model, feeds)[0]) < 1e-6
