"""Spell out what the standard leaves implicit, so that writers see one form per operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from serde.errors import require
from serde.ir.dim_expr import LIMIT, shape_data_of
from serde.ir.geometry import Ints, same_pads
from serde.ir.graph import DType, Value, show_shape
from serde.spec.schema import Operator
from serde.spec.traits import AXES, AXES_OPERANDS, AXIS

SENTINEL, MOST = 2**31, 2**63 - 1  # ends that no tensor has
Attrs = dict[str, Any]
Inputs = tuple[Value | None, ...]


def complete_attributes(operator: Operator, inputs: Inputs, attrs: Mapping[str, Any]) -> Attrs:
    """Return ``attrs`` with every default and every implied value written out."""
    explicit = {**operator.defaults, **attrs}
    if operator.name in AXIS and inputs and inputs[0] is not None:
        axis, shape = explicit.get("axis"), inputs[0].shape
        if isinstance(axis, int) and axis < 0 and shape is not None and -axis <= len(shape):
            explicit["axis"] = axis + len(shape)
    if operator.name in AXES and inputs and inputs[0] is not None:
        axes, rank = explicit.get("axes"), len(inputs[0].shape or ())
        # runtimes disagree about negative ones of Resize
        if axes and all(-rank <= a < rank for a in axes):
            explicit["axes"] = tuple(a % rank for a in axes)
    implied = IMPLIED.get(operator.name)
    if implied is None:
        return explicit
    known = operator.attributes | attrs.keys()  # older pools have no dilations to write out
    return {n: v for n, v in implied(inputs, explicit).items() if n in known}


def looks_at_sizes(op: str, attrs: Mapping[str, Any]) -> bool:
    """Whether what attributes imply depends on the sizes of operands, beyond their ranks."""
    if op not in IMPLIED or op == "Transpose":
        return False
    is_plain = attrs.get("auto_pad", "NOTSET") == "NOTSET" and "output_shape" not in attrs
    return not is_plain or "kernel_shape" not in attrs


def drop_defaults(operator: Operator, attrs: Mapping[str, Any]) -> Attrs:
    """Return ``attrs`` without those that have the value they have where they are left out.

    ONNX Runtime makes ``AveragePool`` one of integers, which has no ``dilations``.
    """
    defaults = operator.defaults
    kept = {n: v for n, v in attrs.items() if n not in defaults or not _is_same(v, defaults[n])}
    dilations = kept.get("dilations")
    if operator.name == "AveragePool" and isinstance(dilations, tuple) and set(dilations) == {1}:
        del kept["dilations"]
    return kept


def _is_same(value: Any, default: Any) -> bool:
    """Whether an attribute is its default to the last bit: -0 is not 0."""
    return type(value) is type(default) and repr(value) == repr(default)


def _window(inputs: Inputs, attrs: Attrs) -> Attrs:
    """Write kernel, strides, dilations and pads out; make pads of ``auto_pad`` where it can be."""
    if "kernel_shape" not in attrs:
        weight = inputs[1].shape if len(inputs) > 1 and inputs[1] is not None else None
        if weight is None or not all(isinstance(d, int) for d in weight[2:]):
            return attrs
        attrs["kernel_shape"] = tuple(weight[2:])
    ones = (1,) * len(attrs["kernel_shape"])
    for name in ("strides", "dilations"):
        attrs[name] = attrs.get(name) or ones
    _require_lengths(inputs, attrs)
    mode = attrs.pop("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = _resolve_same_pads(inputs, attrs, mode == "SAME_UPPER")
        return {**attrs, "pads": pads} if pads is not None else {**attrs, "auto_pad": mode}
    attrs["pads"] = attrs.get("pads", ones[:0]) or tuple(0 for _ in ones * 2)
    return attrs


def _require_lengths(inputs: Inputs, attrs: Attrs) -> None:
    """Refuse a window of another rank than the tensor it moves over."""
    n, shape = len(attrs["kernel_shape"]), inputs[0].shape if inputs and inputs[0] else None
    require(shape is None or len(shape) == n + 2, f"a window of {n} axes over {show_shape(shape)}")
    for name in ("strides", "dilations", "output_padding", "pads"):
        count = 2 * n if name == "pads" else n
        length = len(attrs.get(name, ())) or count
        require(length == count, f"{name} of {length} numbers, not {count}")


def _resolve_same_pads(inputs: Inputs, attrs: Attrs, upper: bool) -> Ints | None:
    kernel, strides, dilations = attrs["kernel_shape"], attrs["strides"], attrs["dilations"]
    shape = inputs[0].shape if inputs and inputs[0] is not None else None
    sizes = shape[2:] if shape is not None else (None,) * len(kernel)
    ends = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        if not isinstance(size, int) and s != 1:
            return None  # depends on a dynamic size
        ends.append(same_pads(size if isinstance(size, int) else k, k, s, d, upper))
    return tuple(b for b, _ in ends) + tuple(e for _, e in ends)


def _deconvolution(inputs: Inputs, attrs: Attrs) -> Attrs:
    fixed = attrs.get("output_shape")
    same = attrs.get("auto_pad", "NOTSET").startswith("SAME")
    if not fixed and not same:
        attrs = _window(inputs, attrs)
        if "kernel_shape" in attrs:
            attrs.setdefault("output_padding", (0,) * len(attrs["kernel_shape"]))
        return attrs
    ends = _resolve_output_pads(inputs, attrs, fixed)
    if ends is None:
        return attrs  # pads depend on a dynamic size
    kept = {n: v for n, v in attrs.items() if n not in ("output_shape", "auto_pad")}
    return _deconvolution(inputs, {**kept, **ends})


def _resolve_output_pads(
    inputs: Inputs, attrs: Attrs, fixed: Ints | None
) -> dict[str, Ints] | None:
    """What a transposed convolution cuts off, or adds at the ends, so that its output has the size
    asked for; it adds less than a stride, and nothing for ``SAME``.
    """
    x, w = inputs[:2]
    if x is None or w is None or x.shape is None or not w.is_static:
        return None
    sizes, kernel = x.shape[2:], attrs.get("kernel_shape") or w.static_shape[2:]
    ones, n = (1,) * len(kernel), len(kernel)
    strides, dilations = (attrs.get(name) or ones for name in ("strides", "dilations"))
    _require_lengths(inputs, {**attrs, "kernel_shape": kernel})
    require(not fixed or len(fixed) >= n, f"output_shape of {len(fixed or ())} numbers")
    more = list(attrs.get("output_padding") or (0,) * n)
    ends = []
    for at, count in enumerate(sizes):
        if not isinstance(count, int):
            return None
        size = strides[at] * (count - 1) + more[at] + (kernel[at] - 1) * dilations[at] + 1
        total = size - (fixed[at - n] if fixed else count * strides[at])
        if total < 0:
            more[at] -= total
            if not fixed or more[at] >= strides[at]:
                return None
            total = 0
        small, large = total // 2, total - total // 2
        upper = attrs.get("auto_pad") == "SAME_UPPER"
        ends.append((small, large) if upper else (large, small))
    pads = tuple(b for b, _ in ends) + tuple(e for _, e in ends)
    return {"pads": pads, "output_padding": tuple(more)}


def _transpose(inputs: Inputs, attrs: Attrs) -> Attrs:
    if "perm" not in attrs and inputs[0] is not None and inputs[0].shape is not None:
        attrs["perm"] = tuple(reversed(range(len(inputs[0].shape))))
    return attrs


IMPLIED: dict[str, Callable[[Inputs, Attrs], Attrs]] = {
    "Conv": _window,
    "ConvInteger": _window,
    "QLinearConv": lambda inputs, attrs: _window(inputs[:1] + inputs[3:4], attrs),
    "ConvTranspose": _deconvolution,
    "DeformConv": _window,
    "MaxPool": _window,
    "AveragePool": _window,
    "LpPool": _window,
    "Transpose": _transpose,
}


def _normalize_ends(g: Any, ends: Value) -> Value:
    """Ends of a Slice, of which those beyond 2**31 are the largest int64, or the smallest."""
    if ends.tensor is None or ends.dtype is not DType.INT64 or ends.tensor.size > LIMIT:
        return ends
    numbers = list(ends.ints()) if ends.rank == 1 else []
    ends_in_range = [n if abs(n) <= SENTINEL else MOST if n > 0 else -MOST - 1 for n in numbers]
    return ends if ends_in_range == numbers else g.const(ends_in_range, DType.INT64, "ends")


RESIZE_OPTIONAL = 13  # the opset from which the operands of Resize but the first may be left out


def canonicalize_operands(g: Any, op: str, inputs: list[Value | None]) -> list[Value | None]:
    """Return ``inputs`` with all five operands of Slice, and axes counted from the front.

    A bound of Slice without axes, which ONNX Runtime refuses, is one of a single axis. An end
    beyond every tensor is one of those that exporters write, which runtimes look for. Operands of
    Resize that hold nothing are left out. A condition of If has no more than one axis, operands of
    Range have none.
    """
    if op == "Range":
        return [v if v is None or not v.shape else g.Reshape(v, []) for v in inputs]
    if op == "If" and inputs and inputs[0] is not None and len(inputs[0].shape or ()) > 1:
        return [g.Reshape(inputs[0], [1]), *inputs[1:]]
    if op == "Resize" and g.current_opset >= RESIZE_OPTIONAL:
        return [
            v if not at or v is None or v.shape != (0,) else None for at, v in enumerate(inputs)
        ]
    if op == "Slice":
        inputs = [
            g.Reshape(v, [1]) if at and v is not None and v.shape == () else v
            for at, v in enumerate(inputs)
        ]
        inputs[2:3] = [v and _normalize_ends(g, v) for v in inputs[2:3]]
    if op == "Slice" and 3 <= len(inputs) < 5 and (starts := inputs[1]) is not None:
        count = starts.shape[0] if starts.shape else None
        if isinstance(count, int) and count <= LIMIT:
            inputs = [*inputs, *(None,) * (5 - len(inputs))]
            inputs[3] = inputs[3] or g.const(list(range(count)), starts.dtype, "axes")
            inputs[4] = inputs[4] or g.const([1] * count, starts.dtype, "steps")
    at = AXES_OPERANDS.get(op)
    if at is None or len(inputs) <= at or inputs[0] is None or inputs[0].shape is None:
        return inputs
    axes, rank = shape_data_of(inputs[at]), len(inputs[0].shape)
    listed = inputs[at]
    if axes is None or listed is None or not any(isinstance(a, int) and a < 0 for a in axes):
        return inputs
    rank += len(axes) if op == "Unsqueeze" else 0
    counted = [a + rank if isinstance(a, int) and a < 0 else a for a in axes]
    inputs[at] = g.const(counted, listed.dtype, "axes")
    return inputs
