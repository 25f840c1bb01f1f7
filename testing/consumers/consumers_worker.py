"""Runs ONNX models in their consumers, in the environment ``consumers_live.py`` makes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from importlib.metadata import distribution
from importlib.metadata import version as installed_version
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from testing.serving import serve


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


NCNN_OPTIONS = "use_fp16_packed use_fp16_storage use_fp16_arithmetic".split()
MAT = re.compile(r"\b(in|out)(\d+)\.numpy\((?:\), )?batch_index=(\d+)\)")


def ncnn(path, inputs, outputs):
    """Convert a model with pnnx and run it in float32, its own options of float16 off."""
    import ncnn

    graph = onnx.load(path, load_external_data=False).graph
    held = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in held]
    with tempfile.TemporaryDirectory() as folder, ncnn.Net() as net, np.load(inputs) as feeds:
        script = make_ncnn(path, folder)
        batch_axes = {f"{kind}{n}": int(axis) for kind, n, axis in MAT.findall(script)}
        net.opt.num_threads = 1
        for name in NCNN_OPTIONS:
            setattr(net.opt, name, False)
        if net.load_param(f"{folder}/m.param") or net.load_model(f"{folder}/m.bin"):
            raise ValueError(f"not loaded: {', '.join(unknown_layers(f'{folder}/m.param'))}")
        with net.create_extractor() as extractor:
            for n, name in enumerate(names):
                array = as_ncnn(feeds[name])
                mat = ncnn.Mat(array, batch_index=batch_axes[f"in{n}"])
                extractor.input(f"in{n}", mat.clone())
            results = [extractor.extract(f"out{n}") for n in range(len(graph.output))]
            if failed := [
                y.name for y, (code, _) in zip(graph.output, results, strict=True) if code
            ]:
                raise ValueError(f"not computed: {', '.join(failed)}")
            arrays = [
                m.numpy(batch_index=batch_axes[f"out{n}"]) for n, (_, m) in enumerate(results)
            ]
            np.savez(outputs, *map(from_ncnn, arrays, graph.output))


def make_ncnn(path, folder):
    """Convert a model with pnnx; the script that it writes to tell how the result is used."""
    binary = distribution("pnnx").locate_file("pnnx/pnnx")
    places = [f"pnnx{kind}={folder}/p.{kind}" for kind in ("param", "bin", "py", "onnx")]
    places += [f"ncnn{kind}={folder}/m.{kind}" for kind in ("param", "bin", "py")]
    os.symlink(Path(path).resolve(), f"{folder}/m.onnx")  # pnnx writes beside it
    done = subprocess.run(
        [binary, "m.onnx", "fp16=0", *places], cwd=folder, capture_output=True, check=False
    )
    if done.returncode or not Path(f"{folder}/m.py").exists():
        raise ValueError(f"not converted: pnnx ended with {done.returncode}")
    return Path(f"{folder}/m.py").read_text()


def unknown_layers(path):
    """The kinds of layers that pnnx has left as they are, which ncnn has none of."""
    kinds = (line.split()[0] for line in Path(path).read_text().splitlines()[2:])
    return sorted({kind for kind in kinds if "." in kind} or {"parameters"})


def as_ncnn(array):
    """An input of ncnn, which has float32, and int32 in place of other numbers."""
    kind = np.float32 if array.dtype.kind == "f" else np.int32
    return np.ascontiguousarray(array, kind)


def from_ncnn(array, declared):
    """A result of ncnn in the type that the model declares."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
    array = np.array(array) if dtype.kind == "f" else np.array(array).view(np.int32)
    return array.astype(dtype)


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
    f.__name__: f for f in (mnn, ncnn, onnxoptimizer, onnxsim, onnxslim, openvino, tract, version)
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve("consumers", COMMANDS, lambda error: f"{type(error).__name__}: {error}")
