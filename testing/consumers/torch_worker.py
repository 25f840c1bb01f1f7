"""Runs ONNX models as PyTorch modules, in the environment that ``torch_live.py`` makes."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version as installed_version
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from testing.serving import serve


def onnx2torch(path, inputs, outputs):
    """Convert a model and run the module, as a user does: inputs and outputs are in order."""
    import torch
    from onnx2torch import convert

    model = onnx.load(path)
    module = convert(model).eval()
    held = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in held]
    with np.load(inputs) as feeds, torch.no_grad():
        results = module(*(torch.from_numpy(feeds[name]) for name in names))
    listed = results if isinstance(results, (list, tuple)) else [results]
    np.savez(outputs, *(y.numpy() for y in listed))


def version(package):
    return installed_version(package)


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    commands = {"onnx2torch": onnx2torch, "version": version}
    serve(
        installed_version("onnx2torch"), commands, lambda error: f"{type(error).__name__}: {error}"
    )
