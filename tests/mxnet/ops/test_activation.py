"""Activations and softmax."""

from __future__ import annotations

from serde.formats.mxnet.ops.activation import ACTIVATIONS as EVERY
from testing.mxnet.cases import case, f16, f32, f64, operator_test, refuses

ACTIVATIONS = [name for name in EVERY if name != "mish"]  # which came with MXNet 2.0
SHAPES = [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)]
LEAKY = ("leaky", "elu", "selu", "gelu")
# What ONNX Runtime has no float64 kernel of.
GAPS = {"softrelu": "Softplus", "softsign": "Softsign", "leaky": "LeakyRelu", "elu": "Elu",
        "selu": "Selu", "gelu": "Erf"}  # fmt: skip

CASES = [
    *(case("Activation", x, act_type=t) for t in ACTIVATIONS for x in (f32(2, 3, 4), f16(2, 3))),
    *(case("Activation", f64(2, 3), act_type=t).but(gap=GAPS.get(t, "")) for t in ACTIVATIONS),
    *(case("LeakyReLU", f32(*s)) for s in SHAPES),
    *(case("LeakyReLU", f32(2, 3, 4), act_type=t, slope=0.3) for t in LEAKY),
    *(case("LeakyReLU", f16(2, 3, 4), act_type=t) for t in LEAKY),
    *(case("LeakyReLU", f64(2, 3, 4), act_type=t).but(gap=GAPS[t]) for t in LEAKY),
    case("LeakyReLU", f32(2, 3), act_type="rrelu").but(outputs=1),
    case("LeakyReLU", f32(2, 3), act_type="rrelu", lower_bound=0.2, upper_bound=0.5).but(outputs=1),
    *(case("LeakyReLU", f32(*s), f32(3), act_type="prelu") for s in SHAPES),
    *(case("LeakyReLU", f32(*s), f32(1), act_type="prelu") for s in SHAPES),
    case("LeakyReLU", f16(2, 4, 5), f16(4), act_type="prelu"),
    case("LeakyReLU", f32(2, 4, 5), f32(4), act_type="prelu").but(params=()),
    case("hard_sigmoid", f32(2, 3)),
    case("hard_sigmoid", f16(2, 3), alpha=0.3, beta=0.2),
    case("hard_sigmoid", f64(2, 3), alpha=-0.3, beta=0.2).but(gap="HardSigmoid of float64"),
    refuses("Activation", f32(2), act_type="odd", says="act_type='odd' is unknown"),
    refuses("LeakyReLU", f32(2), act_type="mish", says="act_type='mish' is unknown"),
    refuses("LeakyReLU", f32(2), act_type="prelu", says="prelu has no gamma"),
    refuses("LeakyReLU", f32(2), f32(2, 1), act_type="prelu", says="gamma has 2 axes"),
    refuses("LeakyReLU", f32(2, 3, 4), f32(2), act_type="prelu", says="gamma of 2 for 3 channels"),
]

test_activations = operator_test(CASES)
