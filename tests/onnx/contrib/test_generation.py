"""Grouped queries with a cache of keys and values, beside ONNX Runtime's."""

import numpy as np
import pytest

from tests.onnx.contrib.cases import Case, check, refusal

rng = np.random.default_rng(2)
f32 = np.float32
N, K, H = 4, 2, 16  # heads of queries, of keys, and their size
cos, sin = (f(rng.random((32, 8))).astype(f32) for f in (np.cos, np.sin))


def floats(*shape):
    return rng.standard_normal(shape).astype(f32)


def group_query(batch, length, room=None, last=None, total=None, *rest, packed=False, **attrs):
    """``room`` is that of the cache, ``last`` the index of each sequence's last key."""
    data = [floats(batch, length, n * H) for n in (N, K, K)]
    data = [np.concatenate(data, axis=-1), None, None] if packed else data
    cache = [None if room is None else floats(batch, K, room, H) for _ in range(2)]
    last = [length - 1] * batch if last is None else last
    total = np.array(length if total is None else total, np.int32)
    rotary = [cos, sin] if attrs.get("do_rotary") else [None, None]
    operands = [*data, *cache, np.array(last, np.int32), total, *rotary, *rest]
    attrs = {"num_heads": N, "kv_num_heads": K, **attrs}
    return Case("GroupQueryAttention", operands, attrs, "ykv", fixed=(7, 8), tolerance=4e-6)


PROMPTS = [
    case
    for batch in (1, 2)
    for case in (
        group_query(batch, 5),
        group_query(batch, 5, do_rotary=1),
        group_query(batch, 5, do_rotary=1, rotary_interleaved=1),
        group_query(batch, 5, packed=True, do_rotary=1),
        group_query(batch, 5, scale=0.3, softcap=2.0, local_window_size=2),
        group_query(batch, 5, smooth_softmax=1),
        group_query(batch, 5, None, None, None, None, None, floats(N)),
        group_query(batch, 5, None, None, None, None, floats(1, N, 5, 5), softcap=2.0),
        group_query(batch, 5, causal=0),
        group_query(batch, 5, 0),
    )
]
STEPS = [
    case
    for last in ([7], [7, 4])
    for case in (
        group_query(len(last), 1, 7, last, 8, do_rotary=1),
        group_query(len(last), 1, 12, last, 8, do_rotary=1, local_window_size=3),
        group_query(len(last), 1, 7, last, 8, np.array(last, np.int64)[:, None], do_rotary=1),
    )
] + [group_query(1, 3, 7, [9], 10, do_rotary=1)]


@pytest.mark.parametrize("case", [*PROMPTS, *STEPS], ids=str)
def test_operators(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize(("case", "reason"), [
    (group_query(1, 1, 7, [7], 8, k_quant_type="PER_TENSOR"), "k_quant_type=PER_TENSOR"),
    (group_query(1, 5, qk_output=1), "qk_output=1"),
    (group_query(1, 5, None, None, None, None, None, None, np.ones(1, f32)), "k_scale"),
])  # fmt: skip
def test_refusals(case, reason, tmp_path):
    assert reason in refusal(case, tmp_path)
