"""Control flow: loops over elements, while a condition holds, and choices."""

from __future__ import annotations

import ctypes

import numpy as np

from testing.mxnet.cases import Case, f32, f64, live, of, operator_test


def control(op, network, *inputs, **expected):
    return Case(op, inputs, {"network": network.__name__}, network=network, **expected)


def running_sum(mx, x, s):
    out, state = mx.sym.contrib.foreach(lambda item, s: (item * 2 + s, s + item), x, s)
    return [out, state]


def captured(mx, x, s, w):
    """A weight from outside, two states, two outputs, of which one is a state as it was."""

    def step(item, states):
        a, b = states
        y = mx.sym.broadcast_add(mx.sym.dot(item, w), a)
        return [y, b], [y, mx.sym.broadcast_add(b, item)]

    out, states = mx.sym.contrib.foreach(step, x, [s, mx.sym.zeros_like(s)])
    return [*out, *states]


def two_lists(mx, x, y):
    """Nothing is carried, and an output is an item as it came."""
    out, _ = mx.sym.contrib.foreach(lambda xy, _: ([xy[0] * xy[1], xy[1]], []), [x, y], [])
    return [*out]


def nested(mx, x, s):
    """A loop in a loop, whose inner body reads what both outer ones have."""

    def outer(row, s):
        inner = mx.sym.contrib.foreach(lambda v, t: (v + t, t + mx.sym.sum(row)), row, s)
        return inner[0], inner[1]

    out, state = mx.sym.contrib.foreach(outer, x, s)
    return [out, state]


def recurrent(mx, x, h):
    cell = mx.rnn.GRUCell(4, prefix="cell_")
    out, states = mx.sym.contrib.foreach(lambda item, s: cell(item, s), x, [h])
    return [out, *states]


def counted(mx, i, s):
    out, loop = mx.sym.contrib.while_loop(
        lambda i, s: i <= 4, lambda i, s: ([i + s], [i + 1, s + i]), (i, s), max_iterations=6
    )
    return [out[0], *loop]


def stopping(steps, *inputs):
    """Behind the last step MXNet leaves what was in memory; here there are zeros."""

    def oracle(case):
        out, *variables = live(case)
        return [np.concatenate([out[:steps], np.zeros_like(out[steps:])]), *variables]

    return control("_while_loop", counted, *inputs, oracle=oracle)


def until_the_end(mx, i, x):
    """The number of steps is reached before the condition fails; the condition reads nothing."""
    out, loop = mx.sym.contrib.while_loop(
        lambda i: mx.sym.ones_like(i), lambda i: ([i + x, i], [i * 2]), (i,), max_iterations=3
    )
    return [*out, *loop]


def without_outputs(mx, s, x):
    _, loop = mx.sym.contrib.while_loop(
        lambda s: mx.sym.sum(s) < 20, lambda s: ([], [mx.sym.broadcast_add(s, x)]), (s,), 50
    )
    return [*loop]


def chosen(mx, a, b):
    return mx.sym.contrib.cond(mx.sym.sum(a) < 5, lambda: a + b, lambda: a * b)


def chosen_pair(mx, a, b):
    """A branch that passes on what is around it, one that gives one value twice."""
    return [*mx.sym.contrib.cond(a.sum() < b.sum(), lambda: [a, b], lambda: [b * 2, b * 2])]


def chosen_twice(mx, a, b):
    def inner():
        return mx.sym.contrib.cond(b.sum() > 0, lambda: a * b, lambda: a / b)

    return mx.sym.contrib.cond(a.sum() > 0, inner, lambda: a + b)


def chosen_loop(mx, x, s):
    """A loop in a branch."""

    def sum_items():
        return mx.sym.contrib.foreach(lambda item, s: (item + s, s + item), x, s)[0]

    return mx.sym.contrib.cond(s.sum() > 0, sum_items, lambda: x * 2)


def wave(mx, x, w):
    return mx.sym.exp(mx.sym.sin(x) * w, name="wave") + 1


def two_parts(mx, x, w):
    """The second part has two outputs, of which one is an output of the symbol."""
    y = mx.sym.sin(mx.sym.sum(mx.sym.sin(x) * w, axis=1, keepdims=True) + 1)
    return [mx.sym.exp(y) + 2, y]


def apart(network, *inputs):
    """A symbol parts of which MXNet itself has set apart; it cannot load such a symbol again."""

    def partition(mx, *variables):
        heads = network(mx, *variables)
        symbol = mx.sym.Group(heads) if isinstance(heads, list) else heads
        ops, handle = ("sin", "exp", "elemwise_mul"), mx.base.SymbolHandle()
        names = mx.base.c_str_array(ops)
        check = mx.base._LIB.MXBuildSubgraphByOpNames(
            symbol.handle, b"default", len(ops), names, ctypes.byref(handle)
        )
        mx.base.check_call(check)
        return mx.sym.Symbol(handle)

    partition.__name__ = f"{network.__name__}_apart"
    base = control("_CachedOp", partition, *inputs)
    return base.but(oracle=lambda case: live(case.but(network=network)))


CASES = [
    control("_foreach", running_sum, f32(5, 3), f32(3)),
    control("_foreach", running_sum, f64(1, 2, 3), f64(2, 3)),
    control("_foreach", captured, f32(4, 2, 3), f32(2, 3), f32(3, 3)),
    control("_foreach", two_lists, f32(4, 3), f32(4, 3, seed=1)),
    control("_foreach", nested, f32(3, 4), f32(1)),
    stopping(4, of([1.0]), of([0.5])),
    stopping(2, of([3.0], "float64"), of([-1.0], "float64")),
    control("_while_loop", until_the_end, of([1.0]), f32(1)),
    control("_while_loop", without_outputs, f32(2, 3), of([[0.5, 1, 2]])),
    *(control("_cond", f, f32(3), s * f32(3)) for f in (chosen, chosen_pair, chosen_twice)
      for s in (1, -3)),
    *(control("_cond", chosen_loop, f32(4, 2), s * f32(2, low=0.1)) for s in (1, -1)),
    *(apart(f, f32(2, 3), f32(2, 3, seed=1)) for f in (wave, two_parts)),
    apart(wave, f64(4), f64(4, seed=1)),
]  # fmt: skip
test_control = operator_test(CASES)
