"""Products, convolutions, pooling, recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import DType

from ..generator import Generator, Maker


def make_matmul(g: Generator) -> None:
    a = g.operand(g.types("MatMul"), 1)
    shape = g.of(a).shape
    other = (shape[-1], g.size())
    if g.chance(0.2):
        other = (shape[-1],)
    elif len(shape) > 2 and g.chance(0.5):
        other = (*g.broadcastable(shape[:-2]), *other)
    g.emit("MatMul", [a, g.like(g.dtype(a), other)])


def make_gemm(g: Generator) -> None:
    a = g.operand(g.types("Gemm"), 2, 2)
    flags = {n: g.choice((0, 1)) for n in ("transA", "transB") if g.chance(0.5)}
    rows, inner = g.of(a).shape[:: -1 if flags.get("transA") else 1]
    columns = g.size()
    b = (columns, inner) if flags.get("transB") else (inner, columns)
    operands = [a, g.like(g.dtype(a), b)]
    if g.chance(0.7):
        operands.append(g.like(g.dtype(a), g.broadcastable((rows, columns))))
    factors = {n: g.choice((0.5, 1.0, 2.0, -1.0)) for n in ("alpha", "beta") if g.chance(0.4)}
    g.emit("Gemm", operands, **flags, **factors)


EQUATIONS = {  # each with the ranks of its operands
    "ij,jk->ik": ("ij", "jk"), "bij,bjk->bik": ("bij", "bjk"), "ij->ji": ("ij",), "ii->i": ("ii",),
    "ij,ij->": ("ij", "ij"), "...ij,...jk->...ik": ("abij", "abjk"), "i,j->ij": ("i", "j"),
    "bhid,bhjd->bhij": ("bhid", "bhjd"), "ij,j": ("ij", "j"), "ij->i": ("ij",),
    "bij,jk,bkl->bil": ("bij", "jk", "bkl"), "...i->...": ("abi",),
}  # fmt: skip


def make_einsum(g: Generator) -> None:
    equation = g.choice(EQUATIONS)
    sizes = {letter: g.size() for letter in "abdhijkl"}
    dtype = g.pick_type(g.types("Einsum"))
    shapes = [tuple(sizes[c] for c in letters) for letters in EQUATIONS[equation]]
    g.emit("Einsum", [g.like(dtype, shape) for shape in shapes], equation=equation)


def make_det(g: Generator) -> None:
    size = g.choice((1, 2, 3, 4))
    shape = (*g.shape(0, 2), size, size)
    g.emit("Det", [g.like(g.pick_type(g.types("Det")), shape)])


def image(g: Generator, op: str, channels: int | None = None) -> str:
    """An image of one to three axes, mostly one that is there."""
    if channels is None and g.chance(0.6):
        name = g.existing(g.types(op), 3, 5)
        if name is not None:
            return name
    axes = g.choice((1, 2, 2, 2, 3))
    space = tuple(g.choice((3, 4, 5, 6)) for _ in range(axes))
    if g.symbolic and g.chance(0.3):
        space = tuple(g.choice((6, 7)) for _ in range(axes))
    channels = g.choice((1, 2, 3, 4)) if channels is None else channels
    return g.like(g.pick_type(g.types(op)), (g.size(), channels, *space))


def window(g: Generator, axes: int, padded: bool = True) -> dict[str, Any]:
    """Strides, dilations and pads, each left out now and then."""
    attrs: dict[str, Any] = {}
    if g.chance(0.6):
        attrs["strides"] = [g.choice((1, 1, 2, 3)) for _ in range(axes)]
    if g.chance(0.4):
        attrs["dilations"] = [g.choice((1, 1, 2)) for _ in range(axes)]
    if padded and g.chance(0.6):
        attrs["pads"] = [g.choice((0, 0, 1, 2)) for _ in range(2 * axes)]
    elif padded and g.chance(0.3):
        attrs["auto_pad"] = g.choice(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    return attrs


def make_conv(g: Generator) -> None:
    x = image(g, "Conv")
    shape = g.of(x).shape
    groups = g.choice([k for k in range(1, shape[1] + 1) if shape[1] % k == 0] or [1])
    filters = groups * g.choice((1, 1, 2))
    kernel = tuple(g.choice((1, 2, 3)) for _ in shape[2:])
    operands = [x, g.leaf(g.dtype(x), (filters, shape[1] // groups, *kernel))]
    if g.chance(0.6):
        operands.append(g.leaf(g.dtype(x), (filters,)))
    attrs = window(g, len(kernel))
    sizes = kernel if g.chance(0.6) else None
    g.emit("Conv", operands, group=groups, kernel_shape=sizes, **attrs)


def make_conv_transpose(g: Generator) -> None:
    x = image(g, "ConvTranspose")
    shape = g.of(x).shape
    groups = g.choice([k for k in range(1, shape[1] + 1) if shape[1] % k == 0] or [1])
    filters = g.choice((1, 2))
    kernel = tuple(g.choice((1, 2, 3)) for _ in shape[2:])
    operands = [x, g.leaf(g.dtype(x), (shape[1], filters, *kernel))]
    if g.chance(0.5):
        operands.append(g.leaf(g.dtype(x), (filters * groups,)))
    attrs = window(g, len(kernel))
    if g.chance(0.3) and "strides" in attrs:
        attrs["output_padding"] = [g.rng.randrange(s) for s in attrs["strides"]]
    g.emit("ConvTranspose", operands, group=groups, **attrs)


def make_conv_integer(g: Generator) -> None:
    x = g.like(g.choice((DType.UINT8, DType.INT8)), (g.size(), 2, 5, 4))
    kind = g.choice((DType.UINT8, DType.INT8))
    operands = [x, g.leaf(kind, (3, 2, 2, 2))]
    if g.chance(0.5):
        operands.append(g.leaf(g.dtype(x), ()))
        if g.chance(0.5):
            operands.append(g.leaf(kind, ()))
    g.emit("ConvInteger", operands, **window(g, 2))


def make_deform_conv(g: Generator) -> None:
    dtype = g.pick_type(g.types("DeformConv"))
    x = g.like(dtype, (g.choice((1, 2)), 2, 4, 5))
    w = g.leaf(dtype, (2, 2, 2, 2))
    n = g.of(x).shape[0]
    offset = g.leaf(dtype, (n, 8, 3, 4))
    operands = [x, w, offset]
    if g.chance(0.5):
        operands += ["", g.leaf(dtype, (n, 4, 3, 4))]
    g.emit("DeformConv", operands)


def make_pool(op: str, g: Generator) -> None:
    x = image(g, op)
    axes = g.of(x).ndim - 2
    attrs = window(g, axes)
    attrs["kernel_shape"] = [g.choice((1, 2, 2, 3)) for _ in range(axes)]
    if g.chance(0.4):
        attrs["ceil_mode"] = g.choice((0, 1))
    outputs = 1
    if op == "AveragePool" and g.chance(0.5):
        attrs["count_include_pad"] = g.choice((0, 1))
    elif op == "LpPool" and g.chance(0.5):
        attrs["p"] = g.choice((1, 2, 3))
    elif op == "MaxPool":
        outputs = g.choice((1, 1, 2))
        if outputs == 2 and g.chance(0.3):
            attrs["storage_order"] = g.choice((0, 1))
    g.emit(op, [x], outputs=outputs, **attrs)


def make_max_unpool(g: Generator) -> None:
    x = image(g, "MaxUnpool")
    axes = g.of(x).ndim - 2
    attrs = {"kernel_shape": [2] * axes, "strides": [2] * axes}
    pooled, places = g.emit("MaxPool", [x], outputs=2, **attrs)
    g.emit("MaxUnpool", [pooled, places], **attrs)


def make_col_to_im(g: Generator) -> None:
    dtype = g.pick_type(g.types("Col2Im"))
    block, space = (2, 2), (g.choice((4, 5)), g.choice((4, 5)))
    attrs = window(g, 2)
    attrs.pop("auto_pad", None)
    pads = attrs.get("pads", [0] * 4)
    count = 1
    for axis in range(2):
        reach = attrs.get("dilations", [1, 1])[axis] * (block[axis] - 1) + 1
        room = space[axis] + pads[axis] + pads[axis + 2] - reach
        count *= room // attrs.get("strides", [1, 1])[axis] + 1
    x = g.like(dtype, (g.size(), 4 * g.choice((1, 2)), count))
    g.emit("Col2Im", [x, g.const(space), g.const(block)], **attrs)


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def make_recurrent(op: str, g: Generator) -> None:
    """Of floats whose range no unbounded activation leaves in a few steps."""
    dtype = g.pick_type(g.types(op) & {DType.FLOAT32, DType.FLOAT64})
    length, batch = g.size() or 1, g.size() or 1  # ONNX Runtime ends with none
    size, hidden = g.choice((1, 2, 3)), g.choice((1, 2, 3))
    layout = g.choice((0, 0, None))
    direction = g.choice(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    gates = GATES[op] * hidden
    weights = [g.leaf(dtype, (ways, gates, n), True) for n in (size, hidden)]
    operands = [g.like(dtype, (length, batch, size)), *weights]
    operands.append(g.leaf(dtype, (ways, 2 * gates)) if g.chance(0.5) else "")
    lengths = g.chance(0.3) and length > 0
    seq_lens = g.numbers.integers(1, length + 1, (batch,)).astype(np.int32) if lengths else None
    operands.append("" if seq_lens is None else g.hold(seq_lens))
    operands.append(g.leaf(dtype, (ways, batch, hidden)) if g.chance(0.5) else "")
    if op == "LSTM" and g.chance(0.5):
        operands.append(g.leaf(dtype, (ways, batch, hidden)))
        if g.chance(0.5):
            operands.append(g.leaf(dtype, (ways, 3 * hidden)))
    while operands[-1] == "":
        operands.pop()
    attrs: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "layout": layout}
    attrs["clip"] = g.choice((0.5, 2.0)) if g.chance(0.15) else None
    if op == "GRU":
        attrs["linear_before_reset"] = g.choice((0, 1, None))
    if op == "LSTM":
        attrs["input_forget"] = g.choice((0, 1, None, None))
    if g.chance(0.25):
        names = ("Tanh", "Sigmoid", "HardSigmoid", "Softsign")
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[op] * ways
        attrs["activations"] = [g.choice(names) for _ in range(count)]
    g.emit(op, operands, outputs=3 if op == "LSTM" else 2, **attrs)


def make_attention(g: Generator) -> None:
    dtype = g.pick_type(g.types("Attention"))
    batch, length, past, depth = g.size(), g.size(), g.size(), g.choice((2, 4))
    heads = g.choice((1, 2, 4))
    shared = g.choice([k for k in (1, 2, 4) if heads % k == 0])
    attrs: dict[str, Any] = {"is_causal": g.choice((0, 1, None)),
             "softcap": g.choice((2.0, None, None)), "scale": g.choice((0.3, None))}  # fmt: skip
    flat = g.chance(0.4)
    if flat:
        attrs |= {"q_num_heads": heads, "kv_num_heads": shared}
        shapes = [(batch, length, heads * depth), *[(batch, past, shared * depth)] * 2]
    else:
        shapes = [(batch, heads, length, depth), *[(batch, shared, past, depth)] * 2]
    operands = [g.leaf(dtype, s) for s in shapes]
    if g.chance(0.5):
        kind = g.choice((dtype, DType.BOOL))
        operands.append(g.leaf(kind, (length, past)))
    g.emit("Attention", operands, **attrs)


def make_rotary(g: Generator) -> None:
    dtype = g.pick_type(g.types("RotaryEmbedding"))
    batch, heads, length, depth = g.size(), g.choice((1, 2)), g.size(), g.choice((2, 4))
    x = g.like(dtype, (batch, heads, length, depth))
    caches = [g.leaf(dtype, (batch, length, depth // 2)) for _ in range(2)]
    g.emit("RotaryEmbedding", [x, *caches], interleaved=g.choice((0, 1, None)))


def make_swiglu(g: Generator) -> None:
    x = g.operand(g.types("SwiGLU"), 1)
    g.emit("SwiGLU", [x])


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    skipped = ("make_pool", "make_recurrent")
    for name, make in globals().items():
        if name.startswith("make_") and name not in skipped:
            yield make
    yield from (partial(make_pool, op) for op in ("AveragePool", "MaxPool", "LpPool"))
    yield from (partial(make_recurrent, op) for op in GATES)
    yield make_conv
