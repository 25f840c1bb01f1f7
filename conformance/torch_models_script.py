"""A written module in a Python with PyTorch: its numbers, its gradients, and its export.

    python torch_models_script.py NET.PY IN.NPZ OUT.NPZ

``in.npz`` has the inputs in their order; ``out.npz`` gets the outputs in ``eval()``. A line of JSON
is printed: how many parameters there are, those that have no gradient of the squares of all
outputs, and why ``torch.export.export`` does not take the module.
"""

import importlib.util
import json
import sys

import numpy as np
import torch


def main(source, inputs, results):
    """Run, train and export."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location("written", source)
    written = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = written
    spec.loader.exec_module(written)
    model = written.load()
    with np.load(inputs) as arrays:
        operands = tuple(torch.from_numpy(arrays[name]) for name in arrays.files)
    outputs = flatten(model(*operands))
    np.savez(results, *(y.detach().numpy() for y in outputs))
    print(json.dumps({**list_untrained(model, outputs), "export": find_obstacle(model, operands)}))


def flatten(outputs):
    """The tensors of what a module gives."""
    return [torch.as_tensor(y) for y in torch.utils._pytree.tree_leaves(outputs)]


def list_untrained(model, outputs):
    """How many parameters are trained, and those of them that have no gradient."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    squares = [y.double().square().sum() for y in outputs if y.requires_grad]
    if squares:
        sum(squares).backward()
    names = [name for name, p in parameters.items() if p.grad is None]
    return {"parameters": len(parameters), "untrained": names}


def find_obstacle(model, operands):
    """Why the exporter does not take the module, or nothing."""
    try:
        torch.export.export(model, operands, strict=False)
    except Exception as error:  # whatever the exporter raises
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
