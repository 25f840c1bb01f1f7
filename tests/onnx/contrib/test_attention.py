"""Attention, and the rotary embeddings in front of it, beside ONNX Runtime's."""

import numpy as np
import pytest

from tests.onnx.contrib.cases import Case, check, compare, convert, refusal, run

rng = np.random.default_rng(1)
f32 = np.float32
B, S, L, D, N = 3, 6, 5, 24, 4  # batch, lengths of queries and keys, hidden size, heads


def floats(*shape):
    return rng.standard_normal(shape).astype(f32)


def ints(values):
    return np.array(values, np.int32)


def mask(*shape):
    return (rng.random(shape) > 0.4).astype(np.int32)


x, w, b, past = floats(B, S, D), floats(D, 3 * D) * f32(0.3), floats(3 * D), floats(2, B, N, 3, 6)


def attention(*rest, outputs="y", **attrs):
    return Case("Attention", [x, w, b, *rest], {"num_heads": N, **attrs}, outputs)


ATTENTION = [
    attention(),
    attention(unidirectional=1),
    attention(scale=0.3),
    Case("Attention", [x, w], {"num_heads": N}),
    *(
        attention(m, unidirectional=causal, mask_filter_value=low)
        for m in (ints([6, 3, 1]), ints([0, 3, 1]), ints([6, 5, 4, 2, 0, 1]), mask(B, S),
                  np.zeros((B, S), np.int32), mask(B, S, S))
        for causal, low in ((0, -10000.0), (1, -50.0))
    ),
    attention(None, past, outputs="yp"),
    attention(None, past, outputs="yp", unidirectional=1),
    attention(mask(B, S + 3), past, outputs="yp", unidirectional=1),
    attention(ints([9, 7, 4]), past, outputs="yp"),
    attention(None, None, floats(1, N, S, S)),
    attention(mask(B, S), None, floats(B, 1, S, S), unidirectional=1),
    Case("Attention", [x, floats(D, 72), floats(72)],
         {"num_heads": N, "qkv_hidden_sizes": [16, 16, 40]}),
]  # fmt: skip


def quantize(w_dtype, by_column, *rest, outputs="y", **attrs):
    kind = np.iinfo(w_dtype)
    weight = rng.integers(kind.min, kind.max + 1, (D, 3 * D)).astype(w_dtype)
    shape = (3 * D,) if by_column else ()
    scales = (rng.random(shape) * 0.01 + 0.001).astype(f32)
    zeros = np.full(shape, 128 if w_dtype == np.uint8 else 0, w_dtype)
    data = rng.integers(0, 256, (B, S, D)).astype(np.uint8)
    operands = [data, weight, b, np.array(0.02, f32), scales, *rest[:1], np.uint8(120), zeros]
    return Case("QAttention", [*operands, *rest[1:]], {"num_heads": N, **attrs}, outputs,
                fixed=(1, 2, 3, 4, 6, 7), tolerance=1e-5)  # fmt: skip


QATTENTION = [
    quantize(dtype, by_column, *rest, outputs=outputs, unidirectional=causal)
    for dtype in (np.uint8, np.int8)
    for by_column in (False, True)
    for rest, outputs, causal in (
        ((None,), "y", 0), ((ints([6, 3, 2]),), "y", 0), ((None, past), "yp", 1),
        ((mask(B, S),), "y", 1),
    )
]  # fmt: skip

q, k, v = floats(B, S, D), floats(B, L, D), floats(B, L, 32)
heads = [floats(B, N, 3, 6), floats(B, N, 3, 6)]


def several(*operands, outputs="y", **attrs):
    return Case("MultiHeadAttention", operands, {"num_heads": N, **attrs}, outputs)


SEVERAL = [
    several(q, k, v),
    several(q, k, v, scale=0.2),
    several(q, q, q, unidirectional=1),
    several(q, k, v, floats(D + D + 32)),
    several(q, k, v, None, ints([5, 3, 2])),
    several(q, k, v, None, mask(B, L)),
    several(q, k, v, None, mask(B, S, L)),
    several(q, k, v, None, None, floats(1, N, S, L)),
    several(q, k, v, None, mask(B, L), floats(B, 1, S, L)),
    several(q, floats(B, N, L, 6), floats(B, N, L, 6)),
    several(q, floats(B, S, D), floats(B, S, D), None, None, None, *heads, outputs="ykv"),
    several(q, floats(B, S, D), floats(B, S, D), None, mask(B, S + 3), None, *heads,
            outputs="ykv", unidirectional=1),
]  # fmt: skip
cos, sin = (f(rng.random((16, 4))).astype(f32) for f in (np.cos, np.sin))


def rotary(shape, places, **attrs):
    operands = [floats(*shape), np.array(places, np.int64), cos, sin]
    sized = () if "num_heads" in attrs or len(shape) == 4 else (0,)
    return Case("RotaryEmbedding", operands, attrs, fixed=(2, 3), sized=sized)


ROTARY = [
    rotary(shape, places, interleaved=pairs, **attrs)
    for pairs in (0, 1)
    for shape, places, attrs in (
        ((2, 5, 24), rng.integers(0, 16, (2, 5)), {}),
        ((2, 3, 5, 8), [2], {}),
        ((2, 5, 24), [3], {"num_heads": 2, "rotary_embedding_dim": 8}),
        ((2, 2, 5, 12), [3], {"num_heads": 2, "rotary_embedding_dim": 8}),
    )
]  # fmt: skip


@pytest.mark.parametrize("case", [*ATTENTION, *QATTENTION, *SEVERAL, *ROTARY], ids=str)
def test_operators(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize("bias", [None, floats(3 * D)])
def test_packed_queries_keys_and_values(bias, tmp_path):
    """ONNX Runtime's CPU provider takes them apart only."""
    parts = [floats(B, S, D) for _ in range(3)]
    apart = several(*parts, bias)
    packed = np.stack([p.reshape(B, S, N, -1) for p in parts], axis=3)
    joined = several(packed, None, None, bias)
    model = convert(joined.model(), tmp_path, 17)
    compare(run(model, joined.feeds), run(apart.model(), apart.feeds), 2e-6)


def test_packed_keys_and_values(tmp_path):
    parts = [floats(B, L, D) for _ in range(2)]
    joined = several(q, np.stack([p.reshape(B, L, N, -1) for p in parts], axis=3))
    expected = run(several(q, *parts).model(), several(q, *parts).feeds)
    compare(run(convert(joined.model(), tmp_path, 17), joined.feeds), expected, 2e-6)


@pytest.mark.parametrize(("case", "reason"), [
    (attention(do_rotary=1), "do_rotary=1"),
    (attention(past_present_share_buffer=1), "past_present_share_buffer=1"),
    (attention(mask(B, 1, S, S)), "a mask of 4 dimensions"),
    (several(q, k, v, None, None, None, *heads, ints([3])), "past_sequence_length"),
    (rotary((2, 3, 5, 8), [2], is_packed_batching=1), "is_packed_batching=1"),
])  # fmt: skip
def test_refusals(case, reason, tmp_path):
    message = refusal(case, tmp_path)
    assert f"com.microsoft:{case.op}" in message
    assert reason in message and "keep_domain=com.microsoft" in message and ".. " not in message
