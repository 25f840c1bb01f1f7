"""From a module to the IR: parameters bound, ``main`` elaborated, operators rewritten."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from serde.decompositions.random_source import with_random
from serde.errors import MalformedFile, UsageError
from serde.ir.builder import OnnxBuilder
from serde.ir.graph import Graph, Tensor
from serde.rewrite.rules import RuleTable

from . import ast, ops
from .ops.random import draws
from .partial_eval.evaluator import partially_evaluate
from .partial_eval.types import dtype_of
from .passes.undo_weight_transforms import undone
from .rules import reads
from .upgrade import modern, release

__all__ = ["entry_of", "module_graph", "ops", "parameter_problems", "to_ir"]


def module_graph(
    module: ast.Module, params: Mapping[str, Tensor] | None = None, path: str = "module",
    params_path: str = "", entry: str | None = None, ignore_extra: bool = False,
) -> Graph:  # fmt: skip
    """The graph of a module's operators; ``path`` is what errors call it."""
    name = entry_of(module, entry, path)
    held = dict(params or {})
    _refuse_misfits(module.functions[name], held, path, params_path, ignore_extra)
    stem = os.path.basename(path)
    for suffix in (".gz", ".json", ".txt", ".relay"):
        stem = stem.removesuffix(suffix)
    return partially_evaluate(module, held, name, stem or name, reads.refusal)


def entry_of(module: ast.Module, asked: str | None, path: str) -> str:
    """The function that is the model: ``main``, the one asked for, or the only one."""
    names = list(module.functions)
    if asked is not None and asked not in names:
        raise UsageError(f"{path} has no function @{asked}; it has {', '.join(names)}")
    if asked is not None or "main" in names or len(names) == 1:
        return asked or ("main" if "main" in names else names[0])
    if not names:
        raise MalformedFile(path, "the module holds no function")
    raise UsageError(f"{path} has no @main but {', '.join('@' + n for n in names)}: "
                     "name one with entry=")  # fmt: skip


def parameter_problems(
    main: ast.Function, held: Mapping[str, Tensor], ignore_extra: bool = False
) -> list[str]:
    """What stands against arrays: no parameter of that name, or one of another type."""
    wanted = {p.name: p for p in main.params}
    extra = [n for n in held if n not in wanted]
    free = [n for n in wanted if n not in held]
    lines = [] if ignore_extra else [f"{n} belongs to no parameter{_close(n, free)}" for n in extra]
    for name, param in wanted.items():
        type_ = param.annotation
        if name in held and isinstance(type_, ast.TensorType):
            tensor = held[name]
            fits = dtype_of(type_.dtype) is tensor.dtype and len(tensor.shape) == len(type_.shape)
            pairs = zip(tensor.shape, type_.shape, strict=False)
            if not fits or any(isinstance(w, int) and w != d for d, w in pairs):
                dims = ", ".join("?" if not isinstance(d, int) else str(d) for d in type_.shape)
                lines.append(f"{name} is {tensor.dtype.value}{list(tensor.shape)}, "
                             f"@main takes {type_.dtype}[{dims}]")  # fmt: skip
    if extra and free and lines:
        lines.append(f"without an array, and so inputs: {', '.join(free)}")
    return lines


def _refuse_misfits(
    main: ast.Function, held: Mapping[str, Tensor], path: str, params_path: str, ignore: bool
) -> None:
    """Raise MalformedFile listing arrays without a parameter, or of the wrong type for theirs."""
    lines = parameter_problems(main, held, ignore)
    if lines:
        listing = "".join(f"\n  {line}" for line in lines[:50])
        raise MalformedFile(params_path or "params", f"parameters do not fit {path}:{listing}")


def _close(name: str, free: list[str]) -> str:
    close = get_close_matches(name, free, 1, 0.5)
    return f" (perhaps {close[0]!r})" if close else ""


def to_ir(graph: Graph, *, rules: RuleTable | None = None, random: str = "refuse") -> Graph:
    """Rewrite a graph of Relay's operators into the IR.

    ``random`` says what becomes of operators that draw random numbers: with ``refuse`` they are
    not converted, with ``onnx`` the runtime draws them, with ``input`` they are made of noise that
    is an input of the model.

    Raises:
        Unconvertible: for every node no rule takes.
    """
    today = modern(graph, release(graph.metadata.get("relay.tvm", "")))
    table = with_random(rules or reads, draws, random)
    done = table.rewrite(undone(today), OnnxBuilder(graph.name))
    return replace(done, metadata={k: v for k, v in graph.metadata.items() if v})
