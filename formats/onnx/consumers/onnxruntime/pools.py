"""Pools that ONNX Runtime gets wrong: behind a Pad of zeros, or with pads that reach the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Value
from serde.spec.traits import NON_NEGATIVE
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.pooling import (
    Windows,
    average_dynamic_windows,
    dynamic_pads,
    max_pool_by_gathering,
    pad_dynamically,
    pad_window_axes,
)


def legalize_pool(g: Any, node: Any) -> Any:
    """Spell out pads that reach the kernel; keep a Pad of zeros apart from the pool's own pads."""
    x, pads, kernel = node.inputs[0], node.attrs.get("pads"), node.attrs.get("kernel_shape")
    if x is None or x.shape is None or not (isinstance(pads, tuple) and isinstance(kernel, tuple)):
        return None
    if reaches_kernel(pads, kernel):
        return POOLS[node.op](g, node, x)
    pad = _find_zero_pad(g, x)
    if pad is None or len(node.outputs) > 1 or node.op == "LpPool":
        return None
    plain, joined = not node.attrs.get("ceil_mode", 0), _join_pads(g, node, pad)
    if plain and joined and not reaches_kernel(joined, kernel) and g.producer(x) is pad:
        attrs = {**node.attrs, "pads": joined}
        attrs |= {"count_include_pad": 1} if node.op == "AveragePool" else {}
        return _emit_pool(g, replace(node, inputs=(pad.inputs[0],), attrs=attrs))
    if g.opset >= 18:
        return emit_node(g, node, _mark_pad_axes(g, pad, x))
    if plain and not any(pads):
        attrs = {n: v for n, v in node.attrs.items() if n != "pads"}
        return g.keep(replace(node, attrs={**attrs, "auto_pad": "VALID"}), node.inputs)
    return emit_node(g, node, _pad_and_slice(g, pad, x))


def reaches_kernel(pads: Sequence[int], kernel: Sequence[int]) -> bool:
    """Whether pads reach a kernel: ONNX Runtime refuses such pools."""
    return any(p >= k for p, k in zip(pads, (*kernel, *kernel), strict=True))


def _join_pads(g: Any, node: Any, pad: Any) -> tuple[int, ...] | None:
    """The pads of a pool and those of the Pad of zeros before it, where they mean the same."""
    zeros, window_pads, half = _pads(pad), node.attrs["pads"], len(node.attrs["pads"]) // 2
    around = (*zeros[2 : half + 2], *zeros[half + 4 :])
    is_inner = not any(zeros[:2]) and not any(zeros[half + 2 : half + 4])
    if not is_inner or _find_zero_pad(g, pad.inputs[0]) is not None:
        return None
    if node.op == "AveragePool":
        counted = node.attrs.get("count_include_pad", 0) or not any(window_pads)
    else:  # of numbers that are not negative, no maximum is one of the zeros
        spread = any(d != 1 for d in node.attrs.get("dilations", ()))
        counted = not spread and not any(window_pads) and _is_nonnegative(g, pad.inputs[0])
    return tuple(a + b for a, b in zip(around, window_pads, strict=True)) if counted else None


def _is_nonnegative(g: Any, x: Value) -> bool:
    node = g.producer(x)
    return node is not None and not node.domain and node.op in NON_NEGATIVE


def _find_zero_pad(g: Any, x: Value) -> Any:
    """The Pad of constant zeros that made ``x``, maybe through a Cast."""
    node = g.producer(x)
    if node is not None and node.op == "Cast":
        node = g.producer(node.inputs[0])
    if node is None or (node.domain, node.op) != ("", "Pad") or len(node.inputs) > 3:
        return None
    pads = _pads(node)
    if pads is None or node.attrs["mode"] != "constant":
        return None
    if not all(isinstance(p, int) and p >= 0 for p in pads):
        return None
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    value = np.asarray(node.attrs.get("value", 0.0) if fill is None else fill.array())
    is_zero = not value.any() and not (value.dtype.kind == "f" and np.signbit(value).any())
    return node if is_zero else None


def _pads(pad: Any) -> Any:
    """The sizes that a Pad adds, as far as they are known."""
    return shape_data_of(pad.inputs[1]) if len(pad.inputs) > 1 else pad.attrs["pads"]


def _mark_pad_axes(g: Any, pad: Any, x: Value) -> Any:
    """``x``, made by a Pad that lists its axes: ONNX Runtime fuses none of these."""
    pads, zero = _pads(pad), g.const(0, pad.inputs[0].type)
    value = g.Pad(pad.inputs[0], pads, zero, list(range(len(pads) // 2)))
    return _repeat_cast(g, pad, x, value)


def _pad_and_slice(g: Any, pad: Any, x: Value) -> Any:
    """``x``, padded by one more element and sliced: no optimizer joins such a Pad to a pool."""
    *pads, last = _pads(pad)
    value = g.Pad(pad.inputs[0], [*pads, last + 1], g.const(0, pad.inputs[0].type))
    return _repeat_cast(g, pad, x, g.Slice(value, [0], [-1], [-1]))


def _repeat_cast(g: Any, pad: Any, x: Value, value: Value) -> Any:
    """``value`` in place of the output of ``pad``, cast where ``x`` is that output cast."""
    cast = g.producer(x)
    return value if cast is pad else g.Cast(value, to=cast.attrs["to"])


def emit_node(g: Any, node: Any, x: Value) -> Any:
    """``node``, as the target's opset has it, of another tensor."""
    with g.at_opset(g.opset):
        return g[node.op](x, *node.inputs[1:], outputs=len(node.outputs), **node.attrs)


def _emit_pool(g: Any, node: Any) -> Any:
    """A pool that a rule has made, which may have a form to avoid again."""
    legal = legalize_pool(g, node)
    return emit_node(g, node, node.inputs[0]) if legal is None else legal


def _windows(node: Any) -> Windows:
    kernel, attrs = node.attrs["kernel_shape"], node.attrs
    strides = attrs.get("strides") or (1,) * len(kernel)
    more = {n: attrs[n] for n in ("dilations", "ceil_mode") if n in attrs}
    return Windows(kernel, strides, pads=attrs["pads"], **more)


def _legalize_pads(g: Any, node: Any, x: Value, fill: float) -> Any:
    """A pool without pads of a tensor that has them, and what ``ceil_mode`` reaches beyond."""
    w = _windows(node)
    if (reach := w.reach(x)) is not None:
        y = pad_window_axes(g, x, reach, fill)
    else:
        before, behind, more = dynamic_pads(g, x, w)
        after = [g.Add(a, b) for a, b in zip(behind, more, strict=True)]
        y = pad_dynamically(g, x, before, after, fill)
    plain = {"pads": (0,) * len(node.attrs["pads"]), "ceil_mode": 0}
    attrs = {n: plain.get(n, v) for n, v in node.attrs.items()}
    return _emit_pool(g, replace(node, inputs=(y,), attrs=attrs))


def legalize_max_pool(g: Any, node: Any, x: Value) -> Any:
    """MaxPool with its pads as a Pad; indices count places of the tensor without them."""
    if len(node.outputs) > 1:
        with g.at_opset(18):
            return max_pool_by_gathering(
                g, x, _windows(node), node.attrs.get("storage_order", 0), 2
            )
    return _legalize_pads(g, node, x, extreme_value(x.type, False))


def legalize_average_pool(g: Any, node: Any, x: Value) -> Any:
    """AveragePool with its pads as a Pad, where they count; else sums and numbers of elements."""
    include = node.attrs.get("count_include_pad", 0)
    if include and not node.attrs.get("ceil_mode", 0):
        return _legalize_pads(g, node, x, 0.0)
    with g.at_opset(18):
        return average_dynamic_windows(g, x, _windows(node), include)


POOLS: dict[str, Callable[[Any, Any, Value], Any]] = {
    "AveragePool": legalize_average_pool,
    "LpPool": lambda g, node, x: _legalize_pads(g, node, x, 0.0),
    "MaxPool": legalize_max_pool,
}
