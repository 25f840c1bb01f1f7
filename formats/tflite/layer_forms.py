"""Forms of layers by groups, and of transposed convolutions, that kernels lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from serde.errors import require
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form
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
    maker = None if w.tensor is not None else g.producer(w)
    constant, fill = (w, 0) if maker is None else (maker.inputs[0], _find_zero(maker))
    array = constant.array()
    kernel = [(k - 1) * d + 1 for k, d in zip(array.shape[2:], dilations, strict=True)]
    spread = np.full((*array.shape[:2], *kernel), fill, array.dtype)
    places: Any = (..., *[slice(None, None, d) for d in dilations])
    spread[places] = array
    weight = g.const(spread)
    if maker is not None:
        weight = g.DequantizeLinear(weight, *maker.inputs[1:], **maker.attrs)
    return call.emit(
        g, x, weight, *rest, dilations=(1,) * len(dilations), kernel_shape=tuple(kernel)
    )


def _find_zero(node: Any) -> int:
    """The integer that stands for 0 in all slices of a dequantized weight."""
    zeros = node.inputs[2].ints() if len(node.inputs) > 2 and node.inputs[2] is not None else (0,)
    require(len(set(zeros)) == 1, "dilations and weights of several zero points. Quantize with one")
    return int(zeros[0])


def is_spread(call: Call) -> bool:
    """Whether constant weights, dequantized or not, are applied to elements apart."""
    w = call.inputs[1]
    maker = call.g.maker(w, "DequantizeLinear") if w.tensor is None else None
    is_constant = w.tensor is not None or (
        maker is not None and all(v is None or v.tensor is not None for v in maker.inputs)
    )
    return is_constant and any(d > 1 for d in call.attrs.get("dilations") or ())


def crops(call: Call) -> bool:
    """Whether a ConvTranspose has pads that SAME does not stand for."""
    pads, kernel = call.attrs.get("pads") or (), call.inputs[1].ranked_shape[2:]
    sizes = call.x.ranked_shape[2:]
    fits = len(sizes) < 3 and all(isinstance(d, int) for d in sizes)
    is_same = (
        fits and {*call.attrs["dilations"]} == {1}
        and crops_as_same(sizes, kernel, call.attrs["strides"], pads)
    )  # fmt: skip
    return any(pads) and not is_same


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


GROUPS = Form("group", lambda call: call.attrs["group"] > 1, split_groups(0))
TRANSPOSED = [
    GROUPS,
    Form("pads and output_padding", crops_what_it_adds, crop_less),
    Form("pads", crops, windows.crop_behind),
    Form("output_padding", lambda call: any(call.attrs.get("output_padding") or ()), pad_behind),
    Form("dilations", is_spread, spread_kernel),
]  # fmt: skip
