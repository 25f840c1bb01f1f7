"""The models in the onnx wheel: small ones with data, and networks whose weights they make."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from testing.node_cases import Case, results

SMALL = ("simple", "pytorch-operator", "pytorch-converted")
LIGHT = "light"


@cache
def small_models() -> tuple[Case, ...]:
    """The models of every kind that bring their data."""
    return tuple(case for kind in SMALL for case in _load_cases(kind))


def _load_cases(kind: str) -> Iterator[Case]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = sorted(load_model_tests(kind=kind), key=lambda t: t.name)
    for test in tests:
        folder = Path(test.model_dir)
        model = onnx.load(folder / "model.onnx")
        data = [
            (_read(f, "input", model.graph.input), _read(f, "output", model.graph.output))
            for f in sorted(folder.glob("test_data_set_*"))
        ]
        yield Case(f"{kind}/{test.name}", model, data, test.rtol, test.atol)


def _read(folder: Path, side: str, values: Any) -> list[Any]:
    """The arrays, or lists of them, of one side of a data set."""
    arrays = []
    for i in range(len(list(folder.glob(f"{side}_*.pb")))):
        raw = (folder / f"{side}_{i}.pb").read_bytes()
        if values[i].type.WhichOneof("value") == "sequence_type":
            sequence = onnx.SequenceProto()
            sequence.ParseFromString(raw)
            arrays.append(numpy_helper.to_list(sequence))
        else:
            arrays.append(numpy_helper.to_array(onnx.TensorProto.FromString(raw)))
    return arrays


def light_names() -> list[str]:
    """The networks, by file."""
    return sorted(p.stem for p in _light().glob("*.onnx"))


def _light() -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / LIGHT


def light_model(name: str) -> Case:
    """A network with a seeded input, and what ONNX Runtime computes from it."""
    model = onnx.load(_light() / f"{name}.onnx")
    held = {t.name for t in model.graph.initializer}
    rng, feeds = np.random.default_rng(0), []
    for info in model.graph.input:
        if info.name not in held:
            tensor = info.type.tensor_type
            kind = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            shape = [d.dim_value or 1 for d in tensor.shape.dim]
            feeds.append(rng.standard_normal(shape).astype(kind))
    expected = next(r for _, r in results(model, feeds))
    assert not isinstance(expected, Exception), expected
    return Case(f"{LIGHT}/{name}", model, [(feeds, expected)], 1e-3, 1e-5)
