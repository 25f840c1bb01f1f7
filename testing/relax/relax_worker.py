"""Runs ONNX models in Relax's virtual machine, in the environment ``relax_live.py`` makes."""

from __future__ import annotations

import signal
import sys
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from testing.serving import serve


def run(path, inputs, outputs):
    """Run a model by TVM's importer on the arrays of one file; write its outputs to another."""
    names, machine = compile_model(Path(path).read_bytes())
    with np.load(inputs) as feeds:
        args = [tvm.runtime.tensor(feeds[name]) for name in names]
    np.savez(outputs, *flat(machine["main"](*args)))


def run_within(limited, inputs, outputs):
    """The same of a path and a number of seconds, after which this process ends."""
    path, seconds = limited
    signal.alarm(seconds)
    try:
        run(path, inputs, outputs)
    finally:
        signal.alarm(0)


@lru_cache(maxsize=1)
def compile_model(model):
    """The names of a model's inputs and the machine that runs it; of the last model only."""
    module = from_onnx(onnx.load_from_string(model), sanitize_input_names=False)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return [p.name for p in module["main"].params], machine


def functions(path):
    """The names of what the importer makes of a model."""
    return [v.name_hint for v in from_onnx(onnx.load(path)).get_global_vars()]


def flat(result):
    """The arrays of a result, tuples flattened."""
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [
        array
        for part in result
        for array in (flat(part) if not isinstance(part, int) else [np.int64(part)])
    ]


def version():
    return tvm.__version__


COMMANDS = {f.__name__: f for f in (functions, run, run_within, version)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(tvm.__version__, COMMANDS, lambda error: f"{type(error).__name__}: {error}")
