"""Modules whose functions, tuples or recursion expand without bounds are refused soon."""

from __future__ import annotations

import pytest

import serde
from serde.errors import Unconvertible
from serde.formats.relay.partial_eval import diagnostics
from serde.formats.relay.partial_eval.diagnostics import Budget
from serde.ir.budget import Limit
from testing.cpu_limit import limit_cpu

VERSION = '#[version = "0.0.5"]\n'
T = "Tensor[(4), float32]"
DEPTH = 40


def doubling_functions() -> str:
    lines = [f"def @f0(%x: {T}) -> {T} {{ nn.relu(%x) }}"]
    lines += [f"def @f{i}(%x: {T}) -> {T} {{ @f{i - 1}(@f{i - 1}(%x)) }}" for i in range(1, DEPTH)]
    return "\n".join([*lines, f"def @main(%x: {T}) -> {T} {{ @f{DEPTH - 1}(%x) }}"])


def doubling_tuples(result: str) -> str:
    lines = ["%0 = (%x, %x);", *(f"%{i} = (%{i - 1}, %{i - 1});" for i in range(1, DEPTH))]
    return f"def @main(%x: {T}) {{\n" + "\n".join([*lines, result.format(f"%{DEPTH - 1}")]) + "\n}"


def doubling_closures() -> str:
    f = f"fn ({T}) -> {T}"
    lets = [f"let %g0 = fn (%y: {T}) -> {T} {{ nn.relu(%y) }};"]
    lets += [f"let %g{i} = @twice(%g{i - 1});" for i in range(1, DEPTH)]
    return (
        f"def @twice(%f: {f}) -> {f} {{ fn (%x: {T}) -> {T} {{ %f(%f(%x)) }} }}\n"
        f"def @main(%x: {T}) -> {T} {{ {chr(10).join(lets)}\n%g{DEPTH - 1}(%x) }}"
    )


MODULES = {
    "functions": doubling_functions(),
    "tuples that are returned": doubling_tuples("{}"),
    "tuples that are read": doubling_tuples("concatenate({}, axis=0)"),
    "closures": doubling_closures(),
    "fibonacci": """
def @fib(%n: int32) -> int32 {
  if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
}
def @main(%x: int32) -> int32 { add(%x, @fib(60)) }""",
    "ackermann": """
def @ack(%m: int32, %n: int32) -> int32 {
  if (equal(%m, 0)) { add(%n, 1) } else {
    if (equal(%n, 0)) { @ack(subtract(%m, 1), 1) }
    else { @ack(subtract(%m, 1), @ack(%m, subtract(%n, 1))) } }
}
def @main(%x: int32) -> int32 { add(%x, @ack(4, 4)) }""",
    "results": f"def @main(%x: {T}) {{ split(%x, indices_or_sections=1000000000) }}",
}


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_expansion_is_bounded(text, tmp_path, monkeypatch):
    monkeypatch.setattr(diagnostics, "STEPS", Limit(20_000, 64))
    path = tmp_path / "m.relay"
    path.write_text(VERSION + text)
    with pytest.raises(Unconvertible, match="out of proportion to the module") as caught:
        serde.load(path)
    assert "relay.transform" in str(caught.value)


def nested_functions(depth: int) -> str:
    body = "fn () { " * depth + "%x" + " }" * depth
    return f"def @main(%x: {T}) {{ let %f = {body}; %f{'()' * depth} }}"


def nested_data(depth: int) -> str:
    body = "Cons(%x, " * depth + "Nil" + ")" * depth
    return f"type List {{ Cons({T}, List), Nil, }}\ndef @main(%x: {T}) {{ {body} }}"


@pytest.mark.parametrize(
    ("make", "depth", "reason"),
    [(nested_functions, 5000, "nest more than 1000 deep"),
     (nested_data, 12_000, "names of nested outputs would take")],
)  # fmt: skip
def test_deep_values_are_bounded(make, depth, reason, tmp_path):
    path = tmp_path / "m.relay"
    path.write_text(VERSION + make(50))
    assert serde.load(path).outputs
    path.write_text(VERSION + make(depth))
    with limit_cpu(5), pytest.raises(Unconvertible, match=reason):
        serde.load(path)


def test_a_module_within_its_budget_converts(tmp_path):
    path = tmp_path / "m.relay"
    chain = "".join(f"let %y{i + 1} = nn.relu(%y{i});\n" for i in range(3000))
    path.write_text(f"{VERSION}def @main(%y0: {T}) {{ {chain} %y3000 }}")
    assert serde.load(path).outputs


@pytest.mark.parametrize(("size", "steps"), [(1, 100_000), (1_000_000, 64_000_000)])
def test_the_budget_grows_with_the_module(size, steps):
    budget = Budget(lambda: size)
    budget.charge("main", steps)
    with pytest.raises(Unconvertible):
        budget.charge("main")
