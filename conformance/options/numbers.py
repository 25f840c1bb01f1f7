"""Networks in which float16 has too few digits or too small a range somewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .network import Network

Part = Callable[[Network], str]
LAST = 4096  # the number of places
RATE = 24000


def frequencies(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Those of rotary positions."""
    return (1e4 ** (-np.arange(count) / count)).astype(np.float32)


def rotary_by_product(net: Network) -> str:
    places = net.op("Cast", net.input("places", (6,), draw=f"positions:{LAST}"), to=1)
    column = net.op("Unsqueeze", places, net.ints(2))
    angles = net.op("MatMul", column, net.const(frequencies(8)[None]))
    return net.op("Concat", net.op("Cos", angles), net.op("Sin", angles), axis=-1)


def rotary_by_factors(net: Network) -> str:
    places = net.op("Cast", net.input("places", (6, 1), draw=f"positions:{LAST}"), to=1)
    angles = net.op("Mul", places, net.const(frequencies(8)))
    return net.op("Add", net.op("Sin", angles), net.op("Cos", angles))


def rotary_by_equation(net: Network) -> str:
    places = net.op("Cast", net.input("places", (6,), draw=f"positions:{LAST}"), to=1)
    angles = net.op("Einsum", places, net.const(frequencies(8)), equation="bs,f->bsf")
    return net.op("Cos", net.op("Concat", angles, angles, axis=-1))


def rotary_of_floats(net: Network) -> str:
    x = net.input("x", (6, 8))
    places = net.op("CumSum", net.op("Exp", net.op("Mul", x, net.const(0))), net.const(1, "int64"))
    far = net.op("Add", places, net.const(LAST - 6))
    return net.op("Mul", x, net.op("Cos", net.op("Mul", far, net.const(frequencies(8)))))


def rotary_attention(net: Network) -> str:
    x = net.input("x", (6, 8))
    places = net.op("Cast", net.input("places", (6, 1), draw=f"positions:{LAST}"), to=1)
    angles = net.op("Mul", places, net.const(np.tile(frequencies(4), 2)))
    cos, sin = net.op("Cos", angles), net.op("Sin", angles)

    def turn(y: str) -> str:
        turned = net.op(
            "Concat", net.op("Neg", net.slice(y, 2, 4, 8)), net.slice(y, 2, 0, 4), axis=2
        )
        return net.op("Add", net.op("Mul", y, cos), net.op("Mul", turned, sin))

    q, k = turn(net.linear(x, 8, 8)), turn(net.linear(x, 8, 8))
    scores = net.op("Softmax", net.op("MatMul", q, net.transpose(k, 0, 2, 1)), axis=-1)
    return net.op("MatMul", scores, net.linear(x, 8, 8))


def phases(net: Network) -> str:
    """The source of a vocoder: a running sum of frequencies."""
    pitch = net.op("Add", net.op("Mul", net.input("f0", (1200,), draw="uniform"), net.const(50)),
                   net.const(220))  # fmt: skip
    steps = net.op("Div", pitch, net.const(RATE / 20))
    phase = net.op("CumSum", steps, net.const(1, "int64"))
    return net.op("Sin", net.op("Mul", phase, net.const(2 * np.pi)))


def phases_by_product(net: Network) -> str:
    """The same with a product in place of the running sum, and a remainder."""
    steps = net.op("Add", net.op("Mul", net.input("f0", (400,), draw="uniform"), net.const(0.3)),
                   net.const(0.2))  # fmt: skip
    phase = net.op("MatMul", steps, net.const(np.triu(np.ones((400, 400)))))
    wrapped = net.op("Sub", phase, net.op("Floor", phase))
    return net.op("Cos", net.op("Mul", wrapped, net.const(2 * np.pi)))


def time_step(net: Network) -> str:
    """The embedding of a step of diffusion."""
    step = net.op("Cast", net.input("step", (1,), draw="positions:1000"), to=1)
    angles = net.op("Mul", step, net.const(frequencies(16)))
    return net.linear(net.op("Concat", net.op("Sin", angles), net.op("Cos", angles), axis=1), 32, 8)


def features(net: Network) -> str:
    """Large integers as features of a table."""
    numbers = net.op("Cast", net.input("numbers", (6,), draw="integers:200000"), to=1)
    return net.op("Sigmoid", net.op("Mul", net.linear(numbers, 6, 4), net.const(1e-5)))


def scaled_features(net: Network) -> str:
    numbers = net.op("Cast", net.input("numbers", (6,), draw="integers:200000"), to=1)
    centered = net.op("Div", net.op("Sub", numbers, net.const(1e5)), net.const(5e4))
    return net.linear(centered, 6, 4)


def normalized_features(net: Network) -> str:
    numbers = net.op("Cast", net.input("numbers", (16,), draw="integers:200000"), to=1)
    return net.op("LayerNormalization", numbers, net.weight(16), net.weight(16))


def convolved_counts(net: Network) -> str:
    numbers = net.op("Cast", net.input("numbers", (1, 16), draw="integers:20000"), to=1)
    counts = net.op("Conv", numbers, net.weight(3, 1, 3), pads=[1, 1])
    return net.op("Mul", counts, net.const(1e-4))


def features_by_equation(net: Network) -> str:
    numbers = net.op("Cast", net.input("numbers", (6,), draw="integers:200000"), to=1)
    w = net.const(net.draws.standard_normal((6, 4)) * 1e-5)
    return net.op("Tanh", net.op("Einsum", numbers, w, equation="bi,io->bo"))


def count_to_index(net: Network) -> str:
    """A row of a table by a computed place."""
    x = net.input("x", (1,), draw="uniform")
    place = net.op("Cast", net.op("Floor", net.op("Mul", x, net.const(4999))), to=TensorProto.INT64)
    return net.op("Gather", net.weight(5000, 4, scale=1), place, axis=0)


def mean_by_count(net: Network) -> str:
    """A mean over what a mask keeps, as of pooled sentence embeddings."""
    x = net.input("x", (4000, 3))
    lengths = net.op("Cast", net.input("mask", (4000, 1), draw="integers:2"), to=1)
    total = net.op("ReduceSum", net.op("Mul", x, lengths), net.ints(1), keepdims=0)
    return net.op("Div", total, net.op("ReduceSum", lengths, net.ints(1), keepdims=0))


def products_divided(net: Network) -> str:
    x, y = net.input("x", (8,), draw="loud"), net.input("y", (8,), draw="loud")
    product = net.op("Mul", x, y)
    return net.op("Div", product, net.op("Add", net.op("Abs", product), net.const(1e6)))


def products_rooted(net: Network) -> str:
    x = net.input("x", (8, 3), draw="loud")
    squares = net.op("ReduceSum", net.op("Mul", x, x), net.ints(2), keepdims=1)
    return net.op("Div", x, net.op("Sqrt", net.op("Add", squares, net.const(1))))


def scaled_up_and_down(net: Network) -> str:
    x = net.op("Mul", net.input("x", (8,)), net.const(3e4))
    return net.op("Mul", net.linear(net.op("Mul", x, net.const(1e2)), 8, 8), net.const(1e-6))


def matrix_products_divided(net: Network) -> str:
    x = net.op("Mul", net.input("x", (6, 64)), net.const(500))
    scores = net.op("MatMul", x, net.transpose(x, 0, 2, 1))
    return net.op("Tanh", net.op("Div", scores, net.const(1e7)))


def quiet_signal(net: Network) -> str:
    """The loudness of a quiet signal, as loudness and level meters compute it."""
    x = net.input("x", (1, 400), draw="quiet")
    y = net.op("Conv", x, net.weight(4, 1, 16), strides=[4])
    power = net.op("ReduceMean", net.op("Mul", y, y), axes=[2], keepdims=0)
    return net.op("Log", net.op("Add", power, net.const(1e-10)))


def quiet_spectrum(net: Network) -> str:
    """Logarithms of a mel spectrum of a quiet signal."""
    x = net.input("x", (1, 400), draw="quiet")
    parts = [net.op("Conv", x, net.weight(8, 1, 32, scale=0.2), strides=[16]) for _ in range(2)]
    power = net.op("Add", *(net.op("Pow", p, net.const(2)) for p in parts))
    mel = net.op("MatMul", net.const(net.draws.uniform(0, 1, (5, 8))), power)
    return net.op("Log", net.op("Clip", mel, net.const(1e-12)))


def quiet_norm(net: Network) -> str:
    x = net.input("x", (32,), draw="quiet")
    length = net.op("ReduceL2", x, axes=[1], keepdims=1)
    return net.op("Div", x, net.op("Max", length, net.const(1e-12)))


def quiet_layer(net: Network) -> str:
    x = net.input("x", (4, 32), draw="quiet")
    y = net.op("Mul", net.op("Sub", x, net.op("ReduceMean", x, axes=[2], keepdims=1)), net.const(1))
    variance = net.op("ReduceMean", net.op("Mul", y, y), axes=[2], keepdims=1)
    return net.op("Div", y, net.op("Sqrt", net.op("Add", variance, net.const(1e-12))))


def masked_scores(net: Network) -> str:
    x = net.input("x", (6, 8))
    scores = net.op("MatMul", x, net.transpose(x, 0, 2, 1))
    mask = net.op("Cast", net.input("mask", (1, 6), draw="integers:2"), to=1)
    far = net.op("Mul", net.op("Sub", net.const(1), mask), net.const(-1e9))
    return net.op("MatMul", net.op("Softmax", net.op("Add", scores, far), axis=-1), x)


def least_masked_scores(net: Network) -> str:
    x = net.input("x", (6, 8))
    scores = net.op("MatMul", x, net.transpose(x, 0, 2, 1))
    mask = net.op("Cast", net.input("mask", (1, 6), draw="integers:2"), to=9)
    lowest = net.const(np.finfo(np.float32).min)
    masked = net.op("Where", mask, scores, lowest)
    return net.op("MatMul", net.op("Softmax", masked, axis=-1), x)


def far_variance(net: Network) -> str:
    """A batch norm of images of bytes."""
    x = net.op("Mul", net.input("x", (3, 8, 8), draw="uniform"), net.const(255))
    moments = net.const([123.7, 116.3, 103.5]), net.const([3000, 2900, 2800])
    return net.op("BatchNormalization", x, net.weight(3), net.weight(3), *moments)


def long_mean(net: Network) -> str:
    x = net.op("Add", net.input("x", (3, 128, 128), draw="uniform"), net.const(4))
    return net.op("GlobalAveragePool", x)


def long_sum(net: Network) -> str:
    x = net.input("x", (20000,), draw="uniform")
    total = net.op("ReduceSum", x, net.ints(1), keepdims=1)
    return net.op("Log", total)


def exponentials(net: Network) -> str:
    x = net.op("Mul", net.input("x", (12,)), net.const(8))
    e = net.op("Exp", x)
    return net.op("Div", e, net.op("ReduceSum", e, net.ints(1), keepdims=1))


def soft_plus(net: Network) -> str:
    x = net.op("Mul", net.input("x", (12,)), net.const(8))
    return net.op("Log", net.op("Add", net.const(1), net.op("Exp", x)))


def boxes(net: Network) -> str:
    """Offsets from priors of an image of 4096 pixels."""
    x = net.input("x", (8, 4))
    priors = net.const(net.draws.uniform(0, 4096, (1, 8, 2)))
    sizes = net.const(net.draws.uniform(8, 512, (1, 8, 2)))
    centers = net.op("Add", priors, net.op("Mul", net.slice(x, 2, 0, 2), sizes))
    extents = net.op("Mul", net.op("Exp", net.slice(x, 2, 2, 4)), sizes)
    return net.op("Div", net.op("Concat", centers, extents, axis=2), net.const(4096))


def angles_of_points(net: Network) -> str:
    """Fourier features."""
    x = net.input("x", (6, 3))
    projected = net.op("MatMul", x, net.const(net.draws.standard_normal((3, 8)) * 100))
    return net.op("Concat", net.op("Sin", projected), net.op("Cos", projected), axis=-1)


def sines_of_activations(net: Network) -> str:
    """Snake, as of neural vocoders."""
    x = net.input("x", (4, 32))
    s = net.op("Sin", net.op("Mul", x, net.const(net.draws.uniform(1, 3, (4, 1)))))
    return net.op("Add", x, net.op("Mul", s, s))


def parity(net: Network) -> str:
    numbers = net.op("Cast", net.input("numbers", (6,), draw="integers:9000"), to=1)
    half = net.op("Floor", net.op("Div", numbers, net.const(2)))
    odd = net.op("Sub", numbers, net.op("Mul", half, net.const(2)))
    return net.op("Add", odd, net.input("x", (6,)))


def equal_numbers(net: Network) -> str:
    a = net.op("Cast", net.input("a", (8,), draw="integers:5000"), to=1)
    b = net.op("Add", a, net.op("Cast", net.input("b", (8,), draw="integers:2"), to=1))
    return net.op("Where", net.op("Equal", a, b), net.input("x", (8,)), net.const(0))


def time_differences(net: Network) -> str:
    """Relative positions of far places."""
    places = net.op("Cast", net.input("places", (6,), draw="positions:9000"), to=1)
    row, column = net.op("Unsqueeze", places, net.ints(1)), net.op("Unsqueeze", places, net.ints(2))
    return net.op("Exp", net.op("Neg", net.op("Abs", net.op("Sub", row, column))))


PARTS: tuple[Part, ...] = (
    rotary_by_product, rotary_by_factors, rotary_by_equation, rotary_of_floats, rotary_attention,
    phases, phases_by_product, time_step, features, scaled_features, normalized_features,
    convolved_counts, features_by_equation, count_to_index, mean_by_count, products_divided,
    products_rooted, scaled_up_and_down, matrix_products_divided, quiet_signal, quiet_spectrum,
    quiet_norm, quiet_layer, masked_scores, least_masked_scores, far_variance, long_mean, long_sum,
    exponentials, soft_plus, boxes, angles_of_points, sines_of_activations, parity, equal_numbers,
    time_differences,
)  # fmt: skip


def list_networks() -> dict[str, Callable[[int, int], Network]]:
    """Every network by name; ``build(seed, batch)``."""

    def build(part: Part) -> Callable[[int, int], Network]:
        def make(seed: int, batch: int) -> Network:
            net = Network(seed, batch)
            net.output(part(net))
            return net

        return make

    return {f"precision/{part.__name__}": build(part) for part in PARTS}
