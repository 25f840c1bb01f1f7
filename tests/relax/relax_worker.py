"""Runs ONNX models in Relax's virtual machine, in the environment ``relax_live.py`` makes.

One request a line on standard input, one reply a line on standard output, both JSON.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def run(path, inputs, outputs):
    """Run a model by TVM's importer on the arrays of one file; write its outputs to another."""
    module = from_onnx(onnx.load(path), sanitize_input_names=False)
    with np.load(inputs) as feeds:
        given = [tvm.runtime.tensor(feeds[p.name]) for p in module["main"].params]
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    np.savez(outputs, *flat(machine["main"](*given)))


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


COMMANDS = {f.__name__: f for f in (functions, run, version)}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # TVM's own messages
    warnings.simplefilter("ignore")
    print(json.dumps(tvm.__version__), file=out, flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            reply = {"value": COMMANDS[name](*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}".strip()[-2000:]}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
