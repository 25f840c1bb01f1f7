"""A slice of the differential tests, and whether they see what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.consumer_models import is_here
from conformance.differential.directions import CONSUMERS, FILES
from conformance.differential.evaluate import Rejected
from conformance.differential.generator import Generator
from conformance.differential.makers import all_makers
from conformance.differential.program import all_steps, make_model
from conformance.differential.run import generate, send
from conformance.differential.shrink import shrink
from serde.spec import folding, schema

SEEDS = range(12)
# Operators without a maker: random ones first, then those that nobody has written one for.
LEFT_OUT = set(
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
    "ImageDecoder SequenceEmpty SequenceMap Optional TfIdfVectorizer LinearAttention "
    "CausalConvWithState".split()
)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_come_out_the_same(seed):
    """Longer runs: ``python -m conformance.differential``."""
    outcomes = list(send(generate(seed), FILES))
    assert [o for o in outcomes if o.kind == "differs"] == []


@pytest.mark.parametrize("direction", CONSUMERS)
def test_random_graphs_are_right_in_consumers(direction):
    """Graphs of their own: of few nodes, in common element types."""
    if not is_here(direction.lower()):
        pytest.skip(f"no live {direction}")
    outcomes = [o for seed in range(8) for o in send(generate(seed, [direction]), [direction])]
    assert [o for o in outcomes if o.kind == "differs"] == []
    assert any(o.kind == "right" for o in outcomes)


def test_graphs_for_consumers_are_narrow():
    programs = [generate(seed, ["ncnn"]) for seed in range(20)]
    assert not any(p.is_symbolic for p in programs)
    assert max(len(p.steps) for p in programs) < 10


def test_a_seed_gives_the_same_graph():
    first, second = (make_model(generate(3)).SerializeToString() for _ in range(2))
    assert first == second


def test_a_wrong_number_is_seen_and_shrunk(monkeypatch):
    """A folder that is off by one: of the graph, the node with the constants is left."""
    g = Generator(0)
    g.extreme = g.symbolic = False
    a, b = g.const([1.0, 2.0], np.float32), g.const([3.0, 4.0], np.float32)
    x = g.hold(np.ones(2, np.float32), False)
    y = g.emit("Add", [g.emit("Mul", [a, b]), g.emit("Neg", [x])])
    g.emit("Exp", [g.emit("Sqrt", [x])])
    program = g.finish()
    monkeypatch.setitem(folding.FAST, "Mul", lambda arrays, _: arrays[0] * arrays[1] + 1)
    (wrong,) = send(program, ["ONNX, lowered"])
    assert (wrong.kind, wrong.output) == ("differs", y)

    def fails(candidate):
        return any(o.kind == "differs" for o in send(candidate, ["ONNX, lowered"]))

    small = shrink(program, wrong.output, fails)
    assert {s.op for s in small.steps} <= {"Mul", "Add"} and len(small.steps) <= 2


def test_every_operator_has_a_maker():
    """Of all operators of the IR but those named; a dozen may be rejected for these few seeds."""
    drawn: set[str] = set()
    for seed in range(3):
        g = Generator(seed)
        g.program.opset, g.plain, g.symbolic, g.extreme = 28 - 2 * seed, False, False, False
        for make in all_makers():
            g.attempt(make)
        drawn |= {s.op for s in all_steps(g.program.steps)}
    missing = set(schema.names()) - drawn - LEFT_OUT
    assert len(missing) <= 12, sorted(missing)


@pytest.mark.parametrize(
    ("op", "arrays", "attrs"),
    [
        ("Div", [np.array([1]), np.array([0])], {}),
        ("Cast", [np.array([np.nan], np.float32)], {"to": 7}),
        ("BitShift", [np.array([1], np.uint8), np.array([8], np.uint8)], {"direction": "LEFT"}),
    ],
)
def test_what_the_standard_leaves_open_is_not_emitted(op, arrays, attrs):
    g = Generator(0)
    with pytest.raises(Rejected):
        g.emit(op, [g.hold(a) for a in arrays], **attrs)
