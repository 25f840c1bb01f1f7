"""Scatter operators for runtimes that overwrite only: reductions as other operators."""

from __future__ import annotations


def reduction_version(reduction: str) -> int:
    """The opset that brought a reduction."""
    return 18 if reduction in ("max", "min") else 16


def decompose_scatter_nd(g, x, indices, updates, *, reduction: str):
    """None where nothing is reduced."""
    if reduction == "none":
        return None
    version = reduction_version(reduction)
    return g.decompose("ScatterND", version, x, indices, updates, reduction=reduction)
