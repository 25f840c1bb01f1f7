"""Pad: constants, edges and reflections around a tensor."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.padding import decompose_pad

from ..rules import Pairs, reads, reads_second
from ..target import legalizations, scalar_value, writes

EXTREMES = {"maximum": "ReduceMax", "minimum": "ReduceMin"}


@reads("Pad")
def read_pad(g, x, *, mode: str, pad_width: Ints, constant_value=0.0):
    require(mode in ("constant", "edge", "reflect"), f"mode={mode!r} is unknown")
    fill = g.scalar(constant_value, x) if mode == "constant" and constant_value else None
    return g.Pad(x, pad_width[::2] + pad_width[1::2], fill, mode=mode)


@reads("_npi_pad", only={"reflect_type": ("even",)})
def read_numpy_pad(g, x, *, pad_width: Pairs, mode="constant", constant_value=0.0):
    """Reflections that go back and forth, and NumPy's other modes, are made axis by axis."""
    known = ("constant", "edge", "reflect", "symmetric", *EXTREMES)
    require(mode in known, f"mode={mode!r}")
    require(len(pad_width) == x.rank, f"pad_width={pad_width} of a tensor of {x.rank} axes")
    sizes = zip(x.ranked_shape, pad_width, strict=True)
    is_long = any(isinstance(d, int) and max(pair) >= d for d, pair in sizes)
    if mode in known[3:] or (mode == "reflect" and is_long):
        for axis, pair in enumerate(pad_width):
            x = pad_axis(g, x, axis, pair, mode) if any(pair) else x
        return x
    fill = g.scalar(constant_value, x) if mode == "constant" and constant_value else None
    return g.Pad(x, [a for a, _ in pad_width] + [b for _, b in pad_width], fill, mode=mode)


def pad_axis(g, x: Value, axis: int, pair: tuple[int, int], mode: str):
    """``x`` with elements of its own, or their extremes, before and behind it along an axis."""
    if mode not in EXTREMES:
        return g.Gather(x, reflected_places(g, g.size_of(x, axis), pair, mode), axis=axis)
    extreme = g[EXTREMES[mode]](x, [axis])
    before, behind = (g.repeat(extreme, count, axis) if count else None for count in pair)
    return g.Concat(*(part for part in (before, x, behind) if part is not None), axis=axis)


def reflected_places(g, size: Value | int, pair: tuple[int, int], mode: str):
    """Places along an axis that go back and forth; the ends are met twice where symmetric."""
    length, twice = g.shape_from([size]), int(mode == "symmetric")
    turn = g.Sub(g.Mul(length, 2), 2 - 2 * twice)
    places = g.Sub(g.index_range(g.Add(length, sum(pair))), pair[0])
    forth = g.Mod(places, g.Max(turn, g.const(1, DType.INT64)))
    return g.Min(forth, g.Sub(g.Sub(turn, twice), forth))


@reads_second("_npi_pad", only={"reflect_type": ("even",)})
def read_second_pad(g, x, *, pad_width: Pairs, mode="constant", constant_values=0.0):
    return read_numpy_pad(g, x, pad_width=pad_width, mode=mode, constant_value=constant_values)


def pad_images(s, x: Value, pads, fill: float):
    """Pad the axes behind the channels; MXNet pads images and volumes only."""
    half = len(pads) // 2
    require(x.type.kind == "f", f"pads of {x.type.value} elements")
    require(x.rank in (4, 5), f"pads {pads} that differ at the two ends, of {x.rank} axes")
    width = (0, 0, 0, 0, *(p for ends in zip(pads[:half], pads[half:], strict=True) for p in ends))
    return emit_pad(s, x, mode="constant", pad_width=width, constant_value=fill)


def emit_pad(s, x: Value, **attrs):
    """MXNet 1.2 pads float32 only."""
    if s.release.number >= 10300 or x.type is DType.FLOAT32:
        return s.Pad(x, **attrs)
    require(x.type is DType.FLOAT16, f"MXNet {s.release.name} pads no {x.type.value}")
    return s.Cast(s.Pad(s.Cast(x, dtype="float32"), **attrs), dtype="float16")


def is_symmetric(pads: Ints) -> bool:
    """Whether both ends have the same padding."""
    half = len(pads) // 2
    return pads[:half] == pads[half:]


@writes("Pad")
def write_pad(s, x, pads, fill=None, axes=None, *, mode):
    require(axes is None and mode in ("constant", "edge", "reflect"), f"{mode} pads of some axes")
    widths = pads.ints()
    half = len(widths) // 2
    ends = list(zip(widths[:half], widths[half:], strict=True))
    require(x.type.kind == "f", f"pads of {x.type.value} elements")
    image = x.rank in (4, 5) and set(ends[:2]) == {(0, 0)} and min(widths) >= 0
    require(image, f"pads {widths}: MXNet pads the axes of images and volumes behind the channels")
    if mode == "constant":
        value = 0.0 if fill is None else scalar_value(fill)
        require(value is not None, "a dynamic fill")
        return pad_images(s, x, widths[2:half] + widths[half + 2 :], value)
    return emit_pad(s, x, mode=mode, pad_width=tuple(p for pair in ends for p in pair))


@legalizations("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode):
    """MXNet pads the last axes of images and volumes of floats; others are gathered or joined."""
    amounts, chosen = pads.ints(), range(x.rank) if axes is None else axes.ints()
    half = len(amounts) // 2
    ends = dict(zip(chosen, zip(amounts[:half], amounts[half:], strict=True), strict=True))
    widths = [ends.get(a, (0, 0)) for a in range(x.rank)]
    behind = x.rank in (3, 4, 5) and widths[:2] == [(0, 0)] * 2 and min(amounts) >= 0
    native = behind and x.type.kind == "f" and x.rank > 3
    full = [b for b, _ in widths] + [e for _, e in widths]
    has_mode = mode in ("constant", "edge", "reflect") and (fill is None or fill.tensor)
    if native and has_mode:
        return None if axes is None else g.Pad(x, full, fill, mode=mode)
    front = list(range(4 - x.rank))
    is_inner = all(pair == (0, 0) for pair in widths[:-2]) and min(amounts, default=0) >= 0
    if has_mode and front and is_inner and x.type.kind == "f" and not x.is_static:
        none = [0] * len(front)
        inner = [*none, *full[: x.rank], *none, *full[x.rank :]]
        return g.Squeeze(g.Pad(g.Unsqueeze(x, front), inner, fill, mode=mode), front)
    return decompose_pad(g, x, g.const(full, DType.INT64), fill, mode)
