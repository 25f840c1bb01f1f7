"""Modules that can be written as functions, and what the nodes of modules read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from serde.ir.graph import Node, Value

from ..target import Module, Slot

# Modules as functions, of arrays that are members of the module around them.
FUNCTIONS = {"nn.Linear": "F.linear", "nn.Embedding": "F.embedding", "nn.PReLU": "F.prelu",
             "nn.LayerNorm": "F.layer_norm", "nn.Conv1d": "F.conv1d", "nn.Conv2d": "F.conv2d",
             "nn.Conv3d": "F.conv3d"}  # fmt: skip


def operands_of(node: Node) -> tuple[Value | None, ...]:
    """What a node reads, without the arrays of its module."""
    module = node.attrs.get("module")
    return node.inputs[: len(node.inputs) - len(module.parameters)] if isinstance(
        module, Module) else node.inputs  # fmt: skip


def parameters_of(node: Node) -> dict[str, Value]:
    """The arrays of a node's module by their names there."""
    module = node.attrs.get("module")
    if not isinstance(module, Module):
        return {}
    arrays = node.inputs[len(node.inputs) - len(module.parameters) :]
    return {name: v for name, v in zip(module.parameters, arrays, strict=True) if v is not None}


def to_function(node: Node, x: Value | None, arrays: Sequence[Value | None]) -> Node:
    """The call of a module as one of its function, with these arrays."""
    module = node.attrs["module"]
    assert isinstance(module, Module)
    middle: tuple[Any, ...] = ()
    if node.op == "nn.LayerNorm":
        size = module.args[0]
        middle = (size if isinstance(size, tuple) else (size,),)
    slots = tuple([Slot(at + 1) for at in range(len(arrays))])
    options = {k: v for k, v in module.options.items() if k not in ("bias", "dtype")}
    attrs = {"args": (Slot(0), *middle, *slots), **options}
    return replace(node, op=FUNCTIONS[node.op], inputs=(x, *arrays), attrs=attrs)


def take_bias_apart(node: Node) -> list[Node]:
    """A layer without its bias, and the sum with that."""
    module, (result,) = node.attrs["module"], node.outputs
    assert isinstance(module, Module)
    product = Value(f"{result.name}.product", result.dtype, result.shape)
    options = MappingProxyType({**module.options, "bias": False})
    attrs = {**node.attrs, "module": Module(module.args, options, module.parameters[:-1])}
    layer = replace(node, inputs=node.inputs[:-1], outputs=(product,), attrs=attrs)
    added = Node("+", (product, node.inputs[-1]), (result,), {"args": (Slot(0), Slot(1))}, "torch",
                 sources=node.sources)  # fmt: skip
    return [layer, added]
