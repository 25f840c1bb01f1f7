"""Runs ONNX models in their consumers, in the environment ``consumers_live.py`` makes."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.serving import serve


@cache
def openvino_core():
    import openvino

    return openvino.Core()


def openvino(path, inputs, outputs):
    """Run a model on OpenVINO's processor plug-in, in float32."""
    core = openvino_core()
    form = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(path), "CPU", form)
    with np.load(inputs) as feeds:
        given = {port: feeds[n] for port in compiled.inputs for n in port.names if n in feeds}
    found = compiled(given)
    np.savez(outputs, *(found[i] for i in range(len(compiled.outputs))))


def tract(path, inputs, outputs):
    """Run a model in tract, optimized."""
    import tract

    model = tract.onnx().load(path)
    names = [model.input_name(i) for i in range(model.input_count())]
    with np.load(inputs) as feeds:
        given = [np.asarray(feeds[name], order="C") for name in names]
    found = model.into_model().into_runnable().run(given)
    np.savez(outputs, *map(as_array, found))


def as_array(tensor):
    """A result of tract: int64 that may be a size has a type of its own, and no array."""
    import tract

    try:
        return tensor.to_numpy()
    except tract.TractError:
        return tensor.convert_to(tract.DatumType.I64).to_numpy()


def onnxslim(path, to):
    """Write what onnxslim makes of a model."""
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(path)), to)


def onnxsim(path, to):
    """Write what onnxsim makes of a model."""
    import onnxsim

    model, _ = onnxsim.simplify(onnx.load(path))
    onnx.save(model, to)


def onnxoptimizer(path, to):
    """Write what onnxoptimizer makes of a model with its default passes."""
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(path)), to)


def version(package):
    return installed_version(package)


COMMANDS = {f.__name__: f for f in (onnxoptimizer, onnxsim, onnxslim, openvino, tract, version)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(installed_version("openvino"), COMMANDS, lambda error: f"{type(error).__name__}: {error}")
