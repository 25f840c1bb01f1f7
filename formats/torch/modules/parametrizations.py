"""Weights that PyTorch computes of others: a file that has the result has what it was made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from serde.ir.graph import Node, Tensor, Value

from ..target import Module
from .folded import make_array
from .scopes import Path

Array = np.ndarray  # type: ignore[type-arg]
# What makes a module compute its weight, and what the arrays are called that it computes it of.
SCHEMES = {
    "nn.utils.parametrizations.weight_norm": (
        "parametrizations.weight.original0", "parametrizations.weight.original1",
    ),
    "nn.utils.weight_norm": ("weight_g", "weight_v"),
    "nn.utils.parametrizations.spectral_norm": (
        "parametrizations.weight.original", "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
    ),
    "nn.utils.spectral_norm": ("weight_orig", "weight_u", "weight_v"),
}  # fmt: skip


def find_scheme(path: Path, keys: Collection[str]) -> str | None:
    """What makes the module at ``path`` compute its weight, by the keys of a checkpoint."""
    prefix = ".".join((*path, ""))
    return next((scheme for scheme, names in SCHEMES.items()
                 if all(prefix + name in keys for name in names)), None)  # fmt: skip


def parametrize(node: Node, path: Path, scheme: str) -> Node | None:
    """A module that computes its weight of other arrays, which give the one that it had.

    None for weights that the arrays cannot give.
    """
    module = node.attrs["module"]
    assert isinstance(module, Module)
    arrays = dict(zip(module.parameters, node.inputs[-len(module.parameters) :], strict=True))
    weight = arrays.pop("weight").array()  # type: ignore[union-attr]
    factors = split_norms(weight) if len(SCHEMES[scheme]) == 2 else split_largest(
        np.moveaxis(weight, "Transpose" in node.op, 0), weight)  # fmt: skip
    if factors is None:
        return None
    parts: Mapping[str, Value | None] = arrays | {
        name: make_array(".".join((*path, name)), Tensor.of(np.ascontiguousarray(factor)))
        for name, factor in zip(SCHEMES[scheme], factors, strict=True)
    }
    changed = module._replace(parameters=tuple(parts), wrapper=scheme)
    operands = node.inputs[: -len(module.parameters)]
    attrs = {**node.attrs, "module": changed}
    return replace(node, inputs=(*operands, *parts.values()), attrs=attrs)


def split_norms(weight: Array) -> tuple[Array, ...] | None:
    """The norms of the filters, and filters in their directions."""
    axes = tuple(range(1, weight.ndim))
    norms = np.sqrt((weight.astype(np.float64) ** 2).sum(axes, keepdims=True))
    return (norms.astype(weight.dtype), weight) if norms.all() else None


def split_largest(rows: Array, weight: Array) -> tuple[Array, ...] | None:
    """A matrix of the largest singular value 1, as vectors of its directions tell."""
    matrix = rows.reshape(len(rows), -1).astype(np.float64)
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    if not sizes[0]:
        return None
    return weight, (left[:, 0] / sizes[0]).astype(weight.dtype), right[0].astype(weight.dtype)
