"""Choices of a Reshape are taken back where an operator behind it refuses the first."""

from __future__ import annotations

import pytest

from serde.errors import Unconvertible
from serde.passes.batch.analysis import Analysis
from serde.passes.change_batch import find_places
from testing.onnx_live import ir_of


def analyze(text: str) -> Analysis:
    return find_places(ir_of(f"g {text}"), "N")


def axes_of(analysis: Analysis) -> dict[str, int]:
    return {v.name: p.axis for v, p in analysis.state.places.items()}


SQUEEZED = """(float[1,4,8] x) => (float[1,1,4,8] y) <int64[1] a = {0}, int64[2] b = {0, 1}>
  { r = Squeeze(x, a) t = Relu(r) u = Unsqueeze(t, b) y = Softmax<axis=1>(u) }"""


def test_a_refusal_takes_the_next_place():
    """The batch is merged with rows of 4; of the axes of 1 that come back, the Softmax takes one."""
    analysis = analyze(SQUEEZED)
    assert axes_of(analysis) == {"x": 0, "r": 0, "t": 0, "u": 0, "y": 0}
    with pytest.raises(Unconvertible, match="may move the batch"):
        analyze(SQUEEZED.replace("axis=1", "axis=0"))


def chain(count: int) -> str:
    """Reshapes with a choice each, and a refusal that depends on the last alone."""
    lines = [f"x{i + 1} = Reshape(x{i}, {'st'[i % 2]})" for i in range(count)]
    return f"""(float[1,1,8] x0) => (float[1,1,8] y) <int64[4] s = {{1,1,2,4}}, int64[3] t = {{1,1,8}}>
      {{ {" ".join(lines)} y = Hardmax<axis=0>(x{count}) }}"""


def test_choices_are_taken_back_a_bounded_number_of_times():
    with pytest.raises(Unconvertible, match="Hardmax ×1"):
        analyze(chain(60))


def test_a_choice_that_the_refusal_does_not_depend_on_stays():
    """Each of many heads has a choice of its own; only that of the first is taken back."""
    heads = "".join(
        f"a{i} = Squeeze(x, o) b{i} = Unsqueeze(a{i}, z) y{i} = {'Hardmax<axis=1>' if i == 0 else 'Relu'}(b{i}) "
        for i in range(40)
    )
    outputs = ", ".join(f"float[1,1,8] y{i}" for i in range(40))
    analysis = analyze(
        f"(float[1,1,8] x) => ({outputs}) <int64[1] o = {{0}}, int64[1] z = {{0}}> {{ {heads} }}"
    )
    assert set(axes_of(analysis).values()) == {0} and analysis.visits < 400
