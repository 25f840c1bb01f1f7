"""Normalizations of groups of channels, which ONNX writes as those of one sample, as a module."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from serde.ir.graph import Dim, Graph, Node, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources, orders
from serde.spec.weight_origins import origins_of

from ..modules.functions import parameters_of
from ..modules.scopes import is_key
from ..target import DOMAIN, Module, Slot, TorchBuilder, derive, name_type

INSTANCES = "nn.InstanceNorm1d"


def join_group_norms(graph: Graph, builder: TorchBuilder) -> Graph:
    """Return ``graph`` with such chains as calls of ``nn.GroupNorm``."""
    patterns = Patterns(INSTANCES, domain=DOMAIN)

    @patterns(".reshape")
    def normalize_groups(near: Neighbours, node: Node) -> Sequence[Node] | None:
        """Groups that become rows, are normalized, and become channels again."""
        norm = near.maker(node.inputs[0], INSTANCES)
        grouped = norm and near.maker(norm.inputs[0], ".reshape")
        if norm is None or grouped is None or not _is_plain(norm):
            return None
        x, rows, y = grouped.inputs[0], grouped.outputs[0], node.outputs[0]
        if x is None or None in (x.shape, rows.shape, y.shape):
            return None
        samples, channels, *inner = x.ranked_shape
        groups, result = rows.ranked_shape[1], y.ranked_shape
        is_same = None not in inner and result[1:] == (channels, *inner)
        is_flat = _is_same_in_number(inner, result[2:]) and result[1] == channels
        is_by_sample = samples is not None and rows.ranked_shape[0] == samples
        if not (is_same or is_flat) or not is_by_sample or not isinstance(channels, int):
            return None
        if channels % groups:  # type: ignore[operator]
            return None
        options = {**_module_of(norm).options, "affine": False}
        module = Module((groups, channels), MappingProxyType(options), ())
        before = []
        if not is_same:
            sizes = {"args": (Slot(0), -1, *result[1:])}
            flat = replace(y, name=builder.names.fresh(y.name))
            before = [replace(grouped, inputs=(x,), outputs=(flat,), attrs=sizes)]
        norm_of_groups = replace(
            node, op="nn.GroupNorm", inputs=(before[0].outputs[0] if before else x,),
            attrs={"args": (Slot(0),), "module": module},
            sources=join_sources(grouped, norm, node),
        )  # fmt: skip
        return [*before, norm_of_groups]

    @patterns("+")
    def scale_groups(near: Neighbours, node: Node) -> Node | None:
        """Scales and biases by channel, which the module has."""
        for product, bias in orders(node):
            scaled = near.sole_maker(node, product, "*")
            for normalized, weight in orders(scaled) if scaled is not None else ():
                norm = near.sole_maker(scaled, normalized, "nn.GroupNorm")  # type: ignore[arg-type]
                x = None if norm is None else norm.inputs[0]
                if norm is None or x is None or _module_of(norm).parameters:
                    continue
                by_channel = (x.ranked_shape[1], *[1] * (x.rank - 2))
                arrays = {"weight": weight, "bias": bias}
                if not all(_is_by_channel(v, by_channel) for v in arrays.values()):
                    continue
                if _are_made_up(arrays):
                    return replace(norm, outputs=node.outputs, sources=join_sources(norm, node))
                flat = [derive(builder, v, lambda a: a.reshape(-1), by_channel[:1])  # type: ignore[arg-type]
                        for v in arrays.values()]  # fmt: skip
                options = {n: v for n, v in _module_of(norm).options.items() if n != "affine"}
                if (dtype := name_type(flat[0])) is not None:
                    options["dtype"] = dtype
                module = Module(_module_of(norm).args, MappingProxyType(options), tuple(arrays))
                return replace(
                    node, op=norm.op, inputs=(x, *flat), attrs={**norm.attrs, "module": module},
                    sources=join_sources(norm, scaled, node),  # type: ignore[arg-type]
                )  # fmt: skip
        return None

    return patterns.apply(graph)


def _is_same_in_number(sizes: Sequence[Dim], others: Sequence[Dim]) -> bool:
    """Whether axes of known sizes have as many elements as others."""
    products = [math.prod(d for d in group if isinstance(d, int)) for group in (sizes, others)]
    return products[0] == products[1] and all(isinstance(d, int) for d in (*sizes, *others))


def _is_plain(norm: Node) -> bool:
    """Whether a normalization has no arrays, or ones and zeros that an exporter made up."""
    return _are_made_up(parameters_of(norm))


def _are_made_up(arrays: Mapping[str, Value | None]) -> bool:
    """Whether the weight is ones and the bias zeros, and neither has a name of the source's."""
    for name, value in arrays.items():
        names = {name for run in origins_of(value) for name in run.names}
        is_neutral = value is not None and bool((value.array() == (name == "weight")).all())
        if not is_neutral or any(map(is_key, names)):
            return False
    return True


def _is_by_channel(value: Value | None, by_channel: tuple[object, ...]) -> bool:
    if value is None or value.tensor is None:
        return False
    return value.static_shape == by_channel or value.static_shape == (1, *by_channel)


def _module_of(node: Node) -> Module:
    module = node.attrs["module"]
    assert isinstance(module, Module)
    return module
