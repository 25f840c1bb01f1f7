"""Runs a written PyTorch module on arrays, in a process of its own: ``torch_worker.py net.py``.

It reads a line for each run on its standard input, a pair of paths as JSON, the second of which it
writes: ``.npz`` files of the inputs in their order, and of the outputs. It answers with a line.
Arrays of bfloat16 are held as int16, those of types that NumPy lacks by the name of the key.
"""

import importlib.util
import json
import sys

import numpy as np

HALF = "bfloat16:"  # begins the keys of arrays of bfloat16


def load_module(path):
    """The module that a file of source holds, with its weights."""
    spec = importlib.util.spec_from_file_location("written", path)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    return source.load()


def to_tensor(key, array):
    """An array as a tensor."""
    import torch

    tensor = torch.from_numpy(np.array(array, order="C"))
    return tensor.view(torch.bfloat16) if key.startswith(HALF) else tensor


def run(module, inputs, outputs):
    """What the module computes of a file's arrays, into another file."""
    import torch

    with np.load(inputs, allow_pickle=False) as arrays:
        operands = [to_tensor(key, arrays[key]) for key in arrays.files]
    with torch.no_grad():
        results = module(*operands)
    listed = results if isinstance(results, (list, tuple)) else [results]
    entries = {}
    for at, y in enumerate(listed):
        is_half = y.dtype is torch.bfloat16
        entries[f"{HALF if is_half else ''}{at}"] = (y.view(torch.int16) if is_half else y).numpy()
    np.savez(outputs, **entries)


def answer(reply):
    """Write a line."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main():
    """Load the module, and run it for each line that is read."""
    try:
        module = load_module(sys.argv[1])
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer({})
    for line in sys.stdin:
        try:
            run(module, *json.loads(line))
            reply = {}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer(reply)


if __name__ == "__main__":
    main()
