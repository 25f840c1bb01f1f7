"""Exports modules with live PyTorch, beside what they compute: run by a Python that has it.

    PYTHON-WITH-TORCH testing/pt2/worker.py CASES.json FOLDER [--onnx]

Each case is ``[name, expression, inputs, options]``. Folder gets ``name.pt2`` and ``name.npz``,
and with ``--onnx`` what PyTorch's own exporter makes of the module, ``name.dynamo.onnx``; what it
needs beside PyTorch is in the folder ``$SERDE_TORCH_ZOO``.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(os.environ.get("SERDE_TORCH_ZOO", ""))
import torch
import torch.ao.quantization.fx._decomposed
import torch.nn.functional as F  # noqa: F401  (cases use it)
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
A, Q = torch.ops.aten, torch.ops.quantized_decomposed


class Maker:
    """Seeded tensors: ``f`` floats, ``p`` positive ones, ``i`` integers, ``b`` booleans."""

    def __init__(self) -> None:
        self.random = np.random.RandomState(7)

    def f(self, *shape: int, dtype: str = "float32") -> torch.Tensor:
        """Floats around 0."""
        return torch.from_numpy(self.random.randn(*shape).astype("float32")).to(
            getattr(torch, dtype)
        )

    def p(self, *shape: int) -> torch.Tensor:
        """Floats between 0.1 and 1."""
        return torch.from_numpy(self.random.uniform(0.1, 1, shape).astype("float32"))

    def i(self, *shape: int, low: int = -5, high: int = 6, dtype: str = "int64") -> torch.Tensor:
        """Integers."""
        return torch.from_numpy(self.random.randint(low, high, shape).astype("int64")).to(
            getattr(torch, dtype)
        )

    def b(self, *shape: int) -> torch.Tensor:
        """Booleans."""
        return torch.from_numpy(self.random.rand(*shape) > 0.5)


class Expression(nn.Module):
    """A module whose result is an expression of its inputs."""

    def __init__(self, text: str, layers: dict[str, nn.Module]) -> None:
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        names = globals() | {"math": math}
        code = f"def forward(self, x=None, y=None, z=None, w=None): return {text}"
        space: dict[str, Any] = {}
        exec(compile(code, "net.py", "exec"), names, space)
        self.forward = types.MethodType(space["forward"], self)


def export(case: list[Any], folder: Path, with_onnx: bool) -> None:
    """Write a case's files."""
    name, text, inputs, options = case
    torch.manual_seed(7)
    maker = Maker()
    space = {"f": maker.f, "p": maker.p, "i": maker.i, "b": maker.b, "torch": torch, "nn": nn}
    tensors = eval(f"({inputs},)" if inputs else "()", space)
    layers = {k: eval(v, space) for k, v in options.get("layers", {}).items()}
    module = Expression(text, layers).train(bool(options.get("train")))
    shapes = None
    if axes := options.get("dynamic"):
        shapes = tuple({int(k): torch.export.Dim.AUTO for k in at} for at in axes)
    with torch.no_grad():
        if with_onnx:
            save_onnx(module, tensors, folder / f"{name}.dynamo", shapes)
        program = torch.export.export(module, tensors, dynamic_shapes=shapes)
        if options.get("core"):
            program = program.run_decompositions()
    save_program(program, folder / f"{name}.pt2")
    save_arrays(module, tensors, folder / f"{name}.npz")


def save_program(program: torch.export.ExportedProgram, path: Path) -> None:
    """Save a program, without the paths of this machine."""
    for node in program.graph.nodes:
        if trace := node.meta.get("stack_trace"):
            node.meta["stack_trace"] = re.sub(r'"/(?:[^"]*/site-packages/|[^"]*/)', '"', trace)
    torch.export.save(program, path)


def save_onnx(
    module: nn.Module, tensors: tuple[torch.Tensor, ...], stem: Path, shapes: Any
) -> None:
    """Write the ONNX file of PyTorch's exporter, or why there is none, beside ``stem``."""
    buffers = {n: v.clone() for n, v in module.named_buffers()}
    try:
        torch.onnx.export(
            module, tensors, f"{stem}.onnx", dynamo=True, dynamic_shapes=shapes,
            external_data=False, verbose=False,
        )  # fmt: skip
    except Exception as error:  # the exporter's own limits
        Path(f"{stem}.error").write_text(f"{type(error).__name__}: {error}")
    with torch.no_grad():
        for name, value in module.named_buffers():
            value.copy_(buffers[name])


def save_arrays(module: nn.Module, tensors: tuple[torch.Tensor, ...], path: Path) -> None:
    """Write inputs, what the module computes of them, and what it changes its buffers to."""
    arrays = {f"in{k}": to_numpy(t) for k, t in enumerate(tensors)}
    buffers = {n: v.clone() for n, v in module.named_buffers()}
    with torch.no_grad():
        results = torch.utils._pytree.tree_leaves(module(*[t.clone() for t in tensors]))
    results = [r for r in results if r is not None]
    arrays |= {f"out{k}": to_numpy(r) for k, r in enumerate(results)}
    arrays |= {
        f"buffer.{n}": to_numpy(v)
        for n, v in module.named_buffers()
        if not torch.equal(v, buffers[n])
    }
    np.savez(path, **arrays)


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """An array; bfloat16 in float32."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach()
    return (value.float() if value.dtype is torch.bfloat16 else value).numpy()


def define_operators() -> None:
    """Operators of libraries, as those define them."""

    @torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
    def multiply_groups(
        input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor
    ) -> torch.Tensor:
        result = input.new_zeros(input.size(0), weight.size(2))
        ends = offs.tolist()
        for at, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            result[start:end] = input[start:end] @ weight[at]
        return result

    @multiply_groups.register_fake
    def _(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        return input.new_empty(input.size(0), weight.size(2))


def main(cases: Path, folder: Path, with_onnx: bool) -> None:
    """Export all; what PyTorch refuses goes to ``name.error``."""
    define_operators()
    for case in json.loads(cases.read_text()):
        try:
            export(case, folder, with_onnx)
        except Exception as error:
            (folder / f"{case[0]}.error").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "--onnx" in sys.argv)
