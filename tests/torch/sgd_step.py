"""One step of SGD on a written module, in a Python with PyTorch.

    python sgd_step.py NET.PY IN.NPZ OUT.NPZ RATE DTYPE

``in.npz`` has the inputs in their order. Written are the loss, the arrays of the ``state_dict`` after
the step under ``new:KEY``, and gradients under ``grad:KEY``; the loss is the sum over the outputs of
the mean of squares.
"""

import importlib.util
import sys

import numpy as np
import torch


def main(source, inputs, results, rate, dtype):
    """Step once."""
    spec = importlib.util.spec_from_file_location("written", source)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    floats = getattr(torch, dtype)
    model = written.load().train().to(floats)
    with np.load(inputs) as arrays:
        operands = [torch.from_numpy(arrays[name]) for name in arrays.files]
    operands = [x.to(floats) if x.is_floating_point() else x for x in operands]
    outputs = model(*operands)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    loss = sum(torch.mean(y * y) for y in outputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(rate))
    loss.backward()
    optimizer.step()
    arrays = {"loss": loss.detach().numpy()}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.grad is not None:
            arrays[f"grad:{name}"] = parameter.grad.numpy()
    arrays |= {f"new:{name}": array.numpy() for name, array in model.state_dict().items()}
    np.savez(results, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
