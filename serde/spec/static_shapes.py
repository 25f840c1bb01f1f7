"""Shapes of the results of common operators, computed without onnx.

A rule is given the shapes of operands of known ranks and one element type, and complete attributes.
It returns None wherever it is not sure, and for what the standard refuses: then onnx tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serde.ir.graph import Shape
from serde.spec.traits import BROADCASTS, COMPARISONS, ELEMENTWISE

MOST_SIZE = (1 << 63) - 1
MOST_AXES = 64
Rule = Callable[[Sequence[Any], Mapping[str, Any]], "Shape | None"]


def _same(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    return shapes[0] if len(shapes) == 1 else None


def _along_axis(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    x = shapes[0]
    return x if len(shapes) == 1 and 0 <= attrs.get("axis", -1) < len(x) else None


def _broadcast(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    if len(shapes) != 2:
        return None
    a, b = shapes
    if a == b:
        return a if None not in a else None  # two unknown sizes: onnx tells
    if len(a) < len(b):
        a, b = b, a
    lead = len(a) - len(b)
    out = list(a[:lead])
    for x, y in zip(a[lead:], b, strict=True):
        if x is None or y is None:
            return None
        if x == y or y == 1:
            out.append(x)
        elif x == 1:
            out.append(y)
        else:
            return None
    return tuple(out)


def _window(x: Any, attrs: Mapping[str, Any], is_open: bool = False) -> list[Any] | None:
    """The sizes behind the channels; of sizes that are not known, where it ``is_open``, None."""
    kernel, pads, strides = attrs.get("kernel_shape"), attrs.get("pads"), attrs.get("strides")
    n = len(x) - 2
    if kernel is None or pads is None or strides is None or "auto_pad" in attrs or n < 1:
        return None
    dilations = attrs.get("dilations") or (1,) * n
    if not len(kernel) == len(strides) == len(dilations) == n or len(pads) != 2 * n:
        return None
    out: list[Any] = []
    for i in range(n):
        size = x[2 + i]
        if size is None and is_open:
            out.append(None)
            continue
        if type(size) is not int:
            return None
        left = size + pads[i] + pads[n + i] - dilations[i] * (kernel[i] - 1) - 1
        if left < 0 or strides[i] < 1 or size == 0:
            return None
        out.append(left // strides[i] + 1)
    return out


def infer_conv(
    shapes: Sequence[Any], attrs: Mapping[str, Any], is_open: bool = False
) -> Shape | None:
    """Of a convolution, whose channels are known."""
    x, w = shapes[0], shapes[1]
    group = attrs.get("group", 1)
    if len(w) != len(x) or len(x) < 3 or w[2:] != attrs.get("kernel_shape"):
        return None
    if type(x[1]) is not int or type(w[0]) is not int or type(w[1]) is not int or group < 1:
        return None
    if x[1] != w[1] * group or w[0] % group or (len(shapes) > 2 and shapes[2] != (w[0],)):
        return None
    sizes = _window(x, attrs, is_open)
    return None if sizes is None else (x[0], w[0], *sizes)


def infer_pool(
    shapes: Sequence[Any], attrs: Mapping[str, Any], is_open: bool = False
) -> Shape | None:
    """Of a pool that rounds down."""
    if len(shapes) != 1 or attrs.get("ceil_mode", 0) or len(shapes[0]) < 3:
        return None
    sizes = _window(shapes[0], attrs, is_open)
    return None if sizes is None else (*shapes[0][:2], *sizes)


def _global_pool(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    x = shapes[0]
    return (*x[:2], *(1,) * (len(x) - 2)) if len(x) > 2 else None


def _batch_norm(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    x = shapes[0]
    if len(shapes) != 5 or len(x) < 2 or attrs.get("training_mode", 0):
        return None
    channels = x[1:2]
    return x if type(x[1]) is int and all(s == channels for s in shapes[1:]) else None


def _layer_norm(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    x, axis = shapes[0], attrs.get("axis", -1)
    same = 0 <= axis < len(x) and all(s == x[axis:] for s in shapes[1:])
    return x if same and None not in x[axis:] else None


def _matmul(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    a, b = shapes
    if len(a) < 2 or len(b) < 2 or type(a[-1]) is not int or a[-1] != b[-2]:
        return None
    if len(b) == 2:
        return (*a[:-1], b[-1])
    lead = _broadcast((a[:-2], b[:-2]), attrs)
    return None if lead is None else (*lead, a[-2], b[-1])


def _gemm(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    a, b = shapes[0], shapes[1]
    if len(a) != 2 or len(b) != 2:
        return None
    m, k = (a[1], a[0]) if attrs.get("transA") else a
    j, n = (b[1], b[0]) if attrs.get("transB") else b
    if type(k) is not int or k != j or (len(shapes) > 2 and shapes[2] not in ((n,), (1,), ())):
        return None
    return (m, n)


def _transpose(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    (x,), perm = shapes, attrs.get("perm")
    if perm is None or sorted(perm) != list(range(len(x))):
        return None
    return tuple([x[p] for p in perm])


def _flatten(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    (x,), axis = shapes, attrs.get("axis", 1)
    if not 0 <= axis <= len(x) or not {int}.issuperset(map(type, x)):
        return None
    return (math.prod(x[:axis]), math.prod(x[axis:]))


def _concat(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    """Where no operand is without elements, and would be left out."""
    x, axis = shapes[0], attrs.get("axis", -1)
    if not 0 <= axis < len(x) or None in x or len(shapes) < 2:
        return None
    lead, tail, total = x[:axis], x[axis + 1 :], 0
    for shape in shapes:
        if len(shape) != len(x) or shape[:axis] != lead or shape[axis + 1 :] != tail:
            return None
        if type(shape[axis]) is not int or shape[axis] == 0:
            return None
        total += shape[axis]
    return (*lead, total, *tail)


def _clip(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    return shapes[0] if all(bound == () for bound in shapes[1:]) else None


SHAPES: dict[str, Rule] = {
    "Conv": infer_conv, "AveragePool": infer_pool, "MaxPool": infer_pool,
    "BatchNormalization": _batch_norm,
    "GlobalAveragePool": _global_pool, "GlobalMaxPool": _global_pool, "MatMul": _matmul,
    "Gemm": _gemm, "LayerNormalization": _layer_norm, "Softmax": _along_axis,
    "LogSoftmax": _along_axis, "Transpose": _transpose, "Flatten": _flatten, "Concat": _concat,
    "Clip": _clip,
    # but for those of two element types, and of an attribute whose lack onnx refuses
    **dict.fromkeys(BROADCASTS - COMPARISONS - {"BitShift", "Pow", "Where"}, _broadcast),
    **dict.fromkeys(ELEMENTWISE - {"Cast", "Clip", "IsInf", "IsNaN"}, _same),
}  # fmt: skip


def reshape(x: Any, target: Any, allowzero: Any) -> Shape | None:
    """The shape that Reshape gives to ``x``; None where that is not sure.

    Sizes of ``x`` are numbers, or have names and are copied; one that is not is what -1 stands for.
    """
    total, name = 1, None
    for at, d in enumerate(x):
        if type(d) is str and not allowzero and at < len(target) and target[at] == 0:
            continue
        if type(d) is str and name is None:
            name = d
            continue
        if type(d) is not int or d == 0:
            return None
        total *= d
    out, open_at, known = [], -1, 1
    for at, d in enumerate(target):
        if type(d) is not int or d < -1:
            return None
        if d == 0:
            if allowzero or at >= len(x):
                return None
            d = x[at]
        if d == -1:
            if open_at >= 0:
                return None
            open_at = at
        elif type(d) is int:
            known *= d
        out.append(d)
    if name is not None:
        if open_at < 0 or known != total:
            return None
        out[open_at] = name
    elif open_at >= 0:
        if total % known:
            return None
        out[open_at] = total // known
    elif known != total:
        return None
    return tuple(out)


def _reshape_to_constant(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    x, target = inputs
    if target is None or target.tensor is None or len(target.shape) != 1 or x.tensor is not None:
        return None
    return reshape(x.shape, target.array().tolist(), attrs.get("allowzero"))


def rule_for_values(op: str) -> Rule | None:
    """A rule that is given operands in place of their shapes.

    It returns None also for a Reshape that changes nothing, and needs no node.
    """
    if op == "Reshape":
        return _reshape_to_another
    rule = SHAPES.get(op)
    if rule is None:
        return None
    return lambda inputs, attrs: rule([v.shape for v in inputs], attrs)


def _reshape_to_another(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    out = _reshape_to_constant(inputs, attrs)
    return None if out == inputs[0].shape else out


def infer_static(operator: Any, inputs: Sequence[Any], attrs: Any, outputs: int) -> Any:
    """Element type and shape of the single result; None where onnx has to tell."""
    op, raw = operator.name, operator.raw
    if outputs != 1 or not inputs or operator.since < (6 if SHAPES.get(op) is _same else 7):
        return None  # in the first opsets onnx infers no shapes, or others
    if not raw.min_input <= len(inputs) <= raw.max_input:
        return None
    x = inputs[0]
    if x is None or x.shape is None or x.container or x.dtype not in operator.inputs[0].types:
        return None
    if op == "Reshape":
        out = _reshape_to_constant(inputs, attrs)
    else:
        rule = SHAPES.get(op)
        if rule is None:
            return None
        shapes = []
        for v in inputs:
            if v is None or v.shape is None or v.container or v.dtype is not x.dtype:
                return None
            shapes.append(v.shape)
        out = rule(shapes, attrs)
    return None if out is None or not are_possible(out) else (x.dtype, out)


def are_possible(sizes: Sequence[Any]) -> bool:
    """Whether a tensor may have these sizes."""
    if len(sizes) > MOST_AXES:
        return False
    return not any(type(d) is int and not 0 <= d <= MOST_SIZE for d in sizes)
