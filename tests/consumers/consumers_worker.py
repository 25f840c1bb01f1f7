"""Runs ONNX models in their consumers, in the environment ``consumers_live.py`` makes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
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
        given = [np.ascontiguousarray(feeds[name]) for name in names]
    for i, x in enumerate(given):
        model.set_input_fact(i, ",".join([*map(str, x.shape), tract_type(x.dtype)]))
    found = model.into_model().into_runnable().run(given)
    np.savez(outputs, *(t.to_numpy() for t in found))


def tract_type(dtype):
    """How tract writes an element type."""
    return "bool" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


def mnn(path, inputs, outputs):
    """Convert a model by MNN's converter and run it."""
    import MNN
    import MNN.nn

    model = onnx.load(path, load_external_data=False)
    ends = [[v.name for v in some] for some in (model.graph.input, model.graph.output)]
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/m.mnn"
        convert = [Path(sys.executable).with_name("mnnconvert"), "-f", "ONNX", "--modelFile", path]
        convert += ["--MNNModel", made, "--bizCode", "serde"]
        done = subprocess.run(convert, capture_output=True, text=True)
        if not Path(made).exists():
            raise RuntimeError(last_errors(done.stdout + done.stderr))
        module = MNN.nn.load_module_from_file(made, *ends)
        with np.load(inputs) as feeds:
            given = [mnn_variable(feeds[name]) for name in ends[0]]
        np.savez(outputs, *(np.array(y.read()) for y in module.onForward(given)))


def mnn_variable(x):
    """An array as MNN's, in the layout of ONNX."""
    import MNN.expr as F

    if x.dtype not in MNN_TYPES:
        raise TypeError(f"MNN has no {x.dtype} elements")
    made = F.placeholder(list(x.shape), F.NCHW, MNN_TYPES[x.dtype](F))
    made.write(np.ascontiguousarray(x))
    return made


MNN_TYPES = {
    np.dtype("float32"): lambda F: F.float, np.dtype("int32"): lambda F: F.int,
    np.dtype("int64"): lambda F: F.int64, np.dtype("uint8"): lambda F: F.uint8,
    np.dtype("int8"): lambda F: F.int8,
}  # fmt: skip


def last_errors(text):
    """What a converter printed last."""
    lines = [line for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])


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
    serve(installed_version("openvino"), COMMANDS, lambda error: f"{type(error).__name__}: {error}")
