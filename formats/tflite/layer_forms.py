"""Forms of layers by groups, and of transposed convolutions, that kernels lack."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form
from serde.passes.layout.place import to_first, to_last
from serde.version_converter.adapters.pooling import pad_window_axes

from .ops.layers import crops_as_same


def split_groups(axis: int) -> Callable[[Any, Call], Any]:
    """A rewrite by one layer for each group; ``axis`` is that of weights that counts groups."""

    def rewrite(g: Any, call: Call) -> Any:
        group = call.attrs["group"]
        x, w, b = (*call.inputs, None)[:3]
        places = {0: 1, 1: axis, 2: 0}
        parts = [
            (v,) * group if v is None
            else g.Split(v, None, axis=places[at], num_outputs=group, outputs=group)
            for at, v in enumerate((x, w, b))
        ]  # fmt: skip
        layers = [call.emit(g, *operands, group=1) for operands in zip(*parts, strict=True)]
        return g.Concat(*layers, axis=1)

    return rewrite


def pad_behind(g: Any, call: Call) -> Any:
    """A ConvTranspose without ``output_padding``, whose rows are those of the bias alone."""
    more = call.attrs["output_padding"]
    y = call.emit(g, *call.inputs[:2], output_padding=(0,) * len(more))
    y = pad_window_axes(g, y, (*(0,) * len(more), *more))
    bias = call.operand(2)
    return y if bias is None else g.Add(y, g.Unsqueeze(bias, list(range(1, y.rank - 1))))


def spread_kernel(g: Any, call: Call) -> Any:
    """A ConvTranspose by a kernel with zeros between its elements."""
    x, w, *rest = call.inputs
    dilations = call.attrs["dilations"]
    kernel = [(k - 1) * d + 1 for k, d in zip(w.static_shape[2:], dilations, strict=True)]
    places: Any = (..., *[slice(None, None, d) for d in dilations])

    def set_apart(array: Any, zero: int) -> Any:
        apart = np.full((*array.shape[:2], *kernel), zero, array.dtype)
        apart[places] = array
        return apart

    is_constant = find_source(g, w)[0] is not None
    weight = change_constant(g, w, set_apart) if is_constant else spread_computed(g, w, dilations)
    return call.emit(
        g, x, weight, *rest, dilations=(1,) * len(dilations), kernel_shape=tuple(kernel)
    )


def spread_computed(g: Any, w: Value, dilations: Ints) -> Any:
    """A computed kernel with zeros between its elements."""
    for axis, (k, d) in enumerate(zip(w.static_shape[2:], dilations, strict=True), 2):
        if d > 1:
            ends = [0] * (axis + 1) + [d - 1] + [0] * (w.rank - axis - 1)
            apart = g.Pad(g.Unsqueeze(w, [axis + 1]), [0] * (w.rank + 1) + ends)
            sizes = [*w.static_shape]
            sizes[axis] = k * d
            w = g.Slice(g.Reshape(apart, sizes), [0], [k * d - d + 1], [axis])
    return w


def find_source(g: Any, value: Value) -> tuple[Value | None, Any]:
    """The constant that a weight is or is made of, and the node that makes it; None for others."""
    if value.tensor is not None:
        return value, None
    maker = g.maker(value, "Cast", "DequantizeLinear")
    if maker is None or any(v is not None and v.tensor is None for v in maker.inputs):
        return None, None
    return maker.inputs[0], maker


def change_constant(g: Any, value: Value, change: Callable[[Any, int], Any], **attrs: Any) -> Any:
    """A weight of other elements: ``change`` of those of the file and of what is 0 among them.

    ``attrs`` are those of its DequantizeLinear, and how often its scales are ``repeated``.
    """
    source, maker = find_source(g, value)
    assert source is not None
    array, repeated = source.array(), attrs.pop("repeated", 1)
    if maker is None:
        return g.const(change(array, 0))
    factors = [v and g.const(_repeat_scales(v.array(), repeated)) for v in maker.inputs[1:]]
    is_cast = maker.op == "Cast"
    changed = g.const(change(array, 0 if is_cast else _find_zero(maker)))
    return g[maker.op](changed, *factors, **{**maker.attrs, **({} if is_cast else attrs)})


def _repeat_scales(scales: Any, times: int) -> Any:
    """Scales of so many times the channels; one stays one."""
    return scales.reshape(()) if scales.size == 1 else np.tile(scales, times)


def _find_zero(node: Any) -> int:
    """The integer that stands for 0 in all slices of a dequantized weight."""
    zeros = node.inputs[2].ints() if len(node.inputs) > 2 and node.inputs[2] is not None else (0,)
    require(len(set(zeros)) == 1, "zeros put into weights of several zero points. Quantize with "
            "one")  # fmt: skip
    return int(zeros[0])


def is_spread(call: Call) -> bool:
    """Whether weights are applied to elements apart."""
    return any(d > 1 for d in call.attrs.get("dilations") or ())


class Taps(NamedTuple):
    """The elements of an axis that results at ``stride * j``, and behind it, are made of.

    They are ``j + low`` to ``j + high``. ``kernel`` is padded to whole strides, in reverse order.
    There are ``more`` places ``j`` than elements, and ``spare`` results.
    """

    stride: int
    low: int
    high: int
    front: int
    more: int
    spare: int

    @classmethod
    def of(cls, kernel: int, stride: int, begin: int, end: int) -> Taps:
        """Those of a kernel, cropped at both ends; an end that is negative is padded."""
        low = min(-((kernel - 1 - begin) // stride), 0)
        high = max(-(-begin // stride), low)
        results = kernel - stride - begin - end  # beside one stride for each element
        more = max(-(-results // stride), -high)
        return cls(stride, low, high, stride * high - begin, more, stride * more - results)

    @property
    def size(self) -> int:
        """How many elements each result is made of."""
        return self.high - self.low + 1


def has_phases(call: Call) -> bool:
    """Whether a ConvTranspose of several groups has constant weights, and two axes at most."""
    operands = [v for v in call.inputs[1:] if v is not None]
    is_plain = (
        call.attrs["group"] > 1 and call.x.rank < 5 and call.attrs.get("output_shape") is None
    )
    return is_plain and all(_is_arranged(call.g, v, at) for at, v in enumerate(operands, 1))


def _is_arranged(g: Any, value: Value, place: int) -> bool:
    """Whether a constant operand has one scale, or one for each channel of the result."""
    source, maker = find_source(g, value)
    if source is None or maker is None or maker.op == "Cast":
        return source is not None
    if maker.inputs[1].static_shape in ((), (1,)):
        return True
    rank, axis, block = source.rank, maker.attrs["axis"], maker.attrs.get("block_size")
    return not block and axis % rank == (1 if place == 1 else 0)


def convolve_phases(g: Any, call: Call) -> Any:
    """A Conv whose channels are the places in a stride, of the image that is repeated for each.

    Zeros between elements of the image, which a ConvTranspose stands for, are not computed with.
    """
    x, w, b = (*call.inputs, None)[:3]
    strides, group, half = call.attrs["strides"], call.attrs["group"], x.rank - 2
    more = call.attrs.get("output_padding") or (0,) * half
    pads = call.attrs.get("pads") or (0,) * 2 * half
    ends = [end - m for end, m in zip(pads[half:], more, strict=True)]
    taps = [*map(Taps.of, w.static_shape[2:], strides, pads[:half], ends)]
    places = math.prod(strides)

    def arrange(array: Any, zero: int) -> Any:
        return arrange_phases(array, zero, group, taps)

    weights = change_constant(g, w, arrange, axis=0, repeated=group * places)
    bias = b and change_constant(g, b, lambda a, _: np.tile(a, places), repeated=places)
    image = x if places == 1 else repeat_channels(g, x, places)
    y = g.Conv(
        image, weights, bias, group=group * places, kernel_shape=tuple([t.size for t in taps]),
        strides=(1,) * half, dilations=(1,) * half,
        pads=(*(-t.low for t in taps), *(t.more + t.high for t in taps)),
    )  # fmt: skip
    y = place_phases(g, y, strides, w.static_shape[1] * group)
    spare = [-t.spare for t in taps]
    return pad_window_axes(g, y, (*(0,) * half, *spare)) if any(spare) else y


def repeat_channels(g: Any, x: Value, times: int) -> Any:
    """The channels of an image one after the other, several times."""
    last = g.Transpose(x, perm=to_last(x.rank))
    return g.Transpose(g.Tile(last, [*(1,) * (x.rank - 1), times]), perm=to_first(x.rank))


def arrange_phases(array: Any, zero: int, group: int, taps: Sequence[Taps]) -> Any:
    """Weights of a ConvTranspose as those of a Conv for each place in a stride."""
    channels, per_group, *kernel = array.shape
    sizes = [(t.size, t.stride) for t in taps]
    ends = [(t.front, t.size * t.stride - t.front - k) for k, t in zip(kernel, taps, strict=True)]
    padded = np.pad(array, [(0, 0), (0, 0), *ends], constant_values=zero)
    parts = padded.reshape(group, channels // group, per_group, *sum(sizes, ()))
    axes = range(3, parts.ndim, 2)
    order = (*(axis + 1 for axis in axes), 0, 2, 1, *axes)
    phases = np.flip(parts, tuple(axes)).transpose(order)
    return phases.reshape(-1, channels // group, *(t.size for t in taps))


def place_phases(g: Any, y: Value, strides: Ints, channels: int) -> Any:
    """The image whose places in each stride are groups of channels."""
    if math.prod(strides) == 1:
        return y
    if len(strides) == 2 and len({*strides}) == 1:
        return g.DepthToSpace(y, blocksize=strides[0])
    image = g.Transpose(y, perm=to_last(y.rank))
    rows = g.sizes_of(image)[1:-2]
    if strides[0] > 1 and rows:
        behind = strides[1] * channels
        parts = g.reshape(image, [0, *rows, -1, strides[0], behind])
        rows = [g.multiply_sizes([*rows, strides[0]])]
        image = g.reshape(g.Transpose(parts, perm=(0, 1, 3, 2, 4)), [0, *rows, -1, behind])
    return g.Transpose(g.reshape(image, [0, *rows, -1, channels]), perm=to_first(y.rank))


def crops(call: Call) -> bool:
    """Whether a ConvTranspose has pads that SAME does not stand for."""
    pads, kernel = call.attrs.get("pads") or (), call.inputs[1].ranked_shape[2:]
    sizes = call.x.ranked_shape[2:]
    return any(pads) and not (
        len(sizes) < 3 and crops_as_same(sizes, kernel, call.attrs["strides"], pads)
    )


def crops_what_it_adds(call: Call) -> bool:
    """Whether there are pads at the end of an axis that has ``output_padding``."""
    more, pads = call.attrs.get("output_padding") or (), call.attrs.get("pads") or ()
    return any(m and end > 0 for m, end in zip(more, pads[len(more) :], strict=False))


def crop_less(g: Any, call: Call) -> Any:
    """A ConvTranspose that is cropped less, in the place of ``output_padding``."""
    more, pads = call.attrs["output_padding"], call.attrs["pads"]
    begins, ends = pads[: len(more)], pads[len(more) :]
    kept = [min(m, max(end, 0)) for m, end in zip(more, ends, strict=True)]
    left = [m - k for m, k in zip(more, kept, strict=True)]
    ends = [end - k for end, k in zip(ends, kept, strict=True)]
    return call.emit(g, *call.inputs, pads=(*begins, *ends), output_padding=tuple(left))


SPREAD = Form("dilations", is_spread, spread_kernel)
GROUPS = Form("group", lambda call: call.attrs["group"] > 1, split_groups(0))
PHASES = Form("group", has_phases, convolve_phases)
TRANSPOSED = [
    SPREAD,
    PHASES,
    GROUPS,
    Form("pads and output_padding", crops_what_it_adds, crop_less),
    Form("pads", crops, windows.crop_behind),
    Form("output_padding", lambda call: any(call.attrs.get("output_padding") or ()), pad_behind),
]
