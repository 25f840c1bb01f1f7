"""The ``light`` models of the onnx package: well-known networks with weights made on the spot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT = sorted(p.stem for p in FOLDER.glob("*.onnx"))


def model_path(name: str) -> Path:
    """The file of the model of that name."""
    return FOLDER / f"{name}.onnx"


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """One seeded image for each input."""
    generator = np.random.default_rng(0)
    held = {t.name for t in model.graph.initializer}
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in model.graph.input
        if v.name not in held
    }
    return {n: generator.standard_normal(s, np.float32) for n, s in shapes.items()}
