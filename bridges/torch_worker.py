"""Runs written PyTorch modules on arrays, in a process of its own, behind ``worker_loop``.

A model is the source of a module.
"""

import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .worker_loop import serve, time_calls

HALF = "bfloat16"  # which numpy lacks


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


def make_tensor(name: str, shape: Sequence[int], data: Any) -> Any:
    """The tensor of a type, from its bytes."""
    import torch

    array = data.view(np.int16 if name == HALF else name).reshape(shape)
    tensor = torch.from_numpy(np.array(array, order="C"))
    return tensor.view(torch.bfloat16) if name == HALF else tensor


def describe_tensor(tensor: Any) -> tuple[str, Any]:
    """The name of a tensor's type, and its elements."""
    import torch

    if tensor.dtype is torch.bfloat16:
        return HALF, tensor.view(torch.int16).numpy()
    array = tensor.numpy()
    return str(array.dtype), array


def run(module: Any, operands: Sequence[Any], count: int) -> tuple[list[Any], list[float]]:
    """What the module computes of tensors, and the seconds of a run."""
    import torch

    with torch.no_grad():
        results, seconds = time_calls(lambda: module(*operands), count)
    listed = [y for y in torch.utils._pytree.tree_leaves(results) if y is not None]
    return [torch.as_tensor(y).detach() for y in listed], seconds  # one may be a parameter


def main() -> None:
    """Run a module for each request."""
    import torch

    serve(torch.__version__, load_module, run, describe_tensor, make_tensor)


if __name__ == "__main__":
    main()
