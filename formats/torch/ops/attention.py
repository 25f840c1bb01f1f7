"""Attention, as the one call ``F.scaled_dot_product_attention``."""

from __future__ import annotations

import math
from functools import partial

from serde.ir.graph import IR_OPSET, DType, Value
from serde.spec.schema import ELEMENT_CODES
from serde.version_converter.adapters.function_bodies import expand_function

from ..target import TorchBuilder, WhileTrained, legalizations, writes
from .elementwise import shorten

UNREAD = (
    "q_num_heads",
    "kv_num_heads",
    "softmax_precision",
    "softcap",
    "left_window_size",
    "right_window_size",
    "qk_matmul_output_mode",
)  # fmt: skip  (the usual, or written out)


def is_mask_of(mask: Value | None, q: Value, k: Value) -> bool:
    """Whether PyTorch adds a mask as ONNX does, or hides what is false in it."""
    if mask is None:
        return True
    if mask.rank > 4 or mask.rank < 2 or None in (q.shape, k.shape):
        return False
    is_typed = mask.type in (DType.BOOL, q.type)
    return is_typed and mask.ranked_shape[-2:] == (q.ranked_shape[-2], k.ranked_shape[-2])


@legalizations("Attention")
def legalize_attention(
    g, q: Value, k: Value, v: Value, mask: Value | None = None, *more: Value | None,
    q_num_heads: int | None = None, kv_num_heads: int | None = None, is_causal: int,
    scale: float | None = None, outputs: int = 1, **form,
):  # fmt: skip
    """Forms that PyTorch has none of are written out; heads side by side get an axis."""
    if q.rank == 3 and q_num_heads and kv_num_heads:
        counts = q_num_heads, kv_num_heads, kv_num_heads
        heads = tuple(map(partial(_split_heads, g), (q, k, v), counts))
    else:
        heads = q, k, v
    is_usual = (
        outputs == 1 and not any(more) and form["softcap"] == 0
        and form["left_window_size"] < 0 and form["right_window_size"] < 0
        and form.get("softmax_precision") in (None, ELEMENT_CODES[q.type])
        and q.type == k.type == v.type and not (is_causal and mask is not None)
    )  # fmt: skip
    if is_usual:
        a, b, c = heads
        if is_mask_of(mask, a, b):
            if a is q:
                return None
            y = g.Attention(a, b, c, mask, is_causal=is_causal, scale=scale)
            return g.Reshape(g.Transpose(y, perm=(0, 2, 1, 3)), [0, 0, -1])
    form |= {"is_causal": is_causal, "scale": scale, "outputs": outputs}
    form |= {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    with g.at_opset(IR_OPSET - 1):
        return expand_function("Attention", g, q, k, v, mask, *more, **form)


def _split_heads(g, x: Value, count: int) -> Value:
    return g.Transpose(g.Reshape(x, [0, 0, count, -1]), perm=(0, 2, 1, 3))  # type: ignore[no-any-return]


@writes("Attention", ignore=UNREAD)
def write_attention(
    t: TorchBuilder, q: Value, k: Value, v: Value, mask: Value | None = None, *, is_causal: int,
    scale: float | None = None, dropout: float = 0.0,
):  # fmt: skip
    """``dropout`` is the rate that weights of attention are left out with (``find_attention``)."""
    size = q.ranked_shape[-1]
    is_usual = isinstance(size, int) and scale is not None and math.isclose(
        scale, 1 / math.sqrt(size), rel_tol=1e-6)  # fmt: skip
    heads = q.ranked_shape[-3], k.ranked_shape[-3]
    return t.F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=WhileTrained(shorten(dropout)) if dropout else None,
        is_causal=True if is_causal else None, enable_gqa=True if heads[0] != heads[1] else None,
        scale=None if is_usual or scale is None else shorten(scale),
    )  # fmt: skip
