"""Reshapes around an InstanceNormalization as one GroupNormalization.

Exporters split channels into groups, normalize each as one instance, and restore the shape. As one
operator it computes in any layout.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir.constants import make_constant
from serde.ir.graph import Node, Tensor, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources

patterns = Patterns("InstanceNormalization")


@patterns("Reshape")
def merge_group_norm(near: Neighbours, node: Node) -> Node | None:
    """The normalization of groups of channels, whose factors are repeated for each channel."""
    norm = near.sole_maker(node, node.inputs[0], "InstanceNormalization")
    split = None if norm is None else near.sole_maker(norm, norm.inputs[0], "Reshape")
    if norm is None or split is None or (x := split.inputs[0]) is None or not x.shape:
        return None
    groups, (scale, bias) = split.outputs[0].shape, norm.inputs[1:]
    if x.rank < 3 or groups is None or x.shape != node.outputs[0].shape:
        return None
    (samples, channels, *_), count = x.shape, groups[1]
    if samples is None or groups[0] != samples or None in x.shape:
        return None
    if not isinstance(channels, int) or not isinstance(count, int) or channels % count:
        return None
    if scale is None or scale.tensor is None or bias is None or bias.tensor is None:
        return None
    factors = [
        make_constant(f"{node.outputs[0].name}/{name}", _repeat(v, channels // count))
        for name, v in (("scale", scale), ("bias", bias))
    ]
    attrs = {"num_groups": count, "epsilon": norm.attrs["epsilon"], "stash_type": 1}
    inputs: tuple[Value, ...] = (x, *factors)
    return replace(
        node, op="GroupNormalization", inputs=inputs, attrs=attrs,
        sources=join_sources(split, norm, node),
    )  # fmt: skip


def _repeat(value: Value, times: int) -> Tensor:
    return Tensor.of(np.repeat(value.array(), times))


merge_group_norms = patterns.apply
