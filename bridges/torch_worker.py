"""Runs written PyTorch modules on arrays, in a process of its own, behind ``worker_loop``.

A model is the source of a module. Arrays of bfloat16 are int16 under keys that say so.
"""

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .worker_loop import serve, time_calls

HALF = "bfloat16:"  # begins the keys of arrays of bfloat16


def load_module(path: str) -> Any:
    """The module that a file of source holds, with its weights, or that of an exported program."""
    if path.endswith(".pt2"):
        return load_program(path)
    name = f"written_{len(sys.modules)}"  # never one of before: PyTorch keeps what it compiled
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    source = importlib.util.module_from_spec(spec)
    sys.modules[name] = source  # where torch.cond looks for what functions read
    spec.loader.exec_module(source)
    return source.load()


def load_program(path: str) -> Any:
    """An exported program as a function of its inputs, whatever arguments it takes them in."""
    import torch

    program = torch.export.load(path)
    module, arguments = program.module(), program.call_spec.in_spec

    def call(*operands: Any) -> Any:
        positional, named = torch.utils._pytree.tree_unflatten(list(operands), arguments)
        return module(*positional, **named)

    return call


def to_tensor(key: str, array: np.ndarray[Any, Any]) -> Any:
    """An array as a tensor."""
    import torch

    tensor = torch.from_numpy(np.array(array, order="C"))
    return tensor.view(torch.bfloat16) if key.startswith(HALF) else tensor


def run(module: Any, inputs: str, outputs: str, count: int) -> list[float]:
    """Write what the module computes of a file's arrays; return the seconds of a run."""
    import torch

    with np.load(inputs, allow_pickle=False) as arrays:
        operands = [to_tensor(key, arrays[key]) for key in arrays.files]
    with torch.no_grad():
        results, seconds = time_calls(lambda: module(*operands), count)
    listed = [y for y in torch.utils._pytree.tree_leaves(results) if y is not None]
    entries: dict[str, Any] = {}
    for at, y in enumerate(listed):
        y = torch.as_tensor(y).detach()  # an output may be a parameter
        is_half = y.dtype is torch.bfloat16
        entries[f"{HALF if is_half else ''}{at}"] = (y.view(torch.int16) if is_half else y).numpy()
    np.savez(outputs, **entries)
    return seconds


def main() -> None:
    """Run a module for each request."""
    import torch

    serve(torch.__version__, load_module, run, 0)


if __name__ == "__main__":
    main()
