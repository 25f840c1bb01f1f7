"""Recurrent layers."""

from __future__ import annotations

import numpy as np

from testing.mxnet.cases import (
    Refusal,
    case,
    f16,
    f32,
    f64,
    in_float32,
    live,
    of,
    operator_test,
    refuses,
)

T, N, C, H = 5, 2, 3, 4
GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


def rnn(
    mode,
    layers=1,
    bidirectional=False,
    states=True,
    make=f32,
    zero=False,
    lengths=None,
    outputs=None,
    **attrs,
):
    d, gates = 1 + bidirectional, GATES[mode]
    sizes = [C] + [d * H] * (layers - 1)
    small = attrs.get("projection_size")
    if small:
        sizes = [C] + [d * small] * (layers - 1)
    count = sum(d * gates * H * (size + (small or H) + 2) for size in sizes)
    count += layers * d * H * (small or 0)
    shapes = [(layers * d, N, small or H), (layers * d, N, H)]
    extra = [
        np.zeros(shape, make(1).dtype) if zero else make(*shape, seed=i)
        for i, shape in enumerate(shapes[: 2 if mode == "lstm" else 1])
    ]
    if lengths is not None:
        extra.append(of(lengths, attrs.pop("length_type", "float32")))
        attrs["use_sequence_length"] = True
    full = {
        "mode": mode,
        "state_size": H,
        "num_layers": layers,
        **({"bidirectional": True} if bidirectional else {}),
        **({"state_outputs": True} if states else {}),
        **attrs,
    }
    base = case("RNN", make(T, N, C), make(count, low=-0.7, high=0.7), *extra, **full)
    return base.but(outputs=outputs)


def sample_by_sample(case):
    """On a CPU MXNet ignores the lengths: so each sample is run by itself, as long as it is."""
    x, parameters, *states, lengths = case.inputs
    attrs = {k: v for k, v in case.attrs.items() if k != "use_sequence_length"}
    every = []
    for n, length in enumerate(lengths.astype(int)):
        own = x[:length, n : n + 1], parameters, *(s[:, n : n + 1] for s in states)
        y, *ends = live(case.but(inputs=own, attrs=attrs))
        every.append([np.pad(y, ((0, len(x) - length), (0, 0), (0, 0))), *ends])
    return [np.concatenate(column, axis=1) for column in zip(*every, strict=True)]


CASES = [
    *(rnn(m) for m in GATES),
    *(rnn(m, zero=True) for m in GATES),
    *(rnn(m, states=False) for m in GATES),
    *(rnn(m, layers=3) for m in GATES),
    *(rnn(m, bidirectional=True) for m in GATES),
    *(rnn(m, layers=2, bidirectional=True) for m in GATES),
    *(rnn(m, layers=2, p=0.5) for m in GATES),
    *(
        rnn(m, make=f64).but(gap="recurrent layers of float64")
        for m in GATES
        if m != "rnn_relu"  # which the reference implementation does not know
    ),
    rnn("gru").but(params=(), fixed="needs the static shape"),
    *(rnn(m, make=f16).but(oracle=in_float32) for m in GATES),
    *(rnn(m, lengths=[3, 5]).but(oracle=sample_by_sample) for m in GATES),
    *(
        rnn(m, layers=2, bidirectional=True, lengths=[5, 2]).but(oracle=sample_by_sample)
        for m in GATES
    ),
    rnn("lstm", lengths=[4, 1], length_type="int32").but(oracle=sample_by_sample),
    *(
        rnn("lstm", layers, both, zero=zero, projection_size=2)
        for layers, both, zero in ((1, False, False), (2, False, True), (2, True, False))
    ),
    Refusal(rnn("lstm", lengths=[3, 5], projection_size=2), "projection_size of a lstm"),
    Refusal(rnn("lstm", lstm_state_clip_min=-0.1), "lstm_state_clip_min=-0.1"),
    refuses(
        "RNN",
        f32(T, N, C),
        f32(37),
        f32(1, N, H),
        mode="rnn_tanh",
        state_size=H,
        num_layers=1,
        says="37 parameters do not fit the layers",
    ),
    refuses(
        "RNN",
        f32(T, N, C),
        f32(36),
        f32(1, N, H),
        mode="elman",
        state_size=H,
        num_layers=1,
        says="mode='elman' is unknown",
    ),
]
test_recurrent = operator_test(CASES)
