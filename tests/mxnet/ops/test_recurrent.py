"""Recurrent layers."""

from __future__ import annotations

import numpy as np

from tests.mxnet.cases import Refusal, case, f16, f32, f64, in_float32, of, operator_test, refused

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
    count = sum(d * gates * H * (size + H + 2) for size in sizes)
    shape = (layers * d, N, H)
    extra = [
        np.zeros(shape, make(1).dtype) if zero else make(*shape, seed=i)
        for i in range(2 if mode == "lstm" else 1)
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
    made = case("RNN", make(T, N, C), make(count, low=-0.7, high=0.7), *extra, **full)
    return made.but(outputs=outputs)


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
    Refusal(rnn("gru", lengths=[3, 5]), "use_sequence_length, which MXNet ignores on CPUs"),
    Refusal(rnn("lstm", projection_size=2), "projection_size='2'"),
    Refusal(rnn("lstm", lstm_state_clip_min=-0.1), "lstm_state_clip_min='-0.1'"),
    refused(
        "RNN",
        f32(T, N, C),
        f32(37),
        f32(1, N, H),
        mode="rnn_tanh",
        state_size=H,
        num_layers=1,
        says="37 parameters do not fit the layers",
    ),
    refused(
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
