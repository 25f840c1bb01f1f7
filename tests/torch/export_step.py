"""Written modules as programs of ``torch.export``, run in a Python with PyTorch.

    python export_step.py FOLDER

For each ``NAME.py`` in ``FOLDER`` with ``NAME.1.npz`` and ``NAME.2.npz``, inputs in their order: the
module is exported for the first, with all axes open whose sizes differ in the second, and what the
program computes of the second goes into ``NAME.out.npz``, and the program into ``NAME.pt2``; the
reason why not into ``NAME.txt``.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import torch


def export(path):
    """What the exported program computes."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    written = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = written
    spec.loader.exec_module(written)
    first, second = (load(path.with_suffix(f".{n}.npz")) for n in (1, 2))
    sizes = tuple(
        {at: torch.export.Dim.DYNAMIC for at, n in enumerate(x.shape) if n != y.shape[at]}
        for x, y in zip(first, second, strict=True)
    )
    program = torch.export.export(written.load(), first, dynamic_shapes=sizes, strict=False)
    torch.export.save(program, path.with_suffix(".pt2"))
    outputs = torch.utils._pytree.tree_leaves(program.module()(*second))
    return [torch.as_tensor(y).detach().numpy() for y in outputs]


def load(path):
    """The arrays of a file as tensors."""
    with np.load(path) as arrays:
        return tuple(torch.from_numpy(arrays[name]) for name in arrays.files)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for module in sorted(Path(sys.argv[1]).glob("*.py")):
        try:
            np.savez(module.with_suffix(".out.npz"), *export(module))
        except Exception as error:  # whatever the exporter raises
            module.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}")
