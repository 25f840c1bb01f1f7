"""Pad: constants, edges and reflections around a tensor."""

from __future__ import annotations

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.expressions import number
from serde.version_converter.adapters.padding import decompose_pad, expand_pads

from ..rules import Pairs, reads
from ..target import INLINED, emit_scalar, legalizations, set_type, writes
from .shape import FAR, static_sizes

MODES = ("constant", "edge", "reflect")


@reads("nn.pad")
def read_pad(g, x, fill, *, pad_width: Pairs, pad_mode="constant"):
    return pad_with(g, x, fill, split_pads(pad_width), pad_mode)


@reads("nn.mirror_pad")
def read_mirror_pad(g, x, *, pad_width: Pairs, mode="SYMMETRIC"):
    """REFLECT leaves the border out, SYMMETRIC repeats it."""
    before, after = split_pads(pad_width)
    if mode == "REFLECT":
        return g.Pad(x, before + after, mode="reflect")
    require(mode == "SYMMETRIC", f"mode={mode!r} is unknown")
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        parts = [x]
        if b:
            parts.insert(0, g.slice_axis(x, axis, b - 1, -FAR - 1, -1))
        if a:
            parts.append(g.slice_axis(x, axis, -1, -a - 1, -1))
        x = g.Concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


def split_pads(pad_width) -> tuple[Ints, Ints]:
    """Pads before and behind each axis."""
    flat = all(isinstance(p, tuple) and len(p) == 2 for p in pad_width)
    require(flat, f"pad_width={pad_width}: not two numbers an axis")
    for pair in pad_width:
        require(all(isinstance(p, int) for p in pair), "pad_width is dynamic")
    return tuple(p[0] for p in pad_width), tuple(p[1] for p in pad_width)


def pad_with(g, x: Value, fill: Value, widths: tuple[Ints, Ints], mode: str):
    require(mode in MODES, f"pad_mode={mode!r} is unknown")
    before, after = widths
    work = g.cast(x, DType.INT32) if x.type in (DType.INT16, DType.UINT16) else x
    value = fill_of(g, fill, work) if mode == "constant" else None
    return g.cast(g.Pad(work, before + after, value, mode=mode), x.type)


def fill_of(g, fill: Value, x: Value):
    """The fill as a scalar of the type of ``x``, None for zero."""
    if fill.tensor is not None and not fill.array().any():
        return None
    fill = g.cast(fill, x.type)
    return fill if fill.shape == () else g.Reshape(fill, [])


@reads("dyn.nn.pad", ignore=("pad_width",))
def read_dyn_pad(g, x, widths, fill, *, pad_mode="constant"):
    require(pad_mode in MODES, f"pad_mode={pad_mode!r} is unknown")
    order = g.Reshape(g.Transpose(g.cast(widths, DType.INT64), perm=(1, 0)), [-1])
    return g.Pad(x, order, fill_of(g, fill, x), mode=pad_mode)


@legalizations("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """Pads of all axes, none below zero; wrapping is a concatenation.

    Of dynamic sizes, TVM pads with a constant of a type that it inlines.
    """
    is_computed = fill is not None and fill.tensor is None
    if not x.is_static and x.type not in INLINED:
        pad_dtype = DType.FLOAT32 if x.type.kind == "f" else DType.INT64
        number = fill if fill is None else g.cast(fill, pad_dtype)
        return g.cast(g.Pad(g.cast(x, pad_dtype), pads, number, axes, mode=mode), x.type)
    if is_computed and mode == "constant" and not (x.is_static and pads.tensor is not None):
        return _pad_by_choice(g, x, pads, fill, axes)
    if static_sizes(pads) is None or (axes is not None and static_sizes(axes) is None):
        require(mode != "wrap", "wrapping by dynamic pads")
        every = expand_pads(g, x, pads, axes)
        return None if every is pads else g.Pad(x, every, fill, mode=mode)
    full = static_sizes(expand_pads(g, x, pads, axes)) or ()
    if min(full, default=0) < 0:
        added = tuple(max(0, p) for p in full)
        if mode == "constant":  # what is cut off may be padding of the other end
            return _crop_negative_pads(g, g.Pad(x, added, fill, mode=mode), full)
        x, full = _crop_negative_pads(g, x, full), added
    if mode == "wrap":
        return _pad_wrap(g, x, full)
    if mode == "reflect" and _pads_dynamic_axes(x, full):
        return decompose_pad(g, x, g.const(full), fill, mode)
    if full == static_sizes(pads) and axes is None:
        return None
    return g.Pad(x, full, fill, mode=mode)


def _pads_dynamic_axes(x: Value, pads: Ints) -> bool:
    """Whether an axis that is padded has a dynamic size, which TVM's ``mirror_pad`` loses."""
    ends = zip(x.ranked_shape, pads[: x.rank], pads[x.rank :], strict=True)
    return any(not isinstance(size, int) and (begin or end) for size, begin, end in ends)


def _pad_by_choice(g, x, pads, fill, axes):
    """Padded with a computed number, with which TVM finds no dynamic shape."""
    ones = g.Expand(g.const(1, DType.INT32), g.Shape(x))
    inside = g.Equal(g.Pad(ones, pads, None, axes, mode="constant"), 1)
    return g.Where(inside, g.Pad(x, pads, None, axes, mode="constant"), fill)


def _crop_negative_pads(g, x, pads):
    """``x`` without what pads below zero take away."""
    starts = [max(0, -p) for p in pads[: x.rank]]
    ends = [min(0, p) or FAR for p in pads[x.rank :]]
    return g.Slice(x, starts, ends, list(range(x.rank)), [1] * x.rank)


def _pad_wrap(g, x, pads):
    """``x`` followed by itself, as far as the pads go."""
    for axis in range(x.rank):
        before, after = pads[axis], pads[axis + x.rank]
        if not before and not after:
            continue
        size = x.ranked_shape[axis]
        require(isinstance(size, int), "wrapping an axis of dynamic size")
        x = g.Gather(x, arrays.arange(-before, size + after) % size, axis=axis)
    return x


@writes("Pad", only={"mode": MODES})
def write_pad(r, x, pads, fill=None, axes=None, *, mode: str):
    widths = static_sizes(pads)
    value = emit_scalar(r, 0, x.type) if fill is None else _squeeze_scalar(r, fill)
    if widths is None:
        require(axes is None, "pads of some axes that are dynamic")
        ends = r.transpose(r.reshape(pads, newshape=(2, -1)), axes=(1, 0))
        return r.dyn.nn.pad(x, ends, value, pad_mode=mode)
    half = len(widths) // 2
    pairs = tuple(zip(widths[:half], widths[half:], strict=True))
    if mode == "reflect":
        return r.nn.mirror_pad(x, pad_width=pairs, mode="REFLECT")
    return r.nn.pad(x, value, pad_width=pairs, pad_mode=mode)


def _squeeze_scalar(r, value: Value) -> Value:
    """A number that may have an axis of size 1, without."""
    constant = number(value)
    if constant is not None:
        return emit_scalar(r, constant, value.type)
    return value if value.rank == 0 else set_type(r.reshape(value, newshape=()), value.dtype, ())
