"""Runs written PyTorch modules on arrays, in a process of its own.

It reads a line for each request on its standard input, as JSON: the path of a module's source,
those of ``.npz`` files of the inputs in their order and of the outputs, which it writes, and how
often to run. It answers with a line: the seconds of one run, or an error. The last module is kept.
Arrays of bfloat16 are int16 under keys that say so.
"""

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

HALF = "bfloat16:"  # begins the keys of arrays of bfloat16


def load_module(path: str) -> Any:
    """The module that a file of source holds, with its weights, or that of an exported program."""
    if path.endswith(".pt2"):
        return load_program(path)
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None and spec.loader is not None
    source = importlib.util.module_from_spec(spec)
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


def time_calls(call: Callable[[], Any], count: int) -> tuple[Any, list[float]]:
    """What the last of so many calls returns, and one's seconds: of the clock, of the processor."""
    start = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = call()
    end = time.perf_counter(), time.process_time()
    return result, [(b - a) / count for a, b in zip(start, end, strict=True)]


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


def answer(reply: Mapping[str, Any]) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run a module for each line that is read."""
    import torch

    answer({"version": torch.__version__})
    last = module = None
    for line in sys.stdin:
        path, inputs, outputs, count = json.loads(line)
        try:
            if path != last:
                last, module = None, load_module(path)
            last = path
            reply: dict[str, Any] = {"seconds": run(module, inputs, outputs, count)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer(reply)


if __name__ == "__main__":
    main()
