"""Runs ONNX models in their consumers, in the environment ``consumers_live.py`` makes."""

from __future__ import annotations

import os
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
        arrays = {port: feeds[n] for port in compiled.inputs for n in port.names if n in feeds}
    results = compiled(arrays)
    np.savez(outputs, *(results[i] for i in range(len(compiled.outputs))))


def tract(path, inputs, outputs):
    """Run a model in tract, optimized."""
    import tract

    model = tract.onnx().load(path)
    names = [model.input_name(i) for i in range(model.input_count())]
    with np.load(inputs) as feeds:
        arrays = [np.asarray(feeds[name], order="C") for name in names]
    results = model.into_model().into_runnable().run(arrays)
    np.savez(outputs, *map(as_array, results))


WINOGRAD_MEMORY_LEVEL = 3  # a hint of MNN; at 3, its default, convolutions are off by 1e-3


def mnn(path, inputs, outputs):
    """Convert a model and run the module, whose numbers are float32, int32, and bytes."""
    import _tools  # MNN.tools installs packages when it is imported
    from MNN import nn

    target = f"{path}.mnn"
    os.chdir(Path(path).parent)  # where the converter keeps weights, in a file of one name
    args = ["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", target, "--bizCode", "-"]
    if not _tools.mnnconvert(args) or not Path(target).exists():
        raise ValueError("not converted")
    graph = onnx.load(path, load_external_data=False).graph
    held = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in held]
    types = [onnx.helper.tensor_dtype_to_np_dtype(y.type.tensor_type.elem_type)
             for y in graph.output]  # fmt: skip
    runtime = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": 1},))
    runtime.set_hint(WINOGRAD_MEMORY_LEVEL, 0)
    results = [y.name for y in graph.output]
    module = nn.load_module_from_file(target, names, results, runtime_manager=runtime)
    with np.load(inputs) as feeds:
        tensors = module.forward([as_mnn(feeds[name]) for name in names])
    np.savez(outputs, *(as_numpy(y, t) for y, t in zip(tensors, types, strict=True)))


def as_mnn(array):
    """An input of MNN, which has int32 in place of other integers."""
    from MNN import expr

    kind = {"f": (expr.float, np.float32), "u": (expr.uint8, np.uint8)}.get(array.dtype.kind)
    if kind is None or (array.dtype.itemsize > 1 and array.dtype.kind == "u"):
        kind = expr.int, np.int32
    flat = np.ascontiguousarray(array, kind[1]).reshape(-1)
    return expr.const(flat, list(array.shape), expr.NCHW, kind[0])


def as_numpy(variable, dtype):
    """A result of MNN in the type that the model declares."""
    from MNN import expr

    if variable.data_format == expr.NC4HW4:
        variable = expr.convert(variable, expr.NCHW)
    return np.array(variable.read()).reshape(variable.shape).astype(dtype)


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


COMMANDS = {
    f.__name__: f for f in (mnn, onnxoptimizer, onnxsim, onnxslim, openvino, tract, version)
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve("consumers", COMMANDS, lambda error: f"{type(error).__name__}: {error}")
