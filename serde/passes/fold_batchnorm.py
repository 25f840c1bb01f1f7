"""BatchNormalization, and factors and sums by channel, as part of the weights beside them.

Each is a linear map by channel: ``x * factor + summand``. One behind a layer with constant weights,
or behind another BatchNormalization, changes the constants of that; a factor before a Conv, whose
padding is zero, changes its weights. Weights are computed when they are written, in float64, and
rounded to their type once, as the operators that go away rounded results. Layers and what is behind
them may be of two functions of the source: the merged layer is of what both are inside of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from serde.ir.constants import is_constant, make_lazy_constant
from serde.ir.graph import DType, Node, Value
from serde.rewrite.patterns import Neighbours, Patterns, merge, orders

Array = np.ndarray[Any, Any]
LAYERS = ("Conv", "ConvTranspose", "Gemm")
TINY = {DType.FLOAT16: 2.0**-14, DType.BFLOAT16: 2.0**-126}  # the smallest normal numbers
FLOATS = frozenset({DType.FLOAT32, DType.FLOAT64, *TINY})
patterns = Patterns()


class Linear(NamedTuple):
    """A map by channel: what it reads, its factor (None: 1) and its summand."""

    x: Value
    factor: Callable[[], Array] | None
    summand: Callable[[], Array | float]

    def map(self, numbers: Array | float) -> Array:
        """Numbers by channel, mapped."""
        factor = 1.0 if self.factor is None else self.factor()
        return np.asarray(numbers * factor + self.summand())


@patterns("Add", "BatchNormalization", "Mul")
def fold_into_layer(near: Neighbours, node: Node) -> Node | None:
    """A map behind a layer, or behind a BatchNormalization."""
    for linear in _list_maps(node):
        layer = near.sole_maker(node, linear.x, *LAYERS, "BatchNormalization", crosses_calls=True)
        if layer is None:
            continue
        fold = _fold_into_norm if layer.op == "BatchNormalization" else _fold_into_weights
        new = fold(near, layer, node, linear)
        if new is not None and _has_normal_constants(new):
            return new
    return None


@patterns("Conv")
def fold_factor_before(near: Neighbours, node: Node) -> Node | None:
    """A factor before a Conv."""
    product = near.sole_maker(node, node.inputs[0], "Mul", crosses_calls=True)
    w = node.inputs[1]
    for x, factor in () if product is None else orders(product):
        if product is None or x is None or factor is None or x.tensor is not None:
            continue
        if w is not None and is_constant([w]) and _is_by_channel(factor, product.outputs[0]):
            weights = _scale_weights(node, node, w, factor.array, 1)
            inputs = (x, weights, *node.inputs[2:])
            new = merge(product, node, op="Conv", inputs=inputs, attrs=node.attrs, name=node.name)
            return new if _has_normal_constants(new) else None
    return None


def _list_maps(node: Node) -> Iterator[Linear]:
    """A node as a map by channel; a sum or product may be one of either operand."""
    if node.op == "BatchNormalization":
        x, scale, shift, mean, var = node.inputs
        is_plain = len(node.outputs) == 1 and not node.attrs.get("training_mode")
        if x is not None and is_plain and is_constant(node.inputs[1:]):
            epsilon: Any = node.attrs.get("epsilon", 1e-5)

            def factor() -> Array:
                return np.asarray(_load(scale) / np.sqrt(_load(var) + epsilon))

            yield Linear(x, factor, lambda: _load(shift) - _load(mean) * factor())
        return
    for x, c in orders(node):
        if x is not None and c is not None and _is_by_channel(c, x):
            load = _load_vector(c)
            yield Linear(x, load, float) if node.op == "Mul" else Linear(x, None, load)


def _fold_into_norm(near: Neighbours, norm: Node, node: Node, linear: Linear) -> Node | None:
    x, scale, shift, *rest = norm.inputs
    if node.op == "BatchNormalization" or scale is None or shift is None or not [*_list_maps(norm)]:
        return None
    name, size = node.outputs[0].name, scale.static_shape
    factors = scale
    if (factor := linear.factor) is not None:
        factors = make_lazy_constant(f"{name}/scale", scale, size, lambda: _load(scale) * factor())
    summands = make_lazy_constant(f"{name}/shift", shift, size, lambda: linear.map(_load(shift)))
    return merge(norm, node, inputs=(x, factors, summands, *rest))


def _fold_into_weights(near: Neighbours, layer: Node, node: Node, linear: Linear) -> Node | None:
    x, w, b = (*layer.inputs, None)[:3]
    shape = layer.outputs[0].shape
    if w is None or shape is None or len(shape) < 2 or not _takes_factor(layer):
        return None
    axis = {"Conv": 0, "ConvTranspose": 1, "Gemm": int(not layer.attrs.get("transB"))}[layer.op]
    if linear.factor is not None:
        name = w.name if near.uses[w] == 1 else None
        weights = _scale_weights(node, layer, w, linear.factor, axis, name)
    shift = node.inputs[2] if node.op == "BatchNormalization" else None
    name = (
        shift.name
        if shift is not None and near.uses[shift] == 1
        else f"{node.outputs[0].name}/bias"
    )
    channels = (_count_channels(layer, w.static_shape, axis),)
    bias = make_lazy_constant(
        name,
        w,
        channels,
        lambda: np.broadcast_to(linear.map(0.0 if b is None else _load(b)), channels),
    )
    return merge(layer, node, inputs=(x, w if linear.factor is None else weights, bias))


def _scale_weights(
    node: Node, layer: Node, w: Value, load: Callable[[], Array], axis: int, name: str | None = None
) -> Value:
    """Weights times a factor for each index of an axis, the second of which counts in each group.

    They are named after ``node``, unless they have a name.
    """
    group: Any = layer.attrs.get("group", 1)
    shape = w.static_shape

    def scale() -> Array:
        factor = np.broadcast_to(load().ravel(), (_count_channels(layer, shape, axis),))
        parts = _load(w).reshape(group, shape[0] // group, *shape[1:])
        sizes = (group, 1, -1) if axis else (group, -1, 1)
        return np.asarray(parts * factor.reshape(*sizes, *[1] * (len(shape) - 2)))

    return make_lazy_constant(name or f"{node.outputs[0].name}/weight", w, shape, scale)


def _count_channels(layer: Node, shape: tuple[int, ...], axis: int) -> int:
    group: Any = layer.attrs.get("group", 1)
    return shape[1] * group if axis else shape[0]


def _takes_factor(layer: Node) -> bool:
    """Whether a layer has constant weights, and one result for each of their channels."""
    constants = [v for v in layer.inputs[1:] if v is not None]
    if not all(v.tensor is not None and v.dtype in FLOATS for v in constants):
        return False
    scales = layer.attrs.get("alpha", 1.0), layer.attrs.get("beta", 1.0)
    return layer.op != "Gemm" or (scales == (1, 1) and all(v.rank < 2 for v in constants[1:]))


def _has_normal_constants(node: Node) -> bool:
    """Whether weights and what is added fit a type of 16 bits, which holds neither large nor small
    numbers. Wider types are not looked at.
    """
    weights, *rest = (v for v in node.inputs[1:] if v is not None)
    return _is_within(weights, TINY.get(weights.type, 0)) and all(_is_within(v, 0) for v in rest)


def _is_within(value: Value, least: float) -> bool:
    """Whether the largest number of a constant of 16 bits is finite, and ``least`` or more."""
    if value.tensor is None or value.type not in TINY:
        return True
    with np.errstate(over="ignore"):  # in the cast to the type
        array = value.array().astype(np.float32)
    return bool(least <= np.abs(array).max(initial=0) < np.inf)


def _is_by_channel(constant: Value, x: Value) -> bool:
    """Whether a constant of floats has one number for each channel of ``x``, or one."""
    if constant.tensor is None or x.shape is None or constant.dtype is not x.dtype:
        return False
    if constant.dtype not in FLOATS or constant.rank > len(x.shape):
        return False
    if len(x.shape) < 2:
        return False
    shape = (1,) * (len(x.shape) - constant.rank) + constant.static_shape
    return shape[:1] + shape[2:] == (1,) * (len(shape) - 1) and shape[1] in (1, x.shape[1])


def _load(value: Value | None) -> Array:
    assert value is not None
    return value.array().astype(np.float64)


def _load_vector(value: Value) -> Callable[[], Array]:
    return lambda: _load(value).ravel()


fold_batchnorm = patterns.apply
